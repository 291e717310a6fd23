package export

import (
	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/observe"
)

// How much memory a program has touched: the pages that it, or the kernel for it, has read, written or executed since the export's beginning,
// without those that it has unmapped or dropped since. That is what a program with no pages beforehand would have resident, as the kernel brings a
// page at its first access; what it reads ahead, or swaps out, no recording knows.

// touchedList is a list that is told of it.
type touchedList interface {
	touched(bytes uint64, now uint64)
}

// touched are the pages, by their keys: those of private memory are addresses.
type touched struct {
	to    touchedList
	pages map[uint64]struct{}
	sets  *mem.Sets // of the present interval's memory, since the last look
	at    uint64    // when it was told last
	told  int       // pages then
	of    *program
}

// maxTouched bounds the pages, of recordings that are made to do harm: 64 GiB of memory.
const maxTouched = 1 << 24

func newTouched(to touchedList) *touched {
	return &touched{to: to, pages: map[uint64]struct{}{}}
}

// begin goes on with another interval, whose pages come to sets. A new program has touched nothing yet.
func (x *touched) begin(sets *mem.Sets, of *program) {
	if x.of != of {
		x.of = of
		clear(x.pages)
	}
	x.sets = sets
}

// ran looks whether there are new pages, behind each run of instructions.
func (x *touched) ran(now uint64) {
	if now-x.at >= leastStep && len(x.sets.Read)+len(x.sets.Written)+len(x.sets.Executed) > 0 {
		x.look(now)
	}
}

// look takes what was noted, and tells of it.
func (x *touched) look(now uint64) {
	for _, set := range []map[uint64]struct{}{x.sets.Read, x.sets.Written, x.sets.Executed} {
		for key := range set {
			if len(x.pages) < maxTouched {
				x.pages[key] = struct{}{}
			}
		}
		clear(set)
	}
	clear(x.sets.Objects)
	if len(x.pages) != x.told || x.at == 0 {
		x.at, x.told = now, len(x.pages)
		x.to.touched(uint64(len(x.pages))*mem.PageSize, now)
	}
}

// mapped takes the pages away that an event has unmapped or dropped. It was applied.
func (x *touched) mapped(v *observe.View, e *checkpoint.Event, now uint64) {
	x.look(now)
	for i := range e.Maps {
		switch op := &e.Maps[i]; op.Kind {
		case checkpoint.MapOpMap, checkpoint.MapOpUnmap, checkpoint.MapOpDrop:
			x.forget(op.Start, op.End, func(uint64) {})
		case checkpoint.MapOpMove:
			var moved []uint64
			x.forget(op.Start, op.End, func(a uint64) {
				if off := a - op.Start; off < op.NewEnd-op.New {
					moved = append(moved, op.New+off)
				}
			})
			x.forget(op.New, op.NewEnd, func(uint64) {})
			for _, a := range moved {
				x.pages[a] = struct{}{}
			}
		case checkpoint.MapOpProtect:
		}
	}
	space := v.Machine().Mem
	for key := range x.pages { // of shared memory those that are mapped nowhere any more
		if key >= mem.MaxUser && len(space.AddressesOf(key)) == 0 {
			delete(x.pages, key)
		}
	}
	x.look(now)
}

// forget takes the pages of a range away, and calls f for each.
func (x *touched) forget(start, end uint64, f func(a uint64)) {
	take := func(a uint64) {
		if _, ok := x.pages[a]; ok {
			delete(x.pages, a)
			f(a)
		}
	}
	if (end-start)/mem.PageSize < uint64(len(x.pages)) {
		for a := start; a < end; a += mem.PageSize {
			take(a)
		}
		return
	}
	for a := range x.pages {
		if a >= start && a < end {
			take(a)
		}
	}
}
