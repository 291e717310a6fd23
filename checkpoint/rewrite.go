package checkpoint

import (
	"cmp"
	"errors"
	"os"
	"runtime"
	"slices"
	"unsafe"
)

// Rewriting makes a new recording out of an old one: slimming replaces
// intervals by smaller ones, trimming leaves some out. Callers see and give
// whole page tables; which interval is stored as a delta of which is decided
// here, anew. Pages that nothing refers to any more are not copied.

// RewriteOptions says what changes. A nil function changes nothing. The
// functions are called one after the other in the order of the fields.
type RewriteOptions struct {
	WriterOptions
	// Interval returns what is written instead of iv, in order of ID; nil
	// leaves the interval out. iv.Pages is the whole table at its start and
	// iv.Delta is false, and the same must hold for the result, which may be
	// iv itself, changed. Pages may be added to w; those of the old
	// recording need not be.
	Interval func(w *Writer, iv *Interval) (*Interval, error)
	// Final returns what is written instead of the final image of a process; nil leaves
	// it out. It is called for the processes in the order of Processes, and not for one
	// whose intervals are all left out.
	Final func(w *Writer, pid int32, f *Final) (*Final, error)
	// ObjectPage reports whether a page of an object is kept. It may change its content, which is in the old
	// recording or was added to w.
	ObjectPage func(w *Writer, p *ObjectPage) (bool, error)
	// Manifest changes what the recording says of itself. The ID stays
	// unless it is changed here.
	Manifest func(m *Manifest)
	// Interrupt is asked again and again; its error ends the rewriting.
	Interrupt func() error
}

// Rewrite writes a changed copy of r to path, which may be r's own file when
// Overwrite is set: the copy then has the owner and the permissions of the old
// file, and on Windows, which replaces no open file, r is closed before.
// Unknown optional members are not copied. Errors: those of the functions, of
// reading r and of Writer; then nothing is left behind.
func Rewrite(r *Recording, path string, o RewriteOptions) error {
	o.FirstLoads = o.FirstLoads || slices.ContainsFunc(r.Intervals(), func(i IntervalInfo) bool { return i.FirstLoads })
	w, err := Create(path, o.WriterOptions)
	if err != nil {
		return err
	}
	rw := &rewriter{r: r, w: w, o: o, last: make(map[processImage]PageTable), kept: make(map[int32]bool), ch: charge{b: r.budget, part: "what is written again"}}
	defer rw.ch.drop()
	if o.Interrupt == nil {
		rw.o.Interrupt = func() error { return nil }
	}
	for _, step := range []func() error{rw.intervals, rw.finals, rw.objects, rw.owner, rw.o.Interrupt} {
		if err := step(); err != nil {
			err, _ = r.limited(err)
			return errors.Join(err, w.Abort())
		}
	}
	m := *r.Manifest()
	if o.Manifest != nil {
		o.Manifest(&m)
	}
	if runtime.GOOS == "windows" && rw.old() != nil {
		if err := r.Close(); err != nil {
			return errors.Join(err, w.Abort())
		}
		r.closer = nil
	}
	return w.Finish(m)
}

// old describes the file that is replaced when it is the one that is read, else
// it is nil.
func (rw *rewriter) old() os.FileInfo {
	mine, err := rw.r.Stat()
	if err != nil {
		return nil
	}
	if other, err := os.Stat(rw.w.path); err != nil || !os.SameFile(mine, other) {
		return nil
	}
	return mine
}

// owner gives the new file the permissions and, where that is allowed, the owner
// of the one that it replaces.
func (rw *rewriter) owner() error {
	if st := rw.old(); st != nil {
		return rw.w.f.like(st)
	}
	return nil
}

// processImage is what a chain of deltas belongs to.
type processImage struct {
	pid   int32
	image uint32
}

type rewriter struct {
	r    *Recording
	w    *Writer
	o    RewriteOptions
	last map[processImage]PageTable // the table of the newest interval written
	kept map[int32]bool             // processes that an interval was written of
	ch   charge                     // for what the writer keeps until it is finished
}

const (
	// writtenPage is what a writer keeps of each page that it has stored, and
	// writtenObjectPage of each page of an object, in a list that grows, in bytes.
	writtenPage       = 100
	writtenObjectPage = 2 * int64(unsafe.Sizeof(ObjectPage{}))
	// writeWork is how many times as long as a row is decoded it takes to write it.
	writeWork = 2
)

// clone returns a copy of a table, which the budget is charged for.
func (rw *rewriter) clone(table PageTable, id uint32) (PageTable, error) {
	ch := rw.r.charge(nameHead(id) + ": page table, written again")
	n := int64(len(table)) * int64(unsafe.Sizeof(PageEntry{}))
	if err := errors.Join(rw.r.budget.Spend(writeWork*n, ch.part), ch.add(n)); err != nil || len(table) == 0 {
		return nil, err
	}
	out := slices.Clone(table)
	keep(ch, unsafe.SliceData(out))
	return out, nil
}

func (rw *rewriter) intervals() error {
	for _, info := range rw.r.Intervals() {
		iv, err := rw.r.Interval(info.ID)
		if err != nil {
			return err
		}
		table, err := rw.r.PageTable(info.ID)
		if err != nil {
			return err
		}
		if iv.Pages, err = rw.clone(table, info.ID); err != nil {
			return err
		}
		iv.Delta = false
		if rw.o.Interval != nil {
			if iv, err = rw.o.Interval(rw.w, iv); err != nil {
				return err
			}
		}
		if iv == nil {
			continue
		}
		if err := rw.interval(iv); err != nil {
			return err
		}
	}
	return nil
}

// interval writes one interval, as a delta when that has fewer rows.
func (rw *rewriter) interval(iv *Interval) error {
	if iv.Delta {
		return errors.New("checkpoint: the interval to rewrite is a delta")
	}
	out := *iv
	out.Pages = sorted(iv.Pages)
	key := processImage{iv.PID, iv.Image}
	full := PageTable(out.Pages)
	if base, ok := rw.last[key]; ok {
		if delta := makeDelta(base, full); len(delta) < len(full) {
			out.Pages, out.Delta = delta, true // the pages of the others are there
		}
	}
	if err := rw.copyPages(out.Pages); err != nil {
		return err
	}
	rw.last[key], rw.kept[iv.PID] = full, true
	return rw.w.AddInterval(&out)
}

// copyPages copies the content of those pages of a table that the old
// recording has and the new one has not, in the order of the old store.
func (rw *rewriter) copyPages(table []PageEntry) error {
	var need []uint32
	for n, e := range table {
		if n%rowsPerQuestion == 0 {
			if err := rw.o.Interrupt(); err != nil {
				return err
			}
		}
		if e.Ref.Kind != PageFull && e.Ref.Kind != PagePartial || n > 0 && e.Ref == table[n-1].Ref {
			continue
		}
		if i, ok := rw.r.store.numbers[e.Ref]; ok && !rw.w.HasPage(e.Ref) {
			need = append(need, i)
		}
	}
	slices.SortFunc(need, cmp.Compare[uint32])
	for n, i := range slices.Compact(need) {
		if n%pagesPerBlock == 0 {
			if err := rw.o.Interrupt(); err != nil {
				return err
			}
		}
		p := &rw.r.store.records[i]
		rec, err := rw.r.record(p)
		if err != nil {
			return err
		}
		if err := rw.ch.add(writtenPage); err != nil {
			return err
		}
		if err := rw.w.addRecord(p.ref, rec); err != nil {
			return err
		}
	}
	return nil
}

// rowsPerQuestion is how many rows of a table are gone through between two questions
// whether to go on.
const rowsPerQuestion = 1 << 16

func (rw *rewriter) finals() error {
	if len(rw.r.Processes()) == 0 { // a final image and nothing before it
		f, err := rw.r.Final()
		return rw.final(0, f, err, rw.w.SetFinal)
	}
	for _, p := range rw.r.Processes() {
		if !rw.kept[p.PID] {
			continue
		}
		f, err := rw.r.FinalOf(p.PID)
		set := func(f *Final) error { return rw.w.SetFinalOf(p.PID, f) }
		if err := rw.final(p.PID, f, err, set); err != nil {
			return err
		}
	}
	return nil
}

// final writes one final image, read with err.
func (rw *rewriter) final(pid int32, f *Final, err error, set func(*Final) error) error {
	if errors.Is(err, ErrNoFinal) {
		return nil
	}
	if err != nil {
		return err
	}
	if rw.o.Final != nil {
		if f, err = rw.o.Final(rw.w, pid, f); err != nil || f == nil {
			return err
		}
	}
	if err := rw.copyPages(f.Pages); err != nil {
		return err
	}
	return set(f)
}

func (rw *rewriter) objects() error {
	for _, o := range rw.r.Objects() {
		if err := rw.w.AddObject(o); err != nil {
			return err
		}
	}
	n := 0
	for p := range rw.r.ObjectPages() {
		if n%pagesPerBlock == 0 {
			if err := rw.o.Interrupt(); err != nil {
				return err
			}
		}
		n++
		if rw.o.ObjectPage != nil {
			if ok, err := rw.o.ObjectPage(rw.w, &p); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		if err := rw.ch.add(writtenObjectPage); err != nil {
			return err
		}
		if err := rw.copyPages([]PageEntry{{Ref: p.Ref}}); err != nil {
			return err
		}
		if err := rw.w.AddObjectPage(p); err != nil {
			return err
		}
	}
	return nil
}

// Changes returns the rows by which the table of a process's memory differs from
// an earlier one: new contents, and PageRemoved for what is no longer there.
func Changes(earlier, later PageTable) []PageEntry { return makeDelta(earlier, later) }

// makeDelta returns the rows that turn base into table.
// Preconditions: both are sorted.
func makeDelta(base, table []PageEntry) []PageEntry {
	var delta []PageEntry
	for len(base) > 0 || len(table) > 0 {
		switch {
		case len(table) == 0 || len(base) > 0 && base[0].Addr < table[0].Addr:
			delta = append(delta, PageEntry{base[0].Addr, PageRef{Kind: PageRemoved}})
			base = base[1:]
		case len(base) == 0 || table[0].Addr < base[0].Addr:
			delta = append(delta, table[0])
			table = table[1:]
		default:
			if base[0].Ref != table[0].Ref {
				delta = append(delta, table[0])
			}
			base, table = base[1:], table[1:]
		}
	}
	return delta
}
