package dwarf

import "debug/dwarf"

// The blocks of a function: the places where other functions were inlined, and lexical blocks. Who asks for the blocks
// around one address of a large function, thousands of times, has them read once.

// block is a lexical block or an inlined function.
type block struct {
	entry  dwarf.Offset
	parent int32 // in blockTree.blocks; -1: the function
	from   int32 // of its ranges, in blockTree.ranges; they end where those of the next block begin
	// inlined is the function that was inlined here, nil before it was asked for; lexical says that there is none.
	inlined *Inlined
	lexical bool
}

// blockTree is the blocks of a function in the order of their entries: one stands behind the block that it is in.
type blockTree struct {
	blocks []block
	ranges [][2]uint64
}

// blocksAtOnce is how many blocks one goes over while a byte is read.
const blocksAtOnce = 16

// blockBytes and blockRangeBytes are what a block and a range take in memory.
const (
	blockBytes      = 32
	blockRangeBytes = 16
)

// blocksAround calls visit for the blocks around pc in the function whose entry is at an offset, the outermost first.
func (m *Module) blocksAround(function dwarf.Offset, pc uint64, visit func(b *block)) {
	if t := m.blocksOf(function); t != nil && m.meter.spend(1+len(t.blocks)/blocksAtOnce) == nil {
		t.around(pc, visit)
	}
}

// blocksOf returns the blocks of the function whose entry is at an offset; nil where the budget does not allow all.
func (m *Module) blocksOf(function dwarf.Offset) *blockTree {
	t, ok := m.blocks[function]
	if ok {
		return t
	}
	if t = m.readBlocks(function); t != nil {
		if m.blocks == nil {
			m.blocks = map[dwarf.Offset]*blockTree{}
		}
		m.blocks[function] = t
	}
	return t
}

// readBlocks is blocksOf for the first time.
func (m *Module) readBlocks(function dwarf.Offset) *blockTree {
	r := m.data.Reader()
	r.Seek(function)
	t := &blockTree{}
	if e, err := r.Next(); err != nil || e == nil || !e.Children {
		return t
	}
	within := []int32{-1} // the blocks that the reader is in
	for n := 0; len(within) > 0 && n < maxEntries; n++ {
		e, err := r.Next()
		switch {
		case m.meter.isSpent():
			return nil
		case err != nil || e == nil:
			return t
		case e.Tag == 0:
			within = within[:len(within)-1]
			continue
		case e.Tag != dwarf.TagInlinedSubroutine && e.Tag != dwarf.TagLexDwarfBlock || len(within) >= maxDepth:
			r.SkipChildren()
			continue
		}
		rs, err := m.data.Ranges(e)
		if err != nil {
			rs = nil // it is around nothing
		}
		if m.meter.take(blockBytes+blockRangeBytes*len(rs)) != nil {
			return nil
		}
		from := int32(len(t.ranges))
		t.ranges = append(t.ranges, rs...)
		t.blocks = append(t.blocks, block{entry: e.Offset, parent: within[len(within)-1], from: from, lexical: e.Tag == dwarf.TagLexDwarfBlock})
		if e.Children {
			within = append(within, int32(len(t.blocks)-1))
		}
	}
	return t
}

// rangesOf returns the ranges of block i.
func (t *blockTree) rangesOf(i int) [][2]uint64 {
	if i+1 < len(t.blocks) {
		return t.ranges[t.blocks[i].from:t.blocks[i+1].from]
	}
	return t.ranges[t.blocks[i].from:]
}

// around calls visit for the blocks around pc, the outermost first.
func (t *blockTree) around(pc uint64, visit func(b *block)) {
	in := int32(-1)
	for i := range t.blocks {
		b := &t.blocks[i]
		if b.parent != in {
			continue
		}
		for _, r := range t.rangesOf(i) {
			if pc >= r[0] && pc < r[1] {
				in = int32(i)
				visit(b)
				break
			}
		}
	}
}

// inlinedIn returns the function that was inlined at b, in the function that pc is in; nil for a lexical block, and where the budget does not allow it.
func (m *Module) inlinedIn(b *block, pc uint64) *Inlined {
	if b.lexical || b.inlined != nil {
		return b.inlined
	}
	r := m.data.Reader()
	r.Seek(b.entry)
	e, err := r.Next()
	if err != nil || e == nil {
		return nil
	}
	in := m.inlinedBy(e, m.filesAt(pc))
	if m.meter.isSpent() || m.meter.take(inlinedBytes+len(in.Name)) != nil {
		return &in
	}
	b.inlined = &in
	return &in
}

// inlinedBytes is what an Inlined takes in memory beside its name.
const inlinedBytes = 48
