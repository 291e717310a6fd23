package replay

import (
	"sync"

	"vplay/replay/mem"
	"vplay/replay/x86"
)

// XSAVE, XSAVEOPT, XSAVEC and XGETBV show which state components are in use, and a
// CPU may count one as in use that is in its initial state (x86/xinuse.go). The
// recording does not say what it did each time. What the registers hold is the same
// either way, as XRSTOR loads initial values both times; a bit in memory differs, and
// whether some bytes of the area were stored.
//
// So the answers are part of what is to be found out about an interval. They are
// found once, before any machine of the session goes behind the first such
// instruction, and from then on all machines use them. RATIONALE.md has the reasons.

// answers are what the instructions of an interval that ask which components are
// in use got: by the count of instructions at which they stand. The others got
// nothing beyond what the state says.
type answers struct {
	mu     sync.Mutex
	known  bool
	tried  bool // without any was tried, and failed
	bits   map[uint64]uint64
	reason string // why they do not replay, "" when they do
}

// why says why no answers replay, "" when some do or none were looked for.
func (a *answers) why() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reason
}

// InUseAsked returns how many instructions the machine has executed whose effect
// depends on which state components the CPU counted as in use.
func (m *Machine) InUseAsked() uint64 { return m.asked }

// inUse executes the instruction at RIP, which asks which components are in use. Or
// the machine is at the interval's end behind it: see endOnly.
func (m *Machine) inUse() (x86.Exit, error) {
	m.asked++
	at := m.CPU.Retired
	switch {
	case m.solver != nil:
		return m.solver.ask(), nil
	case m.guess:
		if m.iv.End.Forced { // else nobody asks for the pages
			m.doubt(m.CPU.InUse())
		}
		return m.CPU.StepInUse(0), nil
	}
	known, err := m.iv.answersFor(m)
	if err != nil || m.endOnly && m.AtEnd() {
		return x86.ExitNone, err
	}
	if m.onSave != nil {
		m.onSave(m.CPU.InUse())
	}
	return m.CPU.StepInUse(known[at]), nil
}

// answersFor returns the interval's answers. A machine that is the first to ask
// finds them, from where it stands. One that is wanted for the end only is then there:
// the way that led to the answers began where the machine stands, compared all that the
// machine would compare, and found no difference, so it need not be gone again.
// errInterrupted says that the machine was interrupted.
func (iv *interval) answersFor(m *Machine) (map[uint64]uint64, error) {
	a := &iv.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known {
		return a.bits, nil
	}
	k := m.Save()
	defer k.Release()
	if !a.tried { // most often no component was in use beyond what the state says
		g := m.s.machineAt(k, m.s.Engine)
		g.guess = true
		g.Mem.AllowMapping()
		err := g.finish(m.CPU.Interrupting)
		m.executed += g.executed
		g.Close()
		switch {
		case err == nil:
			a.known = true
			return nil, nil
		case !Unmatched(err):
			return nil, err
		}
		a.tried = true
	}
	v := newSolver(m.s, k)
	v.m.Mem.AllowMapping()
	defer v.m.Close()
	err := v.solve(m.CPU.Interrupting)
	m.executed += v.m.executed
	if err != nil && !Unmatched(err) {
		return nil, err
	}
	a.known, a.bits, a.reason = true, v.best, v.reason
	if err == nil && m.endOnly {
		m.executed -= v.m.CPU.Retired - m.CPU.Retired // RunToEnd counts them, as the machine's own
		end := v.m.Save()
		m.Restore(end)
		end.Release()
	}
	return a.bits, nil
}

// finish runs to the end of the interval and checks it, for a machine that is
// another one's: interrupted says that that one is interrupted.
func (m *Machine) finish(interrupted func() bool) error {
	const slice = 1 << 16 // a fraction of a millisecond
	for {
		if m.solver != nil {
			m.solver.assume()
		}
		before := m.CPU.Retired
		r, err := m.Run(Target{Instr: before + slice}, true)
		m.executed += m.CPU.Retired - before
		switch {
		case err != nil:
			return err
		case interrupted():
			return errInterrupted
		case r == StopEnd:
			if m.solver != nil {
				if err := m.solver.settle(); err != nil {
					return err
				}
			}
			return m.CheckEnd()
		}
	}
}

// doubt notes the pages that depend on the guess about an instruction.
func (m *Machine) doubt(u x86.InUse) {
	if u.Maybe == 0 || u.Area == 0 {
		return
	}
	if m.doubted == nil {
		m.doubted = map[uint64]bool{}
	}
	m.doubted[(u.Area+x86.XSaveHeader)&^(mem.PageSize-1)] = true
	for _, p := range u.Parts {
		for a := p.Addr &^ (mem.PageSize - 1); a < p.Addr+uint64(len(p.Bytes)); a += mem.PageSize {
			m.doubted[a] = true
		}
	}
}

// mayGuess reports whether a machine may go through the interval with the answers that the state suggests,
// and see at the end whether they are right.
func (iv *interval) mayGuess() bool {
	a := &iv.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.known && !a.tried
}

// none notes that no component was in use beyond what the state says. It returns false when other answers are known.
func (a *answers) none() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known {
		a.known = true
	}
	return len(a.bits) == 0
}

// guessed reports whether err may come from answering that no component is in use
// beyond what the state says, and notes that this was wrong.
func (m *Machine) guessed(err error) bool {
	if !m.guess || m.asked == 0 || err == nil || !Unmatched(err) {
		return false
	}
	m.iv.answers.mu.Lock()
	defer m.iv.answers.mu.Unlock()
	m.iv.answers.tried = true
	return true
}
