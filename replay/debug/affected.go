package debug

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay"
	"vplay/replay/analysis/slice"
	"vplay/replay/analysis/taint"
	"vplay/replay/x86"
)

// What a value reached: the other way round than a slice. The program is executed from the value on,
// with marks that package taint moves along. How what was met is put in rows is in affectedrows.go.

// AffectedQuery asks what a value reached.
type AffectedQuery struct {
	// Expr is what a slice can be of (see SliceQuery), or "input", which is what the next call brings
	// that reads, or "input:3", all that is read from descriptor 3.
	Expr   string
	TID    int  // the thread that is meant; 0 for the one that runs
	Here   bool // from the present position on; else from where memory was written last before it, and input from the beginning
	Values bool // do not follow what was loaded or stored through an address that is affected
	Most   int  // how many rows, at least 1
	// Progress, when not nil, is called now and then with how far it is.
	Progress func(string)
}

// tracker follows a value forwards.
type tracker struct {
	g      *Cursor
	q      *AffectedQuery
	engine *taint.Engine
	want   []slice.Location
	tid    checkpoint.TID
	from   checkpoint.Position
	wait   bool // want is to be marked behind the store, or the event, at from
	input  int64
	met    *met

	m       *replay.Machine
	retired uint64 // at the last event, and by how many steps it and those before it went on
	steps   uint32
	events  int
	seen    int  // events of the present interval
	taken   bool // of inputs: something was
}

// What AffectedQuery.Expr is.
const (
	noInput   = -2
	nextInput = -1
)

// inputs are the calls whose bytes are input.
var inputs = map[int64]bool{
	abi.SYS_READ: true, abi.SYS_PREAD64: true, abi.SYS_READV: true, abi.SYS_PREADV: true, abi.SYS_PREADV2: true,
	abi.SYS_RECVFROM: true, abi.SYS_RECVMSG: true, abi.SYS_RECVMMSG: true,
}

// Affected answers q. Errors: taint.ErrTooMuch, those of a movement, and of expressions.
func (g *Cursor) Affected(ctx context.Context, q AffectedQuery) (*Affected, error) {
	if strings.TrimSpace(q.Expr) == "" {
		return nil, ErrNoValue
	}
	if g.s.Rec.IsMoment() {
		return nil, ErrMoment
	}
	if err := g.leaveFinal(ctx); err != nil {
		return nil, err
	}
	g.Undivert()
	if q.TID == 0 {
		q.TID = g.tid()
	}
	if _, err := g.threadState(q.TID); err != nil {
		return nil, err
	}
	t := &tracker{g: g, q: &q, tid: checkpoint.TID(q.TID), from: g.cur.Position(), input: noInput, met: newMet()}
	what, err := t.begin(ctx)
	if err != nil {
		return nil, err
	}
	t.engine = taint.New(taint.Options{Addresses: !q.Values, Use: t.use, Wrote: t.wrote})
	executed, err := t.run(ctx)
	if err != nil {
		return nil, err
	}
	return t.answer(ctx, what, executed)
}

// ErrNoValue says that nothing was asked for.
var ErrNoValue = errors.New("say which value: a variable, a register as $rax, an address and a length, or input")

// begin finds out what is marked, and where, and names it.
func (t *tracker) begin(ctx context.Context) (what string, err error) {
	expr := strings.TrimSpace(t.q.Expr)
	if expr == "input" || strings.HasPrefix(expr, "input:") {
		t.input = nextInput
		if _, fd, ok := strings.Cut(expr, ":"); ok {
			n, err := strconv.ParseUint(fd, 0, 31)
			if err != nil {
				return "", fmt.Errorf("bad descriptor %q", fd)
			}
			t.input = int64(n)
		}
		if !t.q.Here {
			t.from = checkpoint.Position{Interval: t.g.t.Intervals()[0]}
		}
		return expr, nil
	}
	o := slice.Options{At: t.from, TID: t.tid}
	what, err = t.g.criterion(ctx, &SliceQuery{Expr: expr, TID: t.q.TID}, &o)
	if err != nil {
		return "", err
	}
	t.want = o.Want
	if t.q.Here || !o.Want[0].IsMemory {
		return what, nil
	}
	w := o.Want[0]
	found, err := t.g.Accesses(ctx, AccessQuery{Addr: w.Addr, Len: w.Len, Most: 1, Progress: t.q.Progress})
	switch {
	case err != nil:
		return "", err
	case len(found) > 0:
		t.from, t.wait = found[len(found)-1].Position, true
	default: // as it was when the recording began
		t.from = checkpoint.Position{Interval: t.g.t.Intervals()[0]}
	}
	return what, ctx.Err()
}

// valueTag is the one tag there is.
const valueTag = 1

// mark marks what was asked for.
func (t *tracker) mark() {
	for _, l := range t.want {
		switch {
		case l.IsMemory:
			t.engine.Mem.Mark(l.Addr, l.Len, valueTag)
		case l.IsVector:
			t.engine.MarkVector(t.tid, l.Reg, valueTag)
		default:
			t.engine.MarkGeneral(t.tid, l.Reg, int(l.Len), valueTag)
		}
	}
	t.want = nil
}

// affectedLength is how many instructions are executed between two looks at what is left.
const affectedLength = 8_000_000

// run goes forward until nothing is marked any more or the recording ends.
func (t *tracker) run(ctx context.Context) (executed uint64, err error) {
	tr, err := t.g.t.NewTracing(nil)
	if err != nil {
		return 0, err
	}
	defer tr.Close()
	ids := t.g.t.Intervals()
	for _, id := range ids {
		if id < t.from.Interval {
			continue
		}
		cuts, err := tr.Boundaries(ctx, id, affectedLength)
		if err != nil {
			return executed, err
		}
		last, err := t.lastInput(id)
		if err != nil {
			return executed, err
		}
		t.seen = 0
		for i := 1; i < len(cuts); i++ {
			from := cuts[i-1]
			if id == t.from.Interval {
				if cuts[i].Compare(t.from) < 0 {
					continue
				}
				if from.Compare(t.from) < 0 {
					from = t.from
				}
			}
			if t.isIdle(last) {
				t.met.to = cuts[i]
			} else if err := t.stretch(ctx, tr, from, cuts[i], id == ids[len(ids)-1] && i == len(cuts)-1); err != nil {
				return executed, err
			}
			executed += cuts[i].Instr - from.Instr
			if t.q.Progress != nil {
				t.q.Progress(fmt.Sprintf("%.1f million instructions", float64(executed)/1e6))
			}
			if t.isDone() {
				return executed, nil
			}
		}
	}
	return executed, nil
}

// isDone reports whether nothing can be affected any more.
func (t *tracker) isDone() bool {
	return len(t.want) == 0 && (t.input == noInput || t.input == nextInput && t.taken) && t.engine.IsClear()
}

// lastInput returns the number of an interval's last event that may bring input, -1 where none does.
func (t *tracker) lastInput(id uint32) (int, error) {
	events, err := t.g.s.Events(id)
	if err != nil {
		return 0, err
	}
	last := len(events) - 1
	for last >= 0 && !bringsInput(&events[last]) {
		last--
	}
	return last, nil
}

// bringsInput reports whether an event is the end of a call that has read something.
func bringsInput(e *checkpoint.Event) bool {
	return e.Kind == checkpoint.EventExit && inputs[e.NR] && len(e.Writes) > 0 && e.Result > 0
}

// isIdle reports whether what is left of an interval need not be executed: nothing is marked, and
// none of its events behind those that were seen is an input.
func (t *tracker) isIdle(last int) bool {
	return t.input != noInput && len(t.want) == 0 && t.seen > last && t.engine.IsClear()
}

// stretch executes one part of an interval.
func (t *tracker) stretch(ctx context.Context, tr *replay.Tracing, from, to checkpoint.Position, isLast bool) error {
	e := t.engine
	var failed error
	err := tr.Run(ctx, replay.Stretch{
		From: from, To: to, Pending: &e.Pending,
		Begin: func(m *replay.Machine) {
			t.m, t.retired, t.steps = m, from.Instr, from.Step
			e.Begin(m)
			if !t.wait {
				t.mark()
			}
		},
		Before: func(c *x86.CPU, in *x86.Inst, _ *uint32) {
			if len(t.want) > 0 && (c.Retired != t.from.Instr || t.events > 0) {
				t.mark()
			}
			e.Before(c, in)
		},
		After: e.After,
		Event: func(m *replay.Machine, ev *checkpoint.Event) { t.event(m, ev) },
		End: func(m *replay.Machine) {
			t.met.to = m.Position()
			failed = e.Err()
			if isLast {
				failed = errors.Join(failed, t.crash(ctx, m))
			}
		},
	})
	return errors.Join(err, failed)
}

// event is called before each event.
func (t *tracker) event(m *replay.Machine, e *checkpoint.Event) {
	tid := m.TID()
	args, known := t.engine.CallArguments(tid)
	t.engine.Event(m, e)
	at := m.CPU.Retired
	if e.Kind == checkpoint.EventInstr {
		at++
	}
	if at != t.retired {
		t.retired, t.steps = at, 0
	}
	if e.Kind != checkpoint.EventInstr {
		t.steps += 1 + uint32(m.CPU.RepIter)
	}
	t.events++
	t.seen++
	if t.input == noInput || !bringsInput(e) {
		return
	}
	if t.input == nextInput && t.taken || t.input >= 0 && (!known || args[0] != uint64(t.input)) {
		return
	}
	if t.g.isLinker(m.CPU.RIP) {
		return
	}
	t.taken = true
	for _, w := range e.Writes {
		t.engine.MarkMemory(w.Addr, uint64(len(w.Data)), valueTag)
	}
	t.met.source(e, t.position(m.CPU.Retired), args, known)
}

// isLinker reports whether an address is in the dynamic linker, which reads the headers of libraries.
func (g *Cursor) isLinker(pc uint64) bool {
	mod := g.names().Module(pc)
	return mod != nil && strings.HasPrefix(path.Base(mod.Path), "ld-")
}

// position is where the program is when so many instructions have retired, before an instruction or an event.
func (t *tracker) position(retired uint64) checkpoint.Position {
	p := checkpoint.Position{Interval: t.m.Interval(), Instr: retired}
	if retired == t.retired {
		p.Step = t.steps
	}
	return p
}

// wrote is taint.Options.Wrote.
func (t *tracker) wrote(pc, retired uint64, in *x86.Inst, _ taint.Tag) {
	t.met.code(pc, in, func() checkpoint.Position { return t.position(retired) })
}

// use is taint.Options.Use.
func (t *tracker) use(u *taint.Use) bool {
	t.met.use(u, t.position(t.m.CPU.Retired))
	return false
}

// lastFault returns the fault that an interval ends with, nil where it does not.
func (g *Cursor) lastFault(id uint32) (*checkpoint.Event, error) {
	events, err := g.s.Events(id)
	if err != nil {
		return nil, err
	}
	for i := len(events) - 1; i >= 0; i-- {
		switch events[i].Kind {
		case checkpoint.EventFault:
			return &events[i], nil
		case checkpoint.EventEnd:
		default:
			return nil, nil
		}
	}
	return nil, nil
}

// crash notes whether what the program died of is affected.
func (t *tracker) crash(ctx context.Context, m *replay.Machine) error {
	f, err := t.g.lastFault(m.Interval())
	if f == nil || err != nil {
		return err
	}
	in, ok := instructionAt(m)
	if !ok {
		return t.crashedBehind(ctx, m, f)
	}
	isAddress := abi.Signal(f.Signo) == abi.SIGSEGV || abi.Signal(f.Signo) == abi.SIGBUS
	t.crashed(m, m.CPU.RIP, &in, f, slice.FaultWants(m.CPU, &in, isAddress, f.Addr))
	return nil
}

// crashedBehind is crash where the program has gone to where nothing can be executed: what it
// died of is what the instruction before had its target from, whose registers are as they were but for those of the stack.
func (t *tracker) crashedBehind(ctx context.Context, m *replay.Machine, f *checkpoint.Event) error {
	return t.g.t.Look(ctx, []checkpoint.Position{before(m.Position())}, func(_ int, was *replay.Machine) {
		if in, ok := instructionAt(was); ok {
			t.crashed(m, was.CPU.RIP, &in, f, slice.TargetWants(was.CPU, &in))
		}
	}, func(int, *replay.Machine) {})
}

// crashed notes which of what the instruction at pc could not cope with is affected.
func (t *tracker) crashed(m *replay.Machine, pc uint64, in *x86.Inst, f *checkpoint.Event, want []slice.Location) {
	var names []string
	for _, l := range want {
		switch {
		case l.IsAddress && t.q.Values:
		case l.IsMemory && t.engine.Mem.Any(l.Addr, int(l.Len)):
			names = append(names, fmt.Sprintf("[%#x]", l.Addr))
		case !l.IsMemory && t.engine.MarkedRegisters(m.TID())>>l.Reg&1 != 0:
			names = append(names, "$"+checkpoint.RegNames[l.Reg])
		}
	}
	if len(names) > 0 {
		t.met.crashed(pc, in, m.Position(), abi.Signal(f.Signo).String()+": "+strings.Join(names, ", "))
	}
}
