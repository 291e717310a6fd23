package x86

import (
	"slices"
	"strings"
)

// Decoded code. A block is a run of instructions up to an unconditional branch,
// a system or string instruction, a breakpoint, the end of its page, or
// maxBlock; only its last instruction may reach into the next page. It goes on
// behind conditional branches, each of which is an exit when taken. Blocks are found by address in a direct-mapped array, then in a
// table per page, and exits point to the next block once linked.
//
// A block remembers the identity (Bus.CodeID) of the page or pages it was
// decoded from, and the epoch in which that was last compared. Whatever may
// change code (a store to a page that is not in the write cache, FlushTLB)
// begins a new epoch, so that the first execution after it compares again.

const (
	maxBlock     = 64
	codeHashSize = 1 << 14
	// maxExits bounds the direct exits of a block; a power of two.
	maxExits = 8
	// maxCached bounds the decoded instructions that are kept.
	maxCached = 5 << 18
)

// block is what the run loop touches on its way in. The instructions follow it
// in memory (see newBlock), and what the loop asks of the first of them is in
// the same cache line.
type block struct {
	epoch uint64 // last validated; 0 when there is a breakpoint on it, it is counted, or executed alone
	pc    uint64 // where it starts
	n     uint64 // instructions, when it runs to its end
	last  *block // where the indirect branch at its end led last
	*blockRest
}

// blockRest is what the run loop asks for less often, or on its way out.
type blockRest struct {
	exits [maxExits]blockExit
	insts []decoded // as decoded; op.idx is the place of its (first) one

	// A block with a breakpoint, or that is counted, keeps epoch 0, so that the run loop never
	// goes on with it by itself; checked is when it was last validated.
	checked uint64

	brk  bool // a breakpoint stands at pc
	free bool // entries are not counted (cold.go)
	heat uint8
	rep  bool     // with brk: its first instruction is a string instruction with REP
	tag  uint32   // of who is told of runs (runs.go)
	tags []uint32 // of each instruction, of who is told of all (trace.go)
	page [2]*codePage
	id   [2]uint64
}

// blockExit is a way out of a block to a known address: exit 0 is its end,
// the others are taken branches.
type blockExit struct {
	next   *block // what starts at target, once linked
	target uint64
	n      uint64 // instructions retired on the way
}

type codePage struct {
	base   uint64
	id     uint64
	epoch  uint64 // in which id was asked for
	blocks map[uint16]*block
}

type codeCache struct {
	epoch uint64 // never 0
	insts int    // decoded and kept

	counts   bool // entries of blocks, up to hotAfter (cold.go)
	runsCold bool // RunCold does
	hotAfter uint8
	isHot    func(pc uint64) bool
	leftHot  bool // the loop was left because the next block is hot
	alone    bool // the loop is left behind each block (runs.go)

	hash  [codeHashSize]*block
	pages map[uint64]*codePage
}

// codeHash is the place of pc in codeCache.hash.
func codeHash(pc uint64) uint64 { return (pc ^ pc>>13) & (codeHashSize - 1) }

// FlushCode forgets all decoded instructions.
func (c *CPU) FlushCode() {
	c.engine.Reset(c)
}

// codePage returns the page of pc with its identity up to date.
func (c *CPU) codePage(pc uint64) *codePage {
	base := pc &^ (pageSize - 1)
	p := c.code.pages[base]
	if p == nil {
		if c.code.pages == nil {
			c.code.pages = map[uint64]*codePage{}
		}
		p = &codePage{base: base, blocks: map[uint16]*block{}}
		c.code.pages[base] = p
	}
	c.refresh(p)
	return p
}

// refresh asks for the identity of a page once an epoch. The Bus marks the
// page as code by that, so stores to it, by whatever address, must not be in
// the write cache from before.
func (c *CPU) refresh(p *codePage) {
	if p.epoch == c.code.epoch {
		return
	}
	id := c.Bus.CodeID(p.base)
	if id != 0 {
		c.Bus.Translate(p.base, Exec) // the Bus notes what is executed
	}
	if id != p.id {
		c.wfills.empty(&c.wtlb)
		p.id = id
		for _, b := range p.blocks {
			b.drop()
		}
		clear(p.blocks)
	} else {
		i := p.base >> 12 & tlbMask
		c.wtlb[i] = tlbEntry{base: emptyBase(i)}
	}
	p.epoch = c.code.epoch
}

// valid reports whether b is still what memory holds.
func (c *CPU) valid(b *block) bool {
	if b.epoch == c.code.epoch || b.checked == c.code.epoch {
		return true
	}
	for i, p := range b.page {
		if p == nil {
			continue
		}
		c.refresh(p)
		if p.id == 0 || p.id != b.id[i] {
			return false
		}
	}
	c.validated(b)
	return true
}

// drop makes b invalid for good: exits that lead to it are linked anew.
func (b *block) drop() {
	b.epoch, b.checked = 0, 0
	b.id[0] = 0 // no page that can be executed has this identity
}

func (c *CPU) validated(b *block) {
	if b.brk || c.isCounted(b) || c.code.alone {
		b.checked = c.code.epoch
	} else {
		b.epoch = c.code.epoch
	}
	if c.OnCode != nil {
		c.OnCode(b.pc, b.exits[0].target)
	}
}

// enter returns the valid block at pc, or nil when there is no instruction
// that can be executed there; stepping then says why.
func (c *CPU) enter(pc uint64) *block {
	b := c.find(pc)
	if b == nil && c.OnCode != nil {
		c.OnCode(pc, pc+1)
	}
	return b
}

// find is enter without a call of OnCode for a pc where nothing can be executed.
func (c *CPU) find(pc uint64) *block {
	h := &c.code.hash[codeHash(pc)]
	if b := *h; b != nil && b.pc == pc && c.valid(b) {
		return b
	}
	if !canonical(pc) {
		return nil
	}
	if c.code.insts > maxCached {
		c.FlushCode()
	}
	p := c.codePage(pc)
	if p.id == 0 {
		return nil
	}
	b := p.blocks[uint16(pc&(pageSize-1))]
	if b == nil || !c.valid(b) {
		b = c.build(p, pc)
		if b == nil {
			return nil
		}
		p.blocks[uint16(pc&(pageSize-1))] = b
	}
	*h = b
	return b
}

// link returns the block at RIP, where x leads, and remembers it, or nil when
// the outer loop must have a look.
func (c *CPU) link(x *blockExit) *block {
	if c.code.alone {
		return nil
	}
	nb := x.next
	if nb == nil || nb.checked != c.code.epoch {
		if nb = c.enter(c.RIP); nb == nil {
			return nil
		}
		x.next = nb
	}
	if nb.brk && !c.sifted(nb) || c.isHot(nb, 1) {
		return nil
	}
	return nb
}

// build decodes the block at pc, which lies in p. It returns nil when the
// first instruction cannot be decoded or fetched.
func (c *CPU) build(p *codePage, pc uint64) *block {
	text, fast := c.Bus.Translate(p.base, Exec)
	if text == nil {
		return nil
	}
	_, brk := c.breaks[pc]
	rest := &blockRest{brk: brk, page: [2]*codePage{p}, id: [2]uint64{p.id}}
	insts := c.buildBuf[:0]
	at, branches := pc, 0
	for len(insts) < maxBlock && at-p.base < pageSize {
		if _, hit := c.breaks[at]; hit && at != pc {
			break
		}
		insts = append(insts, decoded{})
		in := &insts[len(insts)-1]
		code := text[at-p.base:]
		if !fast { // some bytes may not be known
			n, _ := c.Bus.Fetch(at, c.scratch[:min(maxInst, len(code))])
			code = c.scratch[:n]
		}
		st := decodeInst(code, at, c.ID, &in.Inst)
		if st == decodeShort {
			if len(insts) == 1 && c.decodeAt(at, &in.Inst) == ExitNone {
				if q := c.codePage(at + uint64(in.Len) - 1); q != p {
					rest.page[1], rest.id[1] = q, q.id
				}
				st = decodeOK
			}
		}
		if st != decodeOK {
			insts = insts[:len(insts)-1]
			break
		}
		in.fn = c.handler(&in.Inst)
		at += uint64(in.Len)
		if in.Flags&(InstEnd|instStop) != 0 && !goesOn(&in.Inst, at, &branches) {
			break
		}
	}
	if len(insts) == 0 {
		return nil
	}
	return c.finish(pc, at, insts, rest)
}

// goesOn reports whether a block continues behind in, which ends at end: behind
// a conditional branch, as long as there is room for its exit.
func goesOn(in *Inst, end uint64, branches *int) bool {
	if !in.isJcc() || in.Size == 2 || !canonical(end+in.Imm) || *branches >= maxExits-2 {
		return false
	}
	*branches++
	return true
}

// isJcc reports whether in is a conditional branch (70 to 7F, 0F 80 to 8F).
func (in *Inst) isJcc() bool { return in.row().Handler == "intJcc" }

// finish makes the block of insts, which stand from pc to end: it binds them to
// cases of the loop and optimises those.
func (c *CPU) finish(pc, end uint64, insts []decoded, rest *blockRest) *block {
	n := uint64(len(insts))
	rest.insts = slices.Clone(insts)
	rest.exits[0] = blockExit{target: end, n: n}
	ops := c.opBuf[:0]
	at, exits := pc, uint8(1)
	for i := range insts {
		in := &insts[i].Inst
		o := bind(in)
		o.off, o.idx = uint16(at-pc), uint8(i)
		at += uint64(in.Len)
		if in.Flags&InstEnd != 0 && in.relative() && in.Size != 2 {
			if t := at + in.Imm; canonical(t) {
				o.exit = exits
				rest.exits[exits] = blockExit{target: t, n: uint64(i) + 1}
				exits++
			} else {
				o.kind = kGeneric
			}
		}
		ops = append(ops, o)
	}
	ops = fuse(ops, insts)
	dropDeadFlags(ops, insts)
	specialise(ops)
	b, kept := newBlock(len(ops) + 1)
	b.pc, b.n, b.blockRest = pc, n, rest
	copy(kept, ops)
	kept[len(ops)].kind = kEnd
	c.code.insts += len(insts)
	b.rep = b.brk && insts[0].isRep()
	c.validated(b)
	return b
}

// sized is a block with room for instructions behind it.
type sized[A any] struct {
	block
	_ A
}

func newSized[A any]() *block { return &new(sized[A]).block }

// padded fills a block up to a multiple of a cache line.
type padded[A any] struct {
	_ A
	_ [24]byte
}

// blockSize is how many instructions a block has room for, and how it is made.
type blockSize struct {
	n    int
	make func() *block
}

// blockSizes are multiples of a cache line that are size classes of Go's
// allocator, which aligns them; it takes eight bytes from those above 512. The
// smallest are filled up to one.
var blockSizes = []blockSize{
	{2, newSized[padded[[2]op]]},
	{4, newSized[padded[[4]op]]},
	{6, newSized[padded[[6]op]]},
	{8, newSized[[8]op]},
	{10, newSized[[10]op]},
	{14, newSized[[14]op]},
	{18, newSized[[18]op]},
	{22, newSized[[22]op]},
	{30, newSized[[30]op]},
	{maxBlock + 1, newSized[[maxBlock + 1]op]},
}

// newBlock returns a block and the n instructions that follow it in memory, at
// most maxBlock and a sentinel.
func newBlock(n int) (*block, []op) {
	i := slices.IndexFunc(blockSizes, func(s blockSize) bool { return n <= s.n })
	b := blockSizes[i].make()
	return b, opsOf(b, n)
}

// relative reports whether in is a branch to a displacement.
func (in *Inst) relative() bool {
	r := in.row()
	return len(r.Operands) == 1 && strings.HasPrefix(r.Operands[0], "rel")
}

// goesOn has accesses told where the handler of o, which returned e, has left no other reason to leave b, and reports
// whether the loop may go on with b. Else it must leave.
func (c *CPU) goesOn(b *block, o *op, e Exit) bool {
	if e != ExitNone || c.stop != stopTell {
		return false
	}
	before := c.Retired // the loop counts at the block's end
	c.retire(b, o)
	c.stop = 0
	c.log.tell()
	c.Retired = before
	return c.stop == 0 && !c.interrupt.Load()
}

// retire brings the state up to date behind o, which has been executed.
func (c *CPU) retire(b *block, o *op) {
	in := &b.insts[o.idx].Inst
	c.Retired += uint64(o.idx) + 1
	if in.Flags&InstEnd == 0 {
		c.RIP = b.pc + uint64(o.off) + uint64(in.Len)
	}
}

// leave ends a block at o, whose handler returned e. The branch of a fused pair
// is left to the next block.
func (c *CPU) leave(b *block, o *op, e Exit) Exit {
	if e != ExitNone {
		c.Retired += uint64(o.idx)
		if e == ExitSyscall {
			c.Retired++
		}
		if e == ExitFault {
			c.refineFault(&b.insts[o.idx].Inst)
		}
		c.tell(e)
		return e
	}
	c.retire(b, o)
	c.tell(e)
	owner := c.stop&stopOwner != 0
	c.stop = 0
	if owner {
		return ExitAttention
	}
	return ExitNone
}
