package differential

import "vplay/replay/x86"

// Cases by whole blocks. Run stops by the number of instructions, and no block is
// entered that has more of them, so there the jump behind the code keeps cases out of
// blocks. Here a breakpoint behind the code ends the block.

// SetEngine has the emulator execute by g.
func (e *Emulator) SetEngine(g x86.Engine) { e.cpu.SetEngine(g) }

// RunBlocks executes one case by blocks, times times over. From the second time on the
// code is known to the engine and translations of the pages that were accessed are at
// hand. It returns one outcome for each time; cases that may write their code are
// executed once.
func (e *Emulator) RunBlocks(k *Case, times int) []Outcome {
	if k.WritableCode {
		times = 1
	}
	if end := k.end(); end < CodeBase+CodeSize {
		e.cpu.SetBreakpoints([]uint64{end})
		defer e.cpu.SetBreakpoints(nil)
	}
	l := make([]Outcome, times)
	placed := e.prepare(k)
	for i := range l {
		if i > 0 {
			e.reload(k)
		}
		e.execute(k, &l[i])
		e.store(&l[i].Out)
		e.collect(k, &l[i])
	}
	e.bus.erase(k, placed)
	return l
}

// end returns the address behind the code of k.
func (k *Case) end() uint64 { return CodeBase + uint64(k.Offset) + uint64(len(k.Code)) }
