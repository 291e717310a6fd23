package windows

import (
	"vplay/checkpoint"
	"vplay/replay/mem/rangemap"
	"vplay/replay/observe"
)

// What is known of the memory of a process, by page, while it is replayed: pages come into
// being when they are accessed, move and go as the program's calls say. What is kept of a page is up to the
// owner: lastpage.go and firstloads.go.

const pageSize = checkpoint.PageSize

// table is the pages of a process. Private ones have their address as key, shared ones that
// of mem.Space.Key.
type table[P any] struct {
	pages map[uint64]*P
	room  *room
	taken int64 // bytes of room

	// add makes a page, and size is what a page takes in bytes. The tick is that at which a call
	// has filled it with zeros, 0 where it was there before or is a file's.
	add  func(tick uint32) *P
	size func(*P) int64

	fresh rangemap.Map[fresh] // what was mapped since the process began
	cache [cached]cachedPage[P]
}

// fresh is a range that a call filled with zeros at a tick.
type fresh struct {
	start, end uint64
	tick       uint32
}

// Bounds implements rangemap.Value.
func (f fresh) Bounds() (start, end uint64) { return f.start, f.end }

// Cut implements rangemap.Value.
func (f fresh) Cut(start, end uint64) fresh { return fresh{start, end, f.tick} }

// cached is how many pages are found without the map; a power of two.
const cached = 256

// cachedPage is the page of an address; page is nil for none.
type cachedPage[P any] struct {
	addr uint64
	page *P
}

// room is what the tables of a recording may take: the budget's bound on what is decoded of the file would be the
// wrong one, since a small file may be of a program that used much memory.
type room struct {
	budget *checkpoint.Budget
	file   string
	used   int64 // bytes
}

// roomShare is the part of the memory that a recording may take which tables may, as 1/roomShare.
const roomShare = 2

func newRoom(rec *checkpoint.Recording) *room { return &room{budget: rec.Budget(), file: rec.File()} }

// take takes n bytes. The error is a *checkpoint.LimitError.
func (r *room) take(n int64) error {
	if limit := r.budget.Memory() / roomShare; limit > 0 && r.used+n > limit {
		return &checkpoint.LimitError{File: r.file, Part: "the table of accesses", Limit: r.budget.Memory()}
	}
	r.used += n
	return nil
}

func newTable[P any](r *room, add func(tick uint32) *P, size func(*P) int64) *table[P] {
	return &table[P]{pages: map[uint64]*P{}, room: r, add: add, size: size}
}

// take takes n bytes of the room. The error is a *checkpoint.LimitError.
func (t *table[P]) take(n int64) error {
	if err := t.room.take(n); err != nil {
		return err
	}
	t.taken += n
	return nil
}

// give gives n bytes back.
func (t *table[P]) give(n int64) {
	t.room.used -= n
	t.taken -= n
}

// put makes the page of a key.
func (t *table[P]) put(key uint64, tick uint32) (*P, error) {
	p := t.add(tick)
	if err := t.take(t.size(p)); err != nil {
		return nil, err
	}
	t.pages[key] = p
	return p, nil
}

// remove forgets a page.
func (t *table[P]) remove(key uint64) {
	if p := t.pages[key]; p != nil {
		delete(t.pages, key)
		t.give(t.size(p))
	}
}

// clear forgets everything.
func (t *table[P]) clear() {
	t.give(t.taken)
	clear(t.pages)
	clear(t.cache[:])
	t.fresh = rangemap.Map[fresh]{}
}

// begin is called where another machine goes on.
func (t *table[P]) begin(goesOn bool) {
	if !goesOn {
		t.clear()
	}
	clear(t.cache[:])
}

// each calls f for the parts of pages in the n bytes at addr.
func (t *table[P]) each(v *observe.View, addr, n uint64, f func(p *P, off, n uint64) error) error {
	for n > 0 {
		off := addr % pageSize
		part := min(n, pageSize-off)
		e := &t.cache[addr/pageSize%cached]
		if e.page == nil || e.addr != addr-off {
			p, err := t.find(v, addr-off)
			if err != nil {
				return err
			}
			*e = cachedPage[P]{addr - off, p}
		}
		if err := f(e.page, off, part); err != nil {
			return err
		}
		addr, n = addr+part, n-part
	}
	return nil
}

// find returns the page at the page-aligned address a, and makes it where there is none.
func (t *table[P]) find(v *observe.View, a uint64) (*P, error) {
	m := v.Machine().Mem
	key, _ := m.Key(a)
	if p := t.pages[key]; p != nil {
		return p, nil
	}
	tick := uint32(0)
	if f := t.fresh.Find(a); f != nil && key == a {
		if r, ok := m.Find(a); ok && r.Object == 0 {
			tick = f.tick
		}
	}
	return t.put(key, tick)
}

// remap follows changes of the memory map at a tick. The error is of the recording's budget, which the work is charged to.
func (t *table[P]) remap(ops []checkpoint.MapOp, tick uint32) error {
	for i := range ops {
		op := &ops[i]
		if op.Kind == checkpoint.MapOpProtect || op.Start >= op.End {
			continue
		}
		if err := t.room.budget.Spend(t.work(op.Start, op.End)+t.work(op.New, op.NewEnd), "changes of the table of accesses"); err != nil {
			return err
		}
		clear(t.cache[:])
		switch op.Kind {
		case checkpoint.MapOpMove:
			t.move(op, tick)
		case checkpoint.MapOpUnmap:
			t.drop(op.Start, op.End, 0)
		default: // mapped anew, or emptied
			t.drop(op.Start, op.End, tick)
		}
	}
	return nil
}

// move follows mremap(2). What the range has become larger by is zero.
func (t *table[P]) move(op *checkpoint.MapOp, tick uint32) {
	if op.New >= op.NewEnd {
		t.drop(op.Start, op.End, 0)
		return
	}
	end := op.Start + min(op.End-op.Start, op.NewEnd-op.New)
	was := t.fresh.Inside(op.Start, end)
	pages := map[uint64]*P{}
	t.within(op.Start, end, func(key uint64) {
		pages[key] = t.pages[key]
		delete(t.pages, key)
	})
	t.drop(op.Start, op.End, 0)
	t.drop(op.New, op.NewEnd, 0)
	if grown := op.New + (end - op.Start); grown < op.NewEnd {
		t.drop(grown, op.NewEnd, tick)
	}
	for _, f := range was {
		f.start, f.end = f.start-op.Start+op.New, f.end-op.Start+op.New
		t.fresh = t.fresh.Replace(f.start, f.end, f)
	}
	for key, p := range pages {
		t.pages[key-op.Start+op.New] = p
	}
}

// drop forgets the pages of a range. With a tick other than 0 they are zero from then on, where they are no file's.
func (t *table[P]) drop(start, end uint64, tick uint32) {
	t.within(start, end, t.remove)
	if tick == 0 {
		t.fresh = t.fresh.Replace(start, end)
		return
	}
	t.fresh = t.fresh.Replace(start, end, fresh{start, end, tick})
}

// within calls f for the keys of pages in [start, end), with whichever is less work. f may remove them.
func (t *table[P]) within(start, end uint64, f func(key uint64)) {
	if (end-start)/pageSize > uint64(len(t.pages)) {
		for key := range t.pages {
			if key >= start && key < end {
				f(key)
			}
		}
		return
	}
	for key := start; key < end; key += pageSize {
		if t.pages[key] != nil {
			f(key)
		}
	}
}

// work is what within takes, in bytes of work as budgets count them.
func (t *table[P]) work(start, end uint64) int64 {
	if start >= end {
		return 0
	}
	const each = 16
	return each * int64(min((end-start)/pageSize, uint64(len(t.pages))))
}
