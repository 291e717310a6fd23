//go:build linux && amd64

package record

import "vplay/checkpoint/record/agent"

// The agent reads clocks as programs do, by the vDSO: many ask for the time at each request that they serve. The vDSO, which is
// hidden from the program, reads the time stamp counter, so this is where that runs (tscruns.go), and its memory is the kernel's own.

// agentClock returns the address of the vDSO's clock_gettime where the thread may call it, else 0.
func (t *thread) agentClock() uint64 {
	sp, s := t.space(), t.session
	if !t.tscRuns || sp.noClock || sp.attached || sp.vdsoEnd == 0 {
		return 0
	}
	if s.clockOffset == 0 {
		if s.clockOffset = sp.findClock(); s.clockOffset == 0 {
			sp.noClock = true
			return 0
		}
	}
	return sp.vdso + s.clockOffset
}

// findClock returns where in the vDSO its clock_gettime is, 0 where it has none. All processes have the same.
func (sp *space) findClock() uint64 {
	image := make([]byte, sp.vdsoEnd-sp.vdso)
	if sp.readMem(sp.vdso, image) != len(image) {
		return 0
	}
	symbols, err := vdsoSymbols(image)
	if err != nil {
		return 0
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" && s.Value < uint64(len(image)) {
			return s.Value
		}
	}
	return 0
}

// tellTime stores the time for a thread that was found while it did so, and is behind its call then.
func (t *thread) tellTime() error {
	b, addr := t.block.shared.Time()
	_, err := t.space().mem.writeAt(b, addr)
	return err
}

// inClock reports whether the thread, which ran under the agent and was found in a phase, is where the agent reads a clock.
func (t *thread) inClock(phase agent.Phase) bool { return phase != agent.None && t.inVDSO() }
