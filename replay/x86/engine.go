package x86

// Engine executes guest code for CPU.Run, which looks around between two calls:
// at the limit, Interrupt, breakpoints and TF. There are two, the generated loop
// over decoded blocks and one instruction at a time; a compiler to host code is
// package jit. All state is the CPU's, so engines can take turns at any
// instruction.
type Engine interface {
	// Run executes at least one instruction from c.RIP on, or leaves with the
	// reason why that one cannot be executed. It goes on until something of this
	// comes first:
	//
	//   - c.Retired equals limit, which it never passes: ExitNone.
	//   - The next instruction has a breakpoint; one at the first is passed: ExitNone.
	//   - A millisecond or so has passed, or it would rather have the CPU look: ExitNone.
	//   - Attention was asked for: ExitAttention behind the instruction, or behind
	//     the iteration of a REP string instruction.
	//   - An instruction leaves: its exit, as of CPU.Run.
	//   - An instruction has set State.NotInUse's SSE bit, or State.Wide.Upper: ExitNone.
	//
	// State is exact when it returns. Preconditions: c.Retired < limit, TF is clear,
	// SSE is in use, and State.Wide.Upper is 0.
	Run(c *CPU, limit uint64) Exit

	// Invalidate says that the code on page, a page-aligned address, may have
	// changed, or may be other code by now; on all pages where page is AllPages.
	// It may come while Run executes an instruction. What was made of that code
	// must not be executed behind that instruction before Bus.CodeID has said that it is
	// the same.
	Invalidate(c *CPU, page uint64)

	// Breakpoint says that a breakpoint at pc was set or removed. What was made of
	// code that has an instruction there must be made anew.
	Breakpoint(c *CPU, pc uint64)

	// Reset forgets all that was made of code.
	Reset(c *CPU)
}

// RangeInvalidator is an Engine that keeps more than code of pages.
type RangeInvalidator interface {
	// InvalidateRange is Invalidate for all pages of [start, end).
	InvalidateRange(c *CPU, start, end uint64)
}

// PooledEngine is an Engine that takes memory of which there is only so much for all engines together.
type PooledEngine interface {
	// IsWanted reports whether others may soon need the memory that it has.
	IsWanted() bool
}

// AllPages stands for all pages in Engine.Invalidate.
const AllPages = 1 // no page begins there

// SetEngine has c execute by e from the next Run on.
func (c *CPU) SetEngine(e Engine) {
	c.engine = e
	e.Reset(c)
}

// Engine returns what executes c.
func (c *CPU) Engine() Engine { return c.engine }

// BlockEngine is the interpreter: the loop of run_gen.go over blocks of decoded
// instructions. Its blocks are the CPU's, for breakpoints and CPU.Sieve need them
// with every engine.
type BlockEngine struct{}

// Run implements Engine.
func (BlockEngine) Run(c *CPU, limit uint64) Exit {
	b := c.enter(c.RIP)
	if b == nil || b.n > limit-c.Retired {
		return c.execOne()
	}
	return c.runBlocks(b, min(limit, c.Retired+runSlice))
}

// Invalidate implements Engine.
func (BlockEngine) Invalidate(c *CPU, page uint64) {
	if page == AllPages || c.code.pages[page] != nil {
		c.code.epoch++
		c.stop |= stopCode
	}
}

// Breakpoint implements Engine: the blocks that pc lies in are decoded again. Those
// that ended there because of a breakpoint stay as they are.
func (BlockEngine) Breakpoint(c *CPU, pc uint64) {
	c.stop |= stopCode
	p := c.code.pages[pc&^(pageSize-1)]
	if p == nil {
		return
	}
	for off, b := range p.blocks {
		if b.pc <= pc && pc < b.exits[0].target {
			b.drop()
			delete(p.blocks, off)
		}
	}
}

// Reset implements Engine.
func (BlockEngine) Reset(c *CPU) {
	c.code.epoch++
	c.code.insts = 0
	c.code.counts = false
	if c.code.pages != nil { // else there is no block: a new CPU is reset, too
		c.code.pages = nil
		clear(c.code.hash[:])
	}
	c.stop |= stopCode
}

// StepEngine executes instruction by instruction through the handlers, and decodes
// each anew. It is some thirty times slower, and as simple as can be.
type StepEngine struct{}

// Run implements Engine.
func (StepEngine) Run(c *CPU, _ uint64) Exit { return c.execOne() }

// Invalidate implements Engine: blocks are made for breakpoints.
func (StepEngine) Invalidate(c *CPU, page uint64) { BlockEngine{}.Invalidate(c, page) }

// Breakpoint implements Engine.
func (StepEngine) Breakpoint(c *CPU, pc uint64) { BlockEngine{}.Breakpoint(c, pc) }

// Reset implements Engine.
func (StepEngine) Reset(c *CPU) { BlockEngine{}.Reset(c) }
