package x86

// Cold code, for engines that translate what is hot: the interpreter executes it block by block as ever, but counts how
// often each block is entered, and leaves where one is next that is worth translating. A block that is counted keeps epoch 0, as
// one with a breakpoint does, so that the loop asks link before it goes on with it; other blocks cost nothing.

// CountBlocks has blocks counted from now on: RunCold leaves at those that count for after, and at those
// at whose address isHot says so when they are entered first.
func (c *CPU) CountBlocks(after uint8, isHot func(pc uint64) bool) {
	c.code.counts, c.code.hotAfter, c.code.isHot = true, after, isHot
	c.code.epoch++
}

// isCounted reports whether entries of b are counted, while RunCold executes.
func (c *CPU) isCounted(b *block) bool { return c.code.counts && !b.free }

// isHot counts an entry of b, and reports whether it was hot before.
func (c *CPU) isHot(b *block, weight uint8) bool {
	if !c.code.runsCold || !c.isCounted(b) {
		return false
	}
	if b.heat >= c.code.hotAfter || b.heat == 0 && c.code.isHot(b.pc) {
		c.code.leftHot = true
		return true
	}
	b.heat = uint8(min(uint(b.heat)+uint(weight), uint(c.code.hotAfter)))
	return false
}

// RunCold executes by the interpreter, as a part of Engine.Run, until a block is next that is hot, or Run has something
// to look at. The entry of the block at RIP counts as so many. At least one instruction is executed, unless that block is hot. t, where it is
// not nil, is told of each.
func (c *CPU) RunCold(limit uint64, weight uint8, t *TraceEngine) (e Exit, hot bool) {
	c.code.runsCold = true
	defer func() { c.code.runsCold = false }()
	for {
		b := c.enter(c.RIP)
		if b != nil && c.isHot(b, weight) {
			return ExitNone, true
		}
		if b == nil || b.n > limit-c.Retired {
			return c.execOne(), false
		}
		weight, c.code.leftHot = 1, false
		goesOn := true
		if t != nil {
			e, goesOn = t.block(c, b)
		} else {
			e = c.runBlocks(b, limit)
		}
		if e != ExitNone || !goesOn || c.code.leftHot || c.MustLook(limit) {
			return e, c.code.leftHot
		}
	}
}

// NeverHot has the block at RIP counted no more: it is the interpreter's.
func (c *CPU) NeverHot() {
	b := c.enter(c.RIP)
	if b == nil || b.free {
		return
	}
	b.free = true
	if !b.brk {
		b.epoch = c.code.epoch
	}
}

// DecodedBlock are the instructions of a block, as they were decoded. They are the interpreter's: they must not be changed, nor kept when code is
// forgotten.
type DecodedBlock struct{ insts []decoded }

// Len returns how many instructions there are.
func (d DecodedBlock) Len() int { return len(d.insts) }

// At returns instruction i.
func (d DecodedBlock) At(i int) *Inst { return &d.insts[i].Inst }

// Decoded returns the block at pc where the interpreter has it, it is what memory holds, and it lies on one page. Else it is empty.
func (c *CPU) Decoded(pc uint64) DecodedBlock {
	p := c.code.pages[pc&^(pageSize-1)]
	if p == nil {
		return DecodedBlock{}
	}
	b := p.blocks[uint16(pc&(pageSize-1))]
	if b == nil || b.page[1] != nil || !c.valid(b) {
		return DecodedBlock{}
	}
	return DecodedBlock{b.insts}
}
