package dap

import (
	"context"
	"errors"
	"strings"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// Steps over source lines are made of the target's range steps, as gdb makes them.
//
// Forward: step until pc leaves the line. In a function that was called, which is
// recognised by its frame lying lower on the stack, run to the return address, or for
// "into" behind its prologue. Stop at the start of another line, or in a caller.
//
// Backward, the mirror image: from the middle of a line to its start; from its start
// back into the line that ran before, and to the start of that. A function whose
// return is reached backward is passed by running back to its call. The start of a
// line is found by leaving it backward and taking one instruction forward again.

// how a step treats calls.
type stepKind uint8

const (
	over stepKind = iota
	into
	out
)

// step answers next, stepIn, stepOut and stepBack.
func step(dir api.Direction, kind stepKind) func(*session, *godap.Request, []byte) (any, error) {
	return func(s *session, _ *godap.Request, raw []byte) (any, error) {
		a, err := arguments[struct {
			ThreadID    int
			Granularity string
		}](raw)
		if err != nil {
			return nil, err
		}
		tid, err := s.thread(a.ThreadID)
		if err != nil {
			return nil, err
		}
		s.breaks.hit, s.breaks.kind = nil, ""
		s.begin(func(_ context.Context, m *movement) (api.Stop, error) {
			st := &stepper{m: m, s: s, tid: tid, dir: dir, kind: kind}
			switch {
			case kind == out:
				return st.done(st.finish())
			case a.Granularity == "instruction":
				return st.done(st.instruction())
			case dir == api.Backward:
				return st.done(st.backward())
			}
			return st.done(st.forward())
		}, s.stopped)
		return nil, nil
	}
}

// stepper is one step.
type stepper struct {
	m    *movement
	s    *session
	tid  int
	dir  api.Direction
	kind stepKind
}

// stoppedError ends a step early: the target stopped for another reason, or could not
// go on.
type stoppedError struct {
	stop api.Stop
	err  error
}

func (stoppedError) Error() string { return "stopped" }

// maxLines bounds how often a step goes on in another stretch of its line.
const maxLines = 10000

// errLong says that a step came to no end.
var errLong = errors.New("the step is too long: it was given up in the middle")

// done turns the end of a step into a stop.
func (st *stepper) done(err error) (api.Stop, error) {
	var early stoppedError
	if errors.As(err, &early) {
		return early.stop, early.err
	}
	return api.Stop{Kind: api.StopStep, TID: st.tid}, err
}

// place is where the thread stands.
type place struct {
	pc, sp, cfa uint64
	caller      uint64 // where the function returns to; 0 when that is not known
}

func (st *stepper) at() (p place, err error) {
	regs, err := st.s.target.Registers(st.tid)
	if err != nil {
		return p, err
	}
	p.pc, p.sp = regs.RIP, regs.GPR[4]
	for _, most := range []int{fewFrames, manyFrames} {
		frames := st.s.symbols.Stack(st.tid, most)
		p.frame(frames)
		if p.caller != 0 || len(frames) < most {
			break
		}
	}
	return p, nil
}

// The caller of a function is looked for among so many frames: each costs, and few functions have many inlined in one place.
const (
	fewFrames  = 4
	manyFrames = 64
)

// frame notes where the frame lies and who called it.
func (p *place) frame(frames []api.Frame) {
	p.cfa = 0
	for i := range frames {
		switch {
		case frames[i].Inlined:
		case p.cfa == 0:
			if p.cfa = frames[i].CFA; p.cfa == 0 {
				p.cfa = p.sp
			}
		default:
			p.caller = frames[i].PC
			return
		}
	}
}

// deeper reports whether p is in a function that was called from where from was.
func (p place) deeper(from place) bool { return p.cfa < from.cfa }

// line is the code that the step leaves: the source line at pc, or without lines
// the function.
func (st *stepper) line(pc uint64) (api.Line, bool) {
	if l, ok := st.s.symbols.Line(pc); ok {
		return l, true
	}
	if low, high, ok := st.s.symbols.Extent(pc); ok {
		return api.Line{Start: low, End: high}, true
	}
	return api.Line{Start: pc, End: pc + 1}, false
}

// move makes one movement of the target and reports whether it was one that the
// step asked for; everything else ends the step as an error.
func (st *stepper) move(r api.Resume, wants ...api.StopKind) (api.Stop, error) {
	r.TID = st.tid
	stop, err := st.m.resume(r)
	if err != nil || st.m.ctx.Err() != nil {
		return stop, stoppedError{stop, err}
	}
	if isBreak(stop.Kind) && !st.s.holds(&stop) {
		return stop, nil
	}
	for _, k := range wants {
		if stop.Kind == k {
			return stop, nil
		}
	}
	return stop, stoppedError{stop, nil}
}

// rangeStep steps out of [start, end). A breakpoint of the client's in the range, or
// where it is left to, ends the step.
func (st *stepper) rangeStep(start, end uint64) error {
	for n := 0; ; n++ {
		if _, err := st.move(api.Resume{Dir: st.dir, Kind: api.RangeStep, Start: start, End: end}, api.StopStep); err != nil {
			return err
		}
		p, err := st.s.target.Registers(st.tid)
		if err != nil {
			return err
		}
		if st.dir == api.Forward && st.atBreak(p.RIP) {
			stop := api.Stop{Kind: api.StopBreakpoint, TID: st.tid}
			if st.s.holds(&stop) {
				return stoppedError{stop, nil}
			}
		}
		if p.RIP < start || p.RIP >= end {
			return nil
		}
	}
}

// atBreak reports whether the client has a breakpoint at an address.
func (st *stepper) atBreak(pc uint64) bool {
	_, ok := st.s.breaks.placedKeys[placedKey{api.BreakSoftware, pc, 1}]
	return ok
}

// runTo continues until pc is one of addrs and reached holds. Its breakpoints are
// of the other kind than the client's, so that both can stand at one address.
func (st *stepper) runTo(addrs []uint64, reached func(sp uint64) bool) error {
	var set []api.Breakpoint
	defer func() {
		for _, b := range set {
			if err := st.s.target.ClearBreakpoint(b); err != nil {
				st.s.srv.log.Warn("clear breakpoint", "err", err)
			}
		}
	}()
	for _, a := range addrs {
		b := api.Breakpoint{Kind: api.BreakHardware, Addr: a, Len: 1}
		if err := st.s.target.SetBreakpoint(b); err != nil {
			return err
		}
		set = append(set, b)
	}
	for {
		r := api.Resume{Dir: st.dir, Kind: api.Continue, TID: st.tid}
		stop, err := st.m.resume(r)
		if err != nil || st.m.ctx.Err() != nil {
			return stoppedError{stop, err}
		}
		regs, err := st.s.target.Registers(st.tid)
		if err != nil {
			return err
		}
		if stop.Kind != api.StopBreakpoint && stop.Kind != api.StopHWBreakpoint {
			if isBreak(stop.Kind) && !st.s.holds(&stop) {
				continue
			}
			return stoppedError{stop, nil}
		}
		for _, a := range addrs {
			if a == regs.RIP && reached(regs.GPR[4]) {
				return nil
			}
		}
		if st.atBreak(regs.RIP) && st.s.holds(&stop) {
			stop.Kind = api.StopBreakpoint
			return stoppedError{stop, nil}
		}
	}
}

// errNoCaller says that a frame's caller is not known.
var errNoCaller = errors.New("the caller of this function is not known")

// finish runs forward until the function that is being executed has returned.
func (st *stepper) finish() error {
	p, err := st.at()
	if err != nil {
		return err
	}
	return st.returned(p)
}

// returned runs forward from p, in a function, to its return address.
func (st *stepper) returned(p place) error {
	if p.caller == 0 {
		return errNoCaller
	}
	return st.runTo([]uint64{p.caller}, func(sp uint64) bool { return sp >= p.cfa })
}

// called runs backward from p, in a function, to the call of it: an instruction
// that ends at its return address and has from 2 to 7 bytes (SDM volume 2A, CALL).
func (st *stepper) called(p place) error {
	if p.caller == 0 {
		return errNoCaller
	}
	var addrs []uint64
	for n := uint64(2); n <= 7; n++ {
		addrs = append(addrs, p.caller-n)
	}
	return st.runTo(addrs, func(sp uint64) bool { return sp == p.cfa })
}

// forward steps to the start of the next line.
func (st *stepper) forward() error {
	from, err := st.at()
	if err != nil {
		return err
	}
	l, known := st.line(from.pc)
	first := l
	for range maxLines {
		if err := st.rangeStep(l.Start, l.End); err != nil {
			return err
		}
		p, err := st.at()
		if err != nil {
			return err
		}
		if p.deeper(from) {
			if st.kind == into {
				if entered, err := st.enter(p); err != nil || entered {
					return err
				}
				if p, err = st.at(); err != nil {
					return err
				}
			}
			if p.deeper(from) {
				if err := st.returned(p); err != nil {
					return err
				}
				if p, err = st.at(); err != nil {
					return err
				}
			}
			if p.pc >= l.Start && p.pc < l.End {
				continue
			}
		}
		if p.cfa > from.cfa || !known {
			return nil // back in a caller, or nothing is known of lines
		}
		next, ok := st.s.symbols.Line(p.pc)
		if !ok || next.IsStart && (next.Line != first.Line || next.File != first.File) {
			return nil
		}
		l = next
	}
	return errLong
}

// enter goes behind the prologue of a function that was called, through the stub of
// a shared library if need be. It reports false when the function has no lines.
func (st *stepper) enter(p place) (bool, error) {
	for n := 0; n < 4; n++ {
		if _, ok := st.s.symbols.Line(p.pc); ok {
			break
		}
		if n == 3 {
			return false, nil
		}
		if _, err := st.move(api.Resume{Kind: api.Step}, api.StopStep); err != nil {
			return false, err
		}
		var err error
		if p, err = st.at(); err != nil {
			return false, err
		}
	}
	low, _, ok := st.s.symbols.Extent(p.pc)
	body := uint64(0)
	if ok && low == p.pc {
		body = st.s.symbols.Body(low)
	}
	if body == 0 || body == p.pc {
		return true, nil
	}
	return true, st.runTo([]uint64{body}, func(uint64) bool { return true })
}

// backward steps to the start of the line, or from there to that of the line before.
func (st *stepper) backward() error {
	from, err := st.at()
	if err != nil {
		return err
	}
	l, known := st.line(from.pc)
	if from.pc != l.Start {
		was := st.s.where()
		if err := st.toStart(l, from); err != nil || st.s.where() != was {
			return err
		}
		// A jump came into the line here, as that to the condition of a loop: this is its start.
	}
	for range maxLines {
		if _, err := st.move(api.Resume{Dir: api.Backward, Kind: api.Step}, api.StopStep); err != nil {
			return err
		}
		p, err := st.at()
		if err != nil {
			return err
		}
		if p.deeper(from) {
			if err := st.called(p); err != nil {
				return err
			}
			if p, err = st.at(); err != nil {
				return err
			}
		}
		before, ok := st.line(p.pc)
		if !ok {
			return nil
		}
		if p.pc != before.Start {
			if err := st.toStart(before, p); err != nil {
				return err
			}
		}
		if !known || p.cfa != from.cfa || before.Line != l.Line || before.File != l.File {
			return nil
		}
		if from, err = st.at(); err != nil { // more of the same line: the rest of a loop's head
			return err
		}
	}
	return errLong
}

// toStart runs backward from p to where the thread came into the line.
func (st *stepper) toStart(l api.Line, p place) error {
	for range maxLines {
		if err := st.rangeStep(l.Start, l.End); err != nil {
			return err
		}
		now, err := st.at()
		if err != nil {
			return err
		}
		if now.deeper(p) && now.caller > l.Start && now.caller <= l.End {
			if err := st.called(now); err != nil {
				return err
			}
			if now, err = st.at(); err != nil {
				return err
			}
			if now.pc == l.Start {
				return nil
			}
			if now.pc > l.Start && now.pc < l.End {
				continue
			}
		}
		_, err = st.move(api.Resume{Dir: api.Forward, Kind: api.Step}, api.StopStep, api.StopSignal)
		return err
	}
	return errLong
}

// instruction steps over one instruction, a call with all it does included, or
// takes one back.
func (st *stepper) instruction() error {
	from, err := st.at()
	if err != nil {
		return err
	}
	isCall, size := false, 0
	if st.kind == over && st.dir == api.Forward {
		in, n := st.s.instruction(from.pc)
		isCall, size = strings.HasPrefix(in.Instruction, "call"), n
	}
	if isCall {
		return st.runTo([]uint64{from.pc + uint64(size)}, func(sp uint64) bool { return sp >= from.sp })
	}
	if _, err := st.move(api.Resume{Dir: st.dir, Kind: api.Step}, api.StopStep); err != nil {
		return err
	}
	if st.dir == api.Forward {
		return nil
	}
	p, err := st.at()
	if err == nil && p.deeper(from) && p.caller == from.pc { // back over a call
		return st.called(p)
	}
	return err
}
