package script

import (
	"maps"
	"slices"

	"go.starlark.net/starlark"

	"vplay/checkpoint"
	"vplay/replay/analysis/heap"
	"vplay/replay/observe"
)

// Memory that malloc's family hands out anew is another thread's from then on, without a word between the two
// threads, so that a detector forgets what was done to it. Calls of malloc are too many for callbacks of the script's.

// raceBlock is a block that has been allocated and not freed.
type raceBlock struct {
	size uint64
	at   checkpoint.Position // of the call
	site uint64              // where it returned to
}

// raceBlocks are the blocks of a process.
type raceBlocks struct {
	of    map[uint64]raceBlock // by address
	noted map[uint64][]uint64  // addresses that the script wants to hear the end of, by page
	count int                  // of them
}

// Bounds, for recordings that are made to do harm.
const (
	maxRaceBlocks = 1 << 22
	maxNoted      = 1 << 20
)

// followBlocks asks for the calls of malloc's family.
func (x *races) followBlocks(at string) {
	h := &x.r.hooks
	functions := heap.Allocators()
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		f := functions[name]
		p := &place{by: "races", names: []string{name}, optional: true, at: at}
		if f.Frees {
			p.kind, p.native = "call", func(v *observe.View) { x.v = v; x.gone(v, v.CPU().R[observe.ArgumentRegisters[0]]) }
			h.places = append(h.places, p)
			continue
		}
		p.kind, p.left = "return", func(v *observe.View, c *callRecord, result uint64) { x.v = v; x.allocated(v, f, c, result) }
		h.returns = append(h.returns, p)
	}
	// All blocks of C++ would come from one place in its library: who has called that is asked for.
	h.returns = append(h.returns, &place{by: "races", names: heap.News(), optional: true, at: at, kind: "return", left: func(v *observe.View, c *callRecord, result uint64) {
		if b, has := x.blocks.of[result]; has {
			b.at, b.site = c.at, v.CPU().RIP
			x.blocks.of[result] = b
		}
	}})
}

// allocated is told of the return of one of malloc's family but free.
func (x *races) allocated(v *observe.View, f *heap.Function, c *callRecord, result uint64) {
	size, ok := f.Asked(c.args[:])
	if !ok {
		return
	}
	if result, ok = f.Block(v, c.args[:], result); !ok {
		return
	}
	if f.Resizes && c.args[0] != 0 {
		if old, has := x.blocks.of[c.args[0]]; has && result == c.args[0] {
			if size > old.size {
				x.d.Clear(result+old.size, result+size)
			}
			old.size = size
			x.blocks.of[result] = old
			return
		}
		if result == 0 && size != 0 {
			return // it has failed
		}
		x.gone(v, c.args[0])
	}
	x.gone(v, result)
	if result == 0 || size == 0 || result+size < result || len(x.blocks.of) >= maxRaceBlocks {
		return
	}
	x.d.Clear(result, result+size)
	x.blocks.of[result] = raceBlock{size, c.at, v.CPU().RIP}
}

// gone is told that the block at an address is none any more.
func (x *races) gone(v *observe.View, addr uint64) {
	b, has := x.blocks.of[addr]
	if !has {
		return
	}
	delete(x.blocks.of, addr)
	x.d.Clear(addr, addr+b.size)
	if x.blocks.count == 0 {
		return
	}
	first, last := addr>>12, (addr+b.size-1)>>12
	var pages []uint64
	if last-first < uint64(len(x.blocks.noted)) {
		for n := first; n <= last; n++ {
			pages = append(pages, n)
		}
	} else {
		pages = slices.Sorted(maps.Keys(x.blocks.noted))
	}
	for _, n := range pages {
		if first <= n && n <= last && x.blocks.noted[n] != nil {
			x.tellGone(v, n, addr, addr+b.size)
		}
	}
}

// tellGone tells the script of addresses of a page that it has noted.
func (x *races) tellGone(v *observe.View, page, start, end uint64) {
	var gone []uint64
	list := slices.DeleteFunc(x.blocks.noted[page], func(a uint64) bool {
		if a < start || a >= end {
			return false
		}
		gone = append(gone, a)
		return true
	})
	x.blocks.count -= len(gone)
	if x.blocks.noted[page] = list; len(list) == 0 {
		delete(x.blocks.noted, page)
	}
	for _, a := range gone {
		x.r.tell(x.freed, v, &moment{kind: "freed", addr: a})
	}
}

// note is note(address): the script is called when the block that has it is freed.
func (x *races) note(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a, err := oneAddress("note", args, kwargs)
	if err != nil {
		return nil, err
	}
	if x.freed != nil && x.blocks.count < maxNoted && !slices.Contains(x.blocks.noted[a>>12], a) {
		x.blocks.noted[a>>12] = append(x.blocks.noted[a>>12], a)
		x.blocks.count++
	}
	return starlark.None, nil
}

// block is block(address): (start, size, position, return address) of the block that has it, None where it is in none.
func (x *races) block(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a, err := oneAddress("block", args, kwargs)
	if err != nil {
		return nil, err
	}
	for start, b := range x.blocks.of {
		if a >= start && a-start < b.size {
			return starlark.Tuple{starlark.MakeUint64(start), starlark.MakeUint64(b.size), starlark.String(b.at.String()), starlark.MakeUint64(b.site)}, nil
		}
	}
	return starlark.None, nil
}
