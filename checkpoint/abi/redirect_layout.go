package abi

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Where the outputs of a redirected call lie in the scratch: first the blocks,
// then the outputs, those that overlap as one. Addresses keep their remainder, by the
// page for what may be read without the page cache (O_DIRECT wants whole sectors), else by
// the largest alignment that a processor's instruction or a kernel's struct asks for.

const (
	smallAlign  = 64
	directAlign = PageSize
	directFrom  = 512 // no device reads less at once
)

// layOut gives everything its place.
func (d *redirector) layOut(scratch Range) (*Redirection, error) {
	if d.why != "" {
		return nil, &NotRedirectedError{d.why}
	}
	r := &Redirection{Args: d.args, counts: d.counts}
	if len(d.wants) == 0 && !d.hasPieces() {
		return r, nil
	}
	if scratch.Addr >= TaskSize || scratch.Len > TaskSize-scratch.Addr {
		return nil, &NotRedirectedError{whyScratch}
	}
	next := scratch.Addr
	blockAt := make([]uint64, len(d.blocks))
	for i := range d.blocks {
		blockAt[i] = placeAfter(next, d.blocks[i].from, smallAlign)
		next = blockAt[i] + uint64(len(d.blocks[i].data))
	}
	to, next := d.placeWants(next)
	if r.Size = next - scratch.Addr; r.Size > scratch.Len {
		return nil, &ScratchError{(r.Size + PageSize - 1) / PageSize * PageSize}
	}
	if d.overlapsOutput(scratch.Addr, scratch.Len) || slices.ContainsFunc(d.blocks, func(b block) bool {
		return overlap(b.from, uint64(len(b.data)), scratch.Addr, scratch.Len)
	}) {
		return nil, &NotRedirectedError{whyScratch}
	}
	for i := range d.blocks {
		d.put(r, d.blocks[i].at, blockAt[i])
	}
	for i := range d.wants {
		d.put(r, d.wants[i].at, to[i])
	}
	for c, at := range d.words {
		r.counts[c].word = blockAt[at.block] + uint64(at.off)
	}
	for i := range d.wants {
		if !d.moveWant(r, &d.wants[i], to[i]) {
			return nil, &NotRedirectedError{whyFault}
		}
	}
	for i := range d.blocks { // last: the kernel writes what it read of a header last
		b := &d.blocks[i]
		r.Init = append(r.Init, Write{blockAt[i], b.data})
		for _, p := range b.pieces {
			r.Moved = append(r.Moved, Move{b.from + p.off, blockAt[i] + p.off, p.n, p.rule, p.count, b.data[p.off : p.off+p.n]})
		}
	}
	return r, nil
}

// hasPieces reports whether the kernel writes to a block.
func (d *redirector) hasPieces() bool {
	return slices.ContainsFunc(d.blocks, func(b block) bool { return len(b.pieces) > 0 })
}

// placeAfter returns the first address from at on that has the remainder of
// addr.
func placeAfter(at, addr, align uint64) uint64 { return at + (addr-at)%align }

// placeWants returns each output's address in the scratch, and where they end.
func (d *redirector) placeWants(next uint64) (to []uint64, end uint64) {
	order := make([]int, len(d.wants))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.wants[a].addr, d.wants[b].addr) })
	to = make([]uint64, len(d.wants))
	for i := 0; i < len(order); {
		first, k := &d.wants[order[i]], i+1
		last := first.addr + first.n // where those that overlap end
		for k < len(order) && d.wants[order[k]].addr < last {
			last = max(last, d.wants[order[k]].addr+d.wants[order[k]].n)
			k++
		}
		align := uint64(smallAlign)
		if last-first.addr >= directFrom {
			align = directAlign
		}
		at := placeAfter(next, first.addr, align)
		for ; i < k; i++ {
			to[order[i]] = at + d.wants[order[i]].addr - first.addr
		}
		next = at + last - first.addr
	}
	return to, next
}

// put writes an address where the kernel reads it.
func (d *redirector) put(r *Redirection, at slot, addr uint64) {
	if at.block == inArgs {
		r.Args[at.off] = addr
		return
	}
	binary.LittleEndian.PutUint64(d.blocks[at.block].data[at.off:], addr)
}

// moveWant says what is moved for one output; false when its content cannot be
// read.
func (d *redirector) moveWant(r *Redirection, w *want, to uint64) bool {
	if w.rule == moveCounted {
		r.Moved = append(r.Moved, Move{w.addr, to, w.n, w.rule, w.count, nil})
		return true
	}
	old := make([]byte, w.n)
	if d.m == nil || d.m.ReadAt(w.addr, old) != len(old) {
		return false
	}
	r.Init = append(r.Init, Write{to, old})
	if w.stride == 0 {
		r.Moved = append(r.Moved, Move{w.addr, to, w.n, w.rule, w.count, old})
		return true
	}
	for off := w.each.off; off+w.each.n <= w.n; off += w.stride {
		r.Moved = append(r.Moved, Move{w.addr + off, to + off, w.each.n, w.each.rule, w.each.count, old[off : off+w.each.n]})
	}
	return true
}
