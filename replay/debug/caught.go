package debug

import (
	"context"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/dwarf"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/analysis/slice"
	"vplay/replay/x86"
)

// Runtimes and crash reporters catch SIGSEGV and the like, write a report, and end the
// program themselves: by abort (Java), or by the same signal once more, which they send
// when its handler is the default again (Node.js, gfortran, Python's faulthandler). The
// last signal says nothing of the fault then. The log does.

// CaughtFault is a fault that the program caught, and that it ended because of.
type CaughtFault struct {
	Signal       string `json:"signal"`                  // as strace prints it
	Event        int    `json:"event"`                   // its number, as "monitor seek event" takes it
	NotCanonical string `json:"not_canonical,omitempty"` // an address that raised #GP or #SS, and its registers
	Misaligned   string `json:"misaligned,omitempty"`    // an address that raised #GP because of its alignment, and its registers

	fault    *checkpoint.Event
	interval uint32
	index    int  // of the event in the interval's log
	returned bool // from its handler, to where the signal that ended the program was pending
	newer    int  // handlers that were called since and have not returned
}

// FindCaughtFault returns the fault that led to the end of a program, where the signal
// that ended it was sent by the program itself, or it called exit, in the handler of the
// fault or right behind it; nil when the program did not end so. r names addresses of the
// final image f.
func FindCaughtFault(s *replay.Session, f *replay.FinalImage, r *loader.Resolver) *CaughtFault {
	if si := abi.Siginfo(f.Siginfo); len(si) > 0 && (si.IsFault() || !si.FromProcess() || si.PID() != f.PID) {
		return nil
	}
	images := s.Rec.ImagesOf(f.PID)
	if len(images) == 0 {
		return nil
	}
	last := images[len(images)-1]
	st := &f.Current().State
	frames := r.Backtrace(&checkpoint.Regs{R: st.R, RIP: st.RIP}, BacktraceLimit)
	c := openFault(s, last, f.Current().TID, signalFrame(frames, 0) >= 0)
	if c == nil {
		return nil
	}
	if !c.returned {
		i := signalFrame(frames, c.newer)
		if i < 0 { // the handler was left by a longjmp
			return nil
		}
		if i+1 < len(frames) {
			st = stateOf(&frames[i+1].Regs)
		}
	}
	for i := range last {
		if last[i].ID < c.interval {
			c.Event += last[i].Events
		}
	}
	c.Signal = abi.Siginfo(c.fault.Siginfo).String()
	if c.fault.Addr == 0 {
		var b [15]byte
		m := Memory{Space: f.Mem}
		n := m.ReadMemory(st.RIP, b[:])
		c.NotCanonical, c.Misaligned = NotCanonical(st, m, b[:n]), Misaligned(st, b[:n])
	}
	return c
}

// signalFrame returns the index of the frame of a signal behind n others, innermost first, -1 when there are not so many.
func signalFrame(frames []dwarf.Frame, n int) int {
	for i := range frames {
		if frames[i].Signal {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return -1
}

// stateOf has the general registers of an unwound frame. That of a signal has them all.
func stateOf(regs *dwarf.Regs) *x86.State {
	st := &x86.State{RIP: regs.V[dwarf.RIP]}
	for n := range dwarf.RIP {
		if r, ok := loader.GPR(n); ok {
			st.R[r] = regs.V[n]
		}
	}
	return st
}

// maxLooked bounds how many events of a log are looked through, in whole intervals from its end back: to read a million takes a second.
const maxLooked = 1 << 20

// openFault goes back in the log of a program to the newest fault of a thread whose
// handler has not returned, or has returned as the last thing that the thread did. inHandler says whether the thread is in one.
func openFault(s *replay.Session, infos []checkpoint.IntervalInfo, tid checkpoint.TID, inHandler bool) *CaughtFault {
	closed, newer, isLast, returned := 0, 0, true, false // closed: handlers that have returned, but not yet been met
	looked := 0
	for i := len(infos) - 1; i >= 0; i-- {
		if looked += infos[i].Events; looked > maxLooked && i < len(infos)-1 {
			return nil
		}
		events, err := s.Events(infos[i].ID)
		if err != nil {
			return nil
		}
		for n := len(events) - 1; n >= 0; n-- {
			e := &events[n]
			if e.TID != tid || e.Kind == checkpoint.EventEnd || e.Kind == checkpoint.EventExit {
				continue
			}
			switch {
			case e.Kind == checkpoint.EventEnter && e.NR == abi.SYS_RT_SIGRETURN && isLast:
				returned = true
			case e.Kind == checkpoint.EventEnter && e.NR == abi.SYS_RT_SIGRETURN:
				closed++
			case e.Kind == checkpoint.EventSignal && closed > 0:
				closed--
			case e.Kind == checkpoint.EventSignal && n > 0 && isHandled(&events[n-1], e):
				return &CaughtFault{Event: n - 1, fault: &events[n-1], interval: infos[i].ID, index: n - 1, returned: returned, newer: newer}
			case e.Kind == checkpoint.EventSignal && returned: // another signal's handler returned last
				return nil
			case e.Kind == checkpoint.EventSignal:
				newer++
			}
			if isLast = false; !inHandler && !returned {
				return nil
			}
		}
	}
	return nil
}

// endCriterion asks, at the end of a program that no fault has ended, for what a fault that it caught
// could not cope with, or for what was overwritten and made the C library abort. The final image says
// which of them it is.
func (g *Cursor) endCriterion(ctx context.Context, o *slice.Options) (string, error) {
	f, err := g.s.FinalOf(g.session.process.PID)
	if err != nil {
		return "", ErrNoCriterion
	}
	defer f.Mem.Close()
	files := g.moduleFiles()
	r := loader.NewResolver(f.Maps, Memory{Space: f.Mem}, files)
	if c := FindCaughtFault(g.s, f, r); c != nil {
		return g.caughtCriterion(ctx, o, f.Current().TID, c)
	}
	e := Ending{Session: g.s, Final: f, Names: r, Files: files, Message: AbortMessage(r, Memory{Space: f.Mem})}
	d, err := e.damage(ctx, g.t)
	switch {
	case err != nil:
		return "", err
	case d == nil || d.IsFreed:
		return "", ErrNoCriterion
	}
	return g.wantMemory(o, d.Slot, 8, d.What+", which was overwritten")
}

// caughtCriterion asks for what a fault of a thread could not cope with, at the fault.
func (g *Cursor) caughtCriterion(ctx context.Context, o *slice.Options, tid checkpoint.TID, c *CaughtFault) (string, error) {
	at, err := g.t.EventPositions(ctx, c.interval, c.index, c.index+1, nil)
	if err == nil && len(at) == 0 {
		err = ErrNoCriterion
	}
	if err != nil {
		return "", err
	}
	o.At, o.TID = at[0], tid
	var isCode bool
	err = g.t.Look(ctx, at, func(_ int, m *replay.Machine) {
		o.Here = m.CPU.RIP
		o.Want, isCode = faultWants(m, c.fault)
	}, func(int, *replay.Machine) {})
	if err != nil {
		return "", err
	}
	return g.faultCriterion(ctx, o, isCode, "the fault that the program caught")
}
