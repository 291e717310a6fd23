package x86

// Execution that tells of runs of instructions, for owners who count them: the loop of run_gen.go, left behind each
// block. That costs a fraction of what a callback for each instruction does (trace.go).

// Run is instructions that follow each other in memory and have retired one after the other. Only the last of them may
// have branched to somewhere else.
type Run struct {
	PC uint64 // of the first
	N  int    // how many; there is at least one
	// Tag is a word of the owner's that is kept with the code at PC as long as that is the same, and is 0 at first.
	Tag *uint32

	b    *block // nil: in alone
	in   *Inst
	step uint32
}

// Len returns how many instructions the code at PC has up to where it must end, N or more.
func (r *Run) Len() int {
	if r.b == nil {
		return 1
	}
	return len(r.b.insts)
}

// Inst returns instruction i, 0 to Len-1. It must not be changed.
func (r *Run) Inst(i int) *Inst {
	if r.b == nil {
		return r.in
	}
	return &r.b.insts[i].Inst
}

// Last returns the address of the last instruction of the run, and that instruction. It must not be changed.
func (r *Run) Last() (pc uint64, in *Inst) {
	if r.b == nil {
		return r.PC, r.in
	}
	pc = r.PC
	for i := range r.b.insts[:r.N-1] {
		pc += uint64(r.b.insts[i].Len)
	}
	return pc, &r.b.insts[r.N-1].Inst
}

// RunEngine is the interpreter, and tells of what it has executed. A breakpoint is looked at before each run.
type RunEngine struct {
	BlockEngine
	told func(r *Run)
	run  Run
}

// Tell has told called behind each run that c, whose engine t is, executes, those included that engines do not know (CPU.runOn), where a run is one instruction. The state is up to date
// then. r is valid until it returns.
func (t *RunEngine) Tell(c *CPU, told func(r *Run)) {
	t.told = told
	var pc, before uint64
	c.OnInst = func(*Inst) { pc, before = c.RIP, c.Retired }
	c.AfterInst = func(in *Inst, _ Exit) {
		if c.Retired != before {
			t.run = Run{PC: pc, N: 1, in: in}
			t.run.Tag = &t.run.step
			told(&t.run)
		}
	}
}

// Run implements Engine.
func (t *RunEngine) Run(c *CPU, limit uint64) Exit {
	end := min(limit, c.Retired+runSlice)
	for {
		b := c.enter(c.RIP)
		if b == nil || b.n > limit-c.Retired {
			return c.execOne()
		}
		before := c.Retired
		e := c.runBlocks(b, limit)
		if n := c.Retired - before; n > 0 && t.told != nil {
			t.run.PC, t.run.N, t.run.Tag, t.run.b = b.pc, int(n), &b.tag, b
			t.told(&t.run)
		}
		if e != ExitNone || c.MustLook(end) {
			return e
		}
	}
}

// Reset implements Engine.
func (t *RunEngine) Reset(c *CPU) {
	t.BlockEngine.Reset(c)
	c.code.alone = true
}
