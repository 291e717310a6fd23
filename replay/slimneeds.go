package replay

import (
	"context"
	"runtime"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay/mem"
)

// What a slim recording holds. Contents are kept, not addresses: a content that
// anything below needs stays in the file, and every page of every interval that
// has it goes on naming it, which costs nothing. So a page that nobody wrote
// between two positions is known at both as soon as it is needed at one.
//
//   - What replay of an interval reads, writes or executes, and what the check of
//     its end looks at.
//   - What the program wrote: every content by which the memory at an interval's
//     start differs from the one before, and the whole final image of each process. So what was
//     written passes from one interval's end to the next one's start, used there
//     or not, and the crash shows what a core file would of it.
//   - What debuggers read: image.DebuggerSet, at the start of each interval and
//     at the end, and the section tables of the files that are mapped there.
//   - All of the intervals that stay fat.
//
// What is dropped is what the program had before the oldest interval that is
// kept, and neither used nor wrote since.

// touched is what an interval's replay needs: pages by their address at its
// start, and pages of objects.
type touched struct {
	pages   map[uint64]bool
	objects map[mem.ObjectPage]bool

	budget  *checkpoint.Budget
	charged int   // how many of them the budget knows
	err     error // the budget's: no more is noted
}

const (
	// touchedBytes is what a page takes in touched, of which there is one for each
	// interval until the recording is written.
	touchedBytes = 48
	// firstTouched is how many pages are charged at first, and then as many as there are, up to touchedAtOnce. Thousands of
	// short intervals touch some tens each.
	firstTouched  = 64
	touchedAtOnce = 4096
)

// foundOut names what slimming keeps until the recording is written, where there is not enough memory for it.
const foundOut = "what slimming has found out"

func newTouched(b *checkpoint.Budget) *touched {
	return &touched{pages: map[uint64]bool{}, objects: map[mem.ObjectPage]bool{}, budget: b}
}

func (t *touched) addPage(a uint64) {
	if t.charge() {
		t.pages[a] = true
	}
}

func (t *touched) addObject(o mem.ObjectPage) {
	if t.charge() {
		t.objects[o] = true
	}
}

// charge reports whether another page may be noted. What is noted is charged for as long as
// somebody has t.
func (t *touched) charge() bool {
	if t.budget == nil || t.err != nil || len(t.pages)+len(t.objects) < t.charged {
		return t.err == nil
	}
	more := min(max(t.charged, firstTouched), touchedAtOnce)
	n := int64(more) * touchedBytes
	if t.err = t.budget.Take(n, foundOut); t.err == nil {
		t.charged += more
		runtime.AddCleanup(t, t.budget.Give, n)
	}
	return t.err == nil
}

// compared returns the addresses of those pages of the interval's start that the
// check of its end looks at, though the program need not have touched them: the
// pages named there and, where the end is found by state, those given up since.
func (m *Machine) compared() []uint64 {
	out := []uint64{}
	for _, e := range m.iv.End.Pages {
		out = append(out, e.Addr)
	}
	if !m.iv.End.Forced {
		return out
	}
	for _, d := range m.Mem.Dropped() {
		for _, e := range m.iv.src.Range(d[0], d[1]) {
			out = append(out, e.Addr)
		}
	}
	return out
}

// needs turns what replay of an interval touched into what it needs; nil when it
// was not exact. The error is the budget's.
func (sl *slimmer) needs(r *Result) (*touched, error) {
	if r.Err != nil || r.Touched == nil {
		return nil, nil
	}
	m, err := sl.s.Machine(r.Interval)
	if err != nil {
		return nil, nil //nolint:nilerr // the interval stays as it is
	}
	defer m.Close()
	t := newTouched(sl.s.Rec.Budget())
	for _, set := range []map[uint64]struct{}{r.Touched.Read, r.Touched.Written, r.Touched.Executed} {
		for key := range set {
			for _, a := range m.Mem.AddressesOf(key) {
				t.addPage(a)
			}
		}
	}
	for _, a := range r.Compared {
		t.addPage(a)
	}
	for o := range r.Touched.Objects {
		t.addObject(o)
	}
	t.addSet(m.Mem, m.iv.src, image.DebuggerSet(m.iv.Maps, m.iv.Start, space{m.Mem}))
	return t, t.err
}

// addSet notes the pages of ranges of addresses that the recording holds, of the table of src or
// of the objects that are mapped there: the ranges of a file's headers may be of any length.
func (t *touched) addSet(s *mem.Space, src *loader.Source, rs []image.Range) {
	for _, d := range rs {
		for _, e := range src.Range(d.Start, d.End) {
			t.addPage(e.Addr)
		}
		for r := range s.AddressMap().From(d.Start) {
			if r.Start >= d.End || t.err != nil {
				break
			}
			if r.Object == 0 {
				continue
			}
			lo, hi := max(r.Start, d.Start)-r.Start+r.Offset, min(r.End, d.End)-r.Start+r.Offset
			pages := src.ObjectRange(r.Object, lo, hi)
			for _, p := range pages {
				t.addObject(mem.ObjectPage{Object: p.Object, Index: p.Index})
			}
			t.spend(len(pages))
		}
	}
}

// spend charges the way through n pages of an object, which may be mapped many times.
func (t *touched) spend(n int) {
	if t.err == nil {
		t.err = t.budget.Spend(int64(n+1)*touchedBytes, "what slimming looks through")
	}
}

// space reads a guest's memory for the loader.
type space struct{ *mem.Space }

func (m space) ReadMemory(a uint64, b []byte) int {
	n, _ := m.Peek(a, b)
	return n
}

func (m space) ReadFile(object uint32, off uint64, b []byte) int { return m.PeekObject(object, off, b) }

// kept is what a slim recording holds.
type kept struct {
	sl       *slimmer
	contents map[checkpoint.PageRef]bool
	objects  map[mem.ObjectPage]bool
	allFiles bool // an interval whose needs are not known may want any page of a file
}

// programOf is one program of one process.
type programOf struct {
	pid   int32
	image uint32
}

// keep finds out what the slim recording holds.
func (sl *slimmer) keep(ctx context.Context) (*kept, error) {
	k := &kept{sl: sl, contents: map[checkpoint.PageRef]bool{}, objects: map[mem.ObjectPage]bool{}}
	before := map[programOf]checkpoint.PageTable{}
	for _, i := range sl.s.Rec.Intervals() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		table, err := sl.s.Rec.PageTable(i.ID)
		if err != nil {
			return nil, err
		}
		t, of := sl.touched[i.ID], programOf{i.PID, i.Image}
		if t == nil {
			k.allFiles = true
			k.add(table)
		} else {
			k.addNeeds(t, table)
			if old, ok := before[of]; ok {
				k.add(checkpoint.Changes(old, table))
			}
		}
		before[of] = table
	}
	for _, p := range sl.s.Rec.Processes() {
		if err := k.addFinal(p.PID); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (k *kept) add(rows []checkpoint.PageEntry) {
	for i, e := range rows {
		if isStored(e.Ref) && (i == 0 || e.Ref != rows[i-1].Ref) {
			k.contents[e.Ref] = true
		}
	}
}

// isStored reports whether a page has content that can be dropped. That a page is zero,
// or that it was redacted, costs nothing to keep.
func isStored(ref checkpoint.PageRef) bool {
	return ref.Kind == checkpoint.PageFull || ref.Kind == checkpoint.PagePartial
}

func (k *kept) addNeeds(t *touched, table checkpoint.PageTable) {
	for a := range t.pages {
		if ref, ok := table.Find(a); ok {
			k.contents[ref] = true
		}
	}
	for o := range t.objects {
		k.objects[o] = true
	}
}

// addFinal adds the final image of a process and what debuggers read there.
func (k *kept) addFinal(pid int32) error {
	f, err := k.sl.s.FinalOf(pid)
	if err != nil {
		return nil //nolint:nilerr // there is none, or it cannot be read: it is copied as it is
	}
	defer f.Mem.Close()
	k.add(f.src.pages)
	infos := k.sl.s.Rec.LastImageOf(pid)
	table, err := k.sl.s.Rec.PageTable(infos[len(infos)-1].ID)
	if err != nil {
		return err
	}
	t := newTouched(k.sl.s.Rec.Budget())
	t.addSet(f.Mem, f.src.Source, image.DebuggerSet(f.Maps, f.contexts, space{f.Mem}))
	for _, p := range image.SectionTablePages(f.Maps, space{f.Mem}) {
		t.addObject(mem.ObjectPage(p))
	}
	k.addNeeds(t, table)
	return t.err
}

// has reports whether a content is kept.
func (k *kept) has(ref checkpoint.PageRef) bool { return !isStored(ref) || k.contents[ref] }

// interval is what is written instead of iv: pages whose content is not kept
// become known not to be captured, so that they never read as zero.
func (k *kept) interval(_ *checkpoint.Writer, iv *checkpoint.Interval) (*checkpoint.Interval, error) {
	if k.sl.touched[iv.ID] == nil {
		return iv, nil
	}
	for i := range iv.Pages {
		if !k.has(iv.Pages[i].Ref) {
			iv.Pages[i].Ref = checkpoint.PageRef{Kind: checkpoint.PageAbsent}
		}
	}
	iv.Slim = true
	return iv, nil
}

// objectPage reports whether a page of an object is kept.
func (k *kept) objectPage(_ *checkpoint.Writer, p *checkpoint.ObjectPage) (bool, error) {
	return !isStored(p.Ref) || k.allFiles || k.contents[p.Ref] || k.objects[mem.ObjectPage{Object: p.Object, Index: p.Index}], nil
}
