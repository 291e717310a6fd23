package script

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"go.starlark.net/starlark"

	"vplay/replay/mem"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// Which blocks of memory does nothing point to any more? It is asked as a leak checker asks it: pointers are looked
// for in the registers of all threads, in their stacks, and in all other memory that the program
// can write and that is in no block; then in the blocks that these point to. A pointer to anywhere
// in a block counts.

// span is a range of addresses.
type span struct{ start, end uint64 }

// reach is a search for pointers.
type reach struct {
	ctx    context.Context
	v      *observe.View
	blocks []span // by start, that do not overlap
	others []span // memory that is not looked at: blocks that were freed
	found  []bool // by block
	todo   []int  // blocks that are found and not looked through
	pages  int
}

// Bounds of such a search: pages looked at, and blocks.
const (
	maxPages  = 8 << 20 // 32 GiB
	maxBlocks = 8 << 20
)

var errTooLarge = errors.New("unreferenced: the program has more memory than is looked through")

// unreferenced is unreferenced(blocks, freed={}): the addresses of the blocks, of a dictionary from address to
// size, that nothing points to, sorted. The ranges of freed, another such dictionary, are not looked through.
func (m *moment) unreferenced(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var blocks, freed *starlark.Dict
	if err := starlark.UnpackArgs("unreferenced", args, kwargs, "blocks", &blocks, "freed?", &freed); err != nil {
		return nil, err
	}
	x := &reach{ctx: m.r.ctx, v: m.v}
	var err error
	if x.blocks, err = spansOf(blocks); err != nil {
		return nil, err
	}
	if freed != nil {
		if x.others, err = spansOf(freed); err != nil {
			return nil, err
		}
	}
	x.found = make([]bool, len(x.blocks))
	if err := x.search(); err != nil {
		return nil, err
	}
	var out []starlark.Value
	for i, found := range x.found {
		if !found {
			out = append(out, starlark.MakeUint64(x.blocks[i].start))
		}
	}
	return starlark.NewList(out), nil
}

// spansOf reads a dictionary from address to size.
func spansOf(d *starlark.Dict) ([]span, error) {
	if d.Len() > maxBlocks {
		return nil, errTooLarge
	}
	sizes := make(map[uint64]uint64, d.Len())
	for _, kv := range d.Items() {
		a, isAddr := kv[0].(starlark.Int)
		n, isSize := kv[1].(starlark.Int)
		if !isAddr || !isSize {
			return nil, errors.New("unreferenced: it takes dictionaries from address to size")
		}
		start, ok := a.Uint64()
		size, also := n.Uint64()
		if !ok || !also || start+size < start {
			return nil, errors.New("unreferenced: an address and its size are no range")
		}
		sizes[start] = size
	}
	return spans(sizes), nil
}

// spans returns blocks, from address to size, as ranges by address.
func spans(blocks map[uint64]uint64) []span {
	out := make([]span, 0, len(blocks))
	for start, size := range blocks {
		out = append(out, span{start, start + max(size, 1)})
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(out); i++ { // what overlaps belongs to the later one
		out[i-1].end = min(out[i-1].end, out[i].start)
	}
	return out
}

// at returns the index of the span of l that holds an address, -1 where none does.
func at(l []span, a uint64) int {
	i, exact := slices.BinarySearchFunc(l, a, func(s span, a uint64) int { return cmp.Compare(s.start, a) })
	if !exact {
		i--
	}
	if i >= 0 && a < l[i].end {
		return i
	}
	return -1
}

// search finds all blocks that are pointed to.
func (x *reach) search() error {
	stacks := map[uint64]uint64{} // stack pointers, by the start of their regions
	for _, t := range x.v.Machine().Threads() {
		for _, r := range t.State.R {
			x.word(r)
		}
		if r, ok := x.v.Machine().Mem.Find(t.State.R[x86.RSP]); ok {
			if sp, has := stacks[r.Start]; !has || t.State.R[x86.RSP] < sp {
				stacks[r.Start] = t.State.R[x86.RSP]
			}
		}
	}
	for _, r := range x.v.Machine().Mem.Regions() {
		if r.Prot&mem.ProtWrite == 0 {
			continue
		}
		start := r.Start
		if sp, isStack := stacks[r.Start]; isStack {
			start = (sp - redZone) &^ 7 // below lies what is no longer there
		}
		if err := x.memory(start, r.End, true); err != nil {
			return err
		}
	}
	for len(x.todo) > 0 {
		b := x.blocks[x.todo[len(x.todo)-1]]
		x.todo = x.todo[:len(x.todo)-1]
		if err := x.memory((b.start+7)&^7, b.end, false); err != nil {
			return err
		}
	}
	return nil
}

// redZone is what a function may use below the stack pointer (System V ABI, AMD64 supplement, 3.2.2).
const redZone = 128

// word looks at a word that may be a pointer.
func (x *reach) word(w uint64) {
	if i := at(x.blocks, w); i >= 0 && !x.found[i] {
		x.found[i] = true
		x.todo = append(x.todo, i)
	}
}

// memory looks through the words from start to end, as far as they are known; with outside, those in no block alone.
func (x *reach) memory(start, end uint64, outside bool) error {
	space := x.v.Machine().Mem
	var page mem.Page
	for a := start; a < end; {
		if x.pages++; x.pages > maxPages {
			return errTooLarge
		}
		if x.pages%4096 == 0 && x.ctx.Err() != nil {
			return x.ctx.Err()
		}
		base := a &^ (mem.PageSize - 1)
		next := min(base+mem.PageSize, end)
		known, _ := space.PeekPage(base, &page)
		for ; a+8 <= next; a += 8 {
			if outside && (at(x.blocks, a) >= 0 || at(x.others, a) >= 0) {
				continue
			}
			if off := a - base; off+8 <= uint64(known) {
				x.word(binary.LittleEndian.Uint64(page[off:]))
			} else if known > 0 || space.IsWritten(base) { // behind a hole of a page that is known in part
				var b [8]byte
				if n, _ := space.Peek(a, b[:]); n == len(b) {
					x.word(binary.LittleEndian.Uint64(b[:]))
				}
			} else {
				break
			}
		}
		a = base + mem.PageSize
	}
	return nil
}
