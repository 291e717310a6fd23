package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Slimming to first loads: of each page stay the bytes that replay reads or executes before it
// has written them, and what debuggers read. As with pages (slimneeds.go) contents are kept, not addresses: what any
// interval needs of a content is known wherever a page has it.
//
// It takes three replays. The first finds out what is needed (mem.Needs). What an interval's
// end must look like changes with what is known of its start: a page of which some bytes are known has another name, and
// a forced end is found by a hash in which the others are zeros. So the second begins with the bytes that stay, goes to
// the end that the first has found, and takes what it has there. The third is that of every slimming: it
// reads the new file, and finds its ends by itself.

// neededBytes is what an interval needs, and what the first replay has found out about it.
type neededBytes struct {
	needs   mem.PackedNeeds
	answers map[uint64]uint64 // see answers
	end     *endPoint
	insns   uint64
}

// newEnd is what is written as an interval's end.
type newEnd struct {
	pages []checkpoint.PageEntry
	hash  uint64
	// held are the pages whose content the solver needs: those that XSAVE has stored to.
	held []heldPage
}

// heldPage is a page at an interval's end.
type heldPage struct {
	page  mem.Page
	known mem.Mask
}

// firstLoads is what a recording of first loads holds.
type firstLoads struct {
	sl    *slimmer
	known map[checkpoint.PageRef]*mem.Mask // of each content, what stays
	refs  map[checkpoint.PageRef]checkpoint.PageRef

	mu   sync.Mutex
	ends map[uint32]*newEnd
	// seen are the bytes of a page that any interval of a program read or wrote.
	seen map[programOf]map[uint64]*mem.Mask
	err  error
}

// needBytes is needs for first loads: what the replay of an interval needs, from the machine at its end.
func (sl *slimmer) needBytes(m *Machine, needs *mem.Needs) (*neededBytes, error) {
	n := &neededBytes{end: m.iv.endPoint(), answers: m.iv.found(), insns: m.CPU.Retired}
	start, err := sl.s.Machine(m.iv.ID)
	if err != nil {
		return nil, err
	}
	defer start.Close()
	err = sl.addRanges(needs, start.Mem, m.iv.src, image.DebuggerSet(m.iv.Maps, m.iv.Start, space{start.Mem}))
	if err = errors.Join(err, needs.Err); err == nil {
		n.needs, err = sl.pack(needs)
	}
	return n, err
}

// pack packs needs, and charges the budget for them as they are then.
func (sl *slimmer) pack(needs *mem.Needs) (p mem.PackedNeeds, err error) {
	p = needs.Pack()
	b := sl.s.Rec.Budget()
	if b == nil {
		return p, nil
	}
	if err = b.Take(int64(p.Size()), foundOut); err == nil {
		less := mem.NeedsPageBytes * int64(len(needs.Pages)+len(needs.Objects))
		b.Give(less)
		sl.taken.Add(int64(p.Size()) - less)
	}
	return p, err
}

// addRanges notes ranges of addresses, of the pages that the recording holds there.
func (sl *slimmer) addRanges(n *mem.Needs, s *mem.Space, src *loader.Source, rs []image.Range) error {
	t := newTouched(sl.s.Rec.Budget())
	t.addSet(s, src, rs)
	for a := range t.pages {
		n.Page(a).Fill()
	}
	for o := range t.objects {
		n.Object(o).Fill()
	}
	return t.err
}

// noting returns iv with a start that notes what is needed.
func (sl *slimmer) noting(iv *interval) *interval {
	iv = sl.whole(iv, false)
	needs := mem.NewNeeds()
	needs.Charge = sl.takePage
	space := loader.Space(sl.s.Pool, sl.s.Rec, iv.Interval, iv.src)
	space.NoteNeeds(needs)
	out := iv.from(space)
	out.end, out.answers.known, out.answers.bits = iv.endPoint(), iv.found() != nil || sl.joined[iv.ID] != nil, iv.found()
	return out
}

// takePage charges the budget for what is noted of a page; giveBack gives all of it back.
func (sl *slimmer) takePage() error {
	b := sl.s.Rec.Budget()
	if b == nil {
		return nil
	}
	err := b.Take(mem.NeedsPageBytes, foundOut)
	if err == nil {
		sl.taken.Add(mem.NeedsPageBytes)
	}
	return err
}

func (sl *slimmer) giveBack() {
	if b := sl.s.Rec.Budget(); b != nil {
		b.Give(sl.taken.Swap(0))
	}
}

// from returns the interval with another memory at its start, which is closed.
func (iv *interval) from(space *mem.Space) *interval {
	out := &interval{Interval: iv.Interval, src: iv.src, first: iv.first, others: iv.others, charged: iv.charged}
	out.start = space.Snapshot()
	space.Close()
	return out
}

// replayNoting is the first replay.
func (sl *slimmer) replayNoting(ctx context.Context, ids []uint32) error {
	o := VerifyOptions{
		begin: sl.noting,
		prepare: func(m *Machine) {
			m.CPU.OnCode = func(from, to uint64) { m.Mem.Need(from, int(min(to-from, maxCode))) }
		},
		check: func(m *Machine) error {
			err := m.CheckEnd()
			if err != nil {
				return err
			}
			n, err := sl.needBytes(m, m.Mem.Needs())
			sl.mu.Lock()
			defer sl.mu.Unlock()
			if sl.bytes[m.iv.ID] = n; err != nil && sl.err == nil {
				sl.err = err
			}
			return err
		},
	}
	return sl.verifyWith(ctx, sl.s, ids, false, o, func(r Result) {
		sl.mu.Lock()
		defer sl.mu.Unlock()
		switch {
		case r.Err == nil:
			sl.touched[r.Interval] = newTouched(nil)
		case Unmatched(r.Err):
			sl.failed = append(sl.failed, r)
		}
	})
}

// maxCode bounds what is noted of one block.
const maxCode = 1 << 16

// keepBytes finds out what the recording of first loads holds, and how its intervals end then.
func (sl *slimmer) keepBytes(ctx context.Context) (*firstLoads, error) {
	k := &firstLoads{
		sl: sl, known: map[checkpoint.PageRef]*mem.Mask{}, refs: map[checkpoint.PageRef]checkpoint.PageRef{},
		ends: map[uint32]*newEnd{}, seen: map[programOf]map[uint64]*mem.Mask{},
	}
	var ids []uint32
	allFiles := false
	for _, i := range sl.s.Rec.Intervals() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if sl.isAway(i.ID) && sl.bytes[sl.head(i.ID)] != nil {
			continue
		}
		table, err := sl.s.Rec.PageTable(i.ID)
		if err != nil {
			return nil, err
		}
		if n := sl.bytes[i.ID]; n != nil {
			ids = append(ids, i.ID)
			k.addNeeds(n.needs.Pages(), n.needs.Objects(), table)
			k.see(programOf{i.PID, i.Image}, n.needs.Pages())
			continue
		}
		allFiles = true
		for _, e := range table {
			k.addAll(e.Ref)
		}
	}
	if allFiles {
		for p := range sl.s.Rec.ObjectPages() {
			k.addAll(p.Ref)
		}
	}
	for _, p := range sl.s.Rec.Processes() {
		if err := k.addFinal(p.PID); err != nil {
			return nil, err
		}
	}
	if k.err != nil {
		return nil, k.err
	}
	return k, k.findEnds(ctx, ids)
}

// see adds pages to those that any interval of a program read or wrote. It keeps their masks.
func (k *firstLoads) see(of programOf, pages iter.Seq2[uint64, *mem.Mask]) {
	if k.seen[of] == nil {
		k.seen[of] = map[uint64]*mem.Mask{}
	}
	for a, m := range pages {
		if was := k.seen[of][a]; was != nil {
			was.Add(m)
			continue
		}
		k.seen[of][a] = m
	}
}

// of returns the mask of a content, which is made.
func (k *firstLoads) of(ref checkpoint.PageRef) *mem.Mask {
	m := k.known[ref]
	if m == nil {
		if k.err == nil {
			k.err = k.sl.takePage()
		}
		m = new(mem.Mask)
		k.known[ref] = m
	}
	return m
}

func (k *firstLoads) addAll(ref checkpoint.PageRef) {
	if isStored(ref) {
		k.of(ref).Fill()
	}
}

func (k *firstLoads) addNeeds(pages iter.Seq2[uint64, *mem.Mask], objects iter.Seq2[mem.ObjectPage, *mem.Mask], table checkpoint.PageTable) {
	for a, m := range pages {
		if ref, ok := table.Find(a); ok && isStored(ref) {
			k.of(ref).Add(m)
		}
	}
	for o, m := range objects {
		if ref, ok := k.sl.s.Rec.ObjectPage(o.Object, o.Index); ok && isStored(ref) {
			k.of(ref).Add(m)
		}
	}
}

// addFinal adds what debuggers read at the end of a process.
func (k *firstLoads) addFinal(pid int32) error {
	f, err := k.sl.s.FinalOf(pid)
	if err != nil {
		return nil //nolint:nilerr // there is none, or it cannot be read: it is copied as it is
	}
	defer f.Mem.Close()
	infos := k.sl.s.Rec.LastImageOf(pid)
	last := infos[len(infos)-1]
	table, err := k.sl.s.Rec.PageTable(k.sl.head(last.ID))
	if err != nil {
		return err
	}
	rows, err := k.sl.finalRows(last, f.src.pages, f.Maps)
	if err != nil {
		return err
	}
	n := mem.NewNeeds()
	rs := image.DebuggerSet(f.Maps, f.contexts, space{f.Mem})
	if err := k.sl.addRanges(n, f.Mem, f.src.Source, rs); err != nil {
		return err
	}
	for _, p := range image.SectionTablePages(f.Maps, space{f.Mem}) {
		n.Object(mem.ObjectPage(p)).Fill()
	}
	atEnd := mem.NewNeeds() // of the pages that the final image has
	for _, e := range rows {
		delete(n.Pages, e.Addr)
		if slices.ContainsFunc(rs, func(r image.Range) bool { return e.Addr >= r.Start && e.Addr < r.End }) {
			atEnd.Page(e.Addr).Fill()
		}
	}
	k.addNeeds(maps.All(n.Pages), maps.All(n.Objects), table)
	k.see(programOf{pid, last.Image}, maps.All(atEnd.Pages))
	return k.err
}

// content is loader.Content of what stays.
func (k *firstLoads) content(ref checkpoint.PageRef, page *mem.Page, mask *mem.Mask) mem.Content {
	c := loader.Content(k.sl.s.Rec, ref, page, mask)
	if !isStored(ref) || c != mem.Captured && c != mem.Partial {
		return c
	}
	stays := k.known[ref]
	if stays == nil {
		*page = mem.Page{}
		return mem.NotCaptured
	}
	if c == mem.Captured {
		mask.Fill()
	}
	for i := range mask {
		mask[i] &= stays[i]
	}
	if mask.All() {
		return mem.Captured
	}
	for i := range page {
		if !mask.Has(i) {
			page[i] = 0
		}
	}
	return mem.Partial
}

// knownSource is a Source of what stays.
type knownSource struct {
	*loader.Source
	k *firstLoads
}

func (s knownSource) PageAt(a uint64, page *mem.Page, mask *mem.Mask) (mem.Content, bool) {
	ref, ok := s.Record(a)
	if !ok {
		return mem.Zero, false
	}
	return s.k.content(ref, page, mask), true
}

func (s knownSource) ObjectPage(object uint32, off uint64, page *mem.Page, mask *mem.Mask) mem.Content {
	ref, ok := s.k.sl.s.Rec.ObjectPage(object, off/mem.PageSize)
	if !ok {
		return mem.NotCaptured
	}
	return s.k.content(ref, page, mask)
}

// findEnds is the second replay.
func (k *firstLoads) findEnds(ctx context.Context, ids []uint32) error {
	sl := k.sl
	saved := map[*Machine]map[uint64]bool{}
	o := VerifyOptions{
		begin: func(iv *interval) *interval {
			n := sl.bytes[iv.ID]
			iv = sl.whole(iv, true)
			out := iv.from(loader.Space(sl.s.Pool, sl.s.Rec, iv.Interval, knownSource{iv.src, k}))
			out.end, out.answers.known, out.answers.bits = n.end, true, n.answers
			return out
		},
		prepare: func(m *Machine) {
			if !m.iv.End.Forced && len(m.iv.answers.bits) == 0 {
				return // the answers are found without the pages
			}
			pages := map[uint64]bool{}
			k.mu.Lock()
			saved[m] = pages
			k.mu.Unlock()
			m.onSave = func(u x86.InUse) { notePages(pages, &u) }
		},
		check: func(m *Machine) error {
			k.mu.Lock()
			pages := saved[m]
			delete(saved, m)
			k.mu.Unlock()
			return k.findEnd(m, pages)
		},
	}
	var first error
	err := sl.verifyWith(ctx, sl.s, ids, false, o, func(r Result) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if r.Err != nil && ctx.Err() == nil && first == nil {
			first = &SlimCheckError{sl.path, fmt.Errorf("interval %d: %w", r.Interval, r.Err)}
		}
	})
	if err == nil {
		err = first
	}
	return err
}

// notePages notes the pages of the area that an instruction saves to.
func notePages(pages map[uint64]bool, u *x86.InUse) {
	if u.Area == 0 {
		return
	}
	pages[(u.Area+x86.XSaveHeader)&^(mem.PageSize-1)] = true
	for _, p := range u.Parts {
		pages[p.Addr&^(mem.PageSize-1)] = true
		pages[(p.Addr+uint64(max(len(p.Bytes), 1))-1)&^(mem.PageSize-1)] = true
	}
}

// findEnd notes what the interval's end looks like, from the machine that is there; pages are
// those whose content is held.
func (k *firstLoads) findEnd(m *Machine, pages map[uint64]bool) error {
	if err := m.checkThreads(m.iv.End.Contexts); err != nil {
		return err
	}
	if n := k.sl.bytes[m.iv.ID].insns; m.CPU.Retired != n {
		return m.diverged("the interval's end", fmt.Sprintf("%d instructions", n), fmt.Sprintf("%d", m.CPU.Retired))
	}
	end := &newEnd{hash: m.iv.End.MemHash}
	seen := map[uint64]*mem.Mask{}
	for _, e := range m.iv.End.Pages {
		var h heldPage
		if !m.Mem.PeekRaw(e.Addr, &h.page, &h.known) {
			if e.Ref.Kind != checkpoint.PageRemoved {
				end.pages = append(end.pages, e) // see checkPages
			}
			continue
		}
		ref := checkpoint.RefOfPartial((*[512]byte)(&h.known), &h.page)
		end.pages = append(end.pages, checkpoint.PageEntry{Addr: e.Addr, Ref: ref})
		if pages[e.Addr] && isStored(ref) {
			end.held = append(end.held, h)
		}
		known := h.known
		seen[e.Addr] = &known
	}
	if m.iv.End.Forced {
		s := &endSearch{m: m}
		if end.hash = s.hashSinceStart(); s.err != nil {
			return s.err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends[m.iv.ID] = end
	k.see(programOf{m.iv.PID, m.iv.Image}, maps.All(seen))
	return nil
}

// write returns the reference of what stays of a content, which is written.
func (k *firstLoads) write(w *checkpoint.Writer, ref checkpoint.PageRef, stays *mem.Mask) (checkpoint.PageRef, error) {
	if !isStored(ref) {
		return ref, nil
	}
	if stays == nil {
		return checkpoint.PageRef{Kind: checkpoint.PageAbsent}, nil
	}
	var page mem.Page
	has, err := k.sl.s.Rec.Page(ref, &page)
	if err != nil {
		return ref, err
	}
	mask := *stays
	if has != nil {
		for i := range mask {
			mask[i] &= has[i]
		}
	}
	return w.AddPartialPage((*[512]byte)(&mask), page[:])
}

// rewrite is write for what all intervals need of a content, which is written once.
func (k *firstLoads) rewrite(w *checkpoint.Writer, ref checkpoint.PageRef) (checkpoint.PageRef, error) {
	if out, ok := k.refs[ref]; ok {
		return out, nil
	}
	out, err := k.write(w, ref, k.known[ref])
	if err == nil && isStored(ref) {
		k.refs[ref] = out
	}
	return out, err
}

// interval is what is written instead of iv.
func (k *firstLoads) interval(w *checkpoint.Writer, iv *checkpoint.Interval) (*checkpoint.Interval, error) {
	end := k.ends[iv.ID]
	switch {
	case end == nil && k.sl.isAway(iv.ID) && k.ends[k.sl.head(iv.ID)] != nil:
		return nil, nil
	case end == nil:
		return iv, nil
	}
	if ids := k.sl.joined[iv.ID]; ids != nil {
		all, err := k.sl.join(ids, true)
		if err != nil {
			return nil, err
		}
		all.Pages, all.Delta = iv.Pages, false
		iv = all
	}
	for i := range iv.Pages {
		var err error
		if iv.Pages[i].Ref, err = k.rewrite(w, iv.Pages[i].Ref); err != nil {
			return nil, err
		}
	}
	for i := range end.held {
		h := &end.held[i]
		if _, err := w.AddPartialPage((*[512]byte)(&h.known), h.page[:]); err != nil {
			return nil, err
		}
	}
	iv.End.Pages, iv.End.MemHash = end.pages, end.hash
	iv.Slim, iv.FirstLoads = true, true
	return iv, nil
}

// final is what is written instead of the image at the end of a process: what any interval of its
// last program read or wrote, and what debuggers read.
func (k *firstLoads) final(w *checkpoint.Writer, pid int32, f *checkpoint.Final) (*checkpoint.Final, error) {
	infos := k.sl.s.Rec.LastImageOf(pid)
	if len(infos) == 0 || k.ends[k.sl.head(infos[len(infos)-1].ID)] == nil {
		return f, nil
	}
	rows, err := k.sl.finalRows(infos[len(infos)-1], f.Pages, f.Maps)
	if err != nil {
		return nil, err
	}
	f.Pages = rows
	seen := k.seen[programOf{pid, infos[0].Image}]
	for i := range f.Pages {
		e := &f.Pages[i]
		var err error
		if e.Ref, err = k.write(w, e.Ref, seen[e.Addr]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// objectPage is what is written of a page of an object.
func (k *firstLoads) objectPage(w *checkpoint.Writer, p *checkpoint.ObjectPage) (bool, error) {
	if !isStored(p.Ref) {
		return true, nil
	}
	var err error
	p.Ref, err = k.rewrite(w, p.Ref)
	return p.Ref.Kind != checkpoint.PageAbsent, err
}
