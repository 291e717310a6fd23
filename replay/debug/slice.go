package debug

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/dwarf"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/analysis/controlflow"
	"vplay/replay/analysis/slice"
	"vplay/replay/debug/api"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Where a value came from: what is asked for, as package slice wants it. How the answer is
// put in rows is in slicerows.go, how those are written in slicetext.go.

// SliceQuery asks for the slice of a value at the present position.
type SliceQuery struct {
	// Expr is a C expression, a register as $rax, or an address and a length as 0x1000,8.
	// Empty: what the program died of.
	Expr   string
	TID    int  // the thread that is meant; 0 for the one that runs
	Values bool // without what only decided where something was loaded or stored
	Copies bool // the origin: only as long as the value is copied
	// Control follows control dependences: what decided that the instructions of the slice were executed is a part of it. Of a crash, so
	// is what decided that the program came there.
	Control bool
	Most    int // how many rows, at least 1
	// Progress, when not nil, is called now and then with how far it is.
	Progress func(string)
}

// ErrNoCriterion says that it does not follow from how the program ended what to explain.
var ErrNoCriterion = errors.New("say what to explain: a variable, a register as $rax, or an address and a length")

// ErrMoment says that the recording is of a core file: nothing runs in it.
var ErrMoment = errors.New("the recording holds one moment, as a core file does: nothing runs in it that a value could have come from, or gone to")

// Slice answers q. Errors: ErrNoCriterion, ErrMoment, slice.ErrTooMany, those of a movement, and of
// expressions.
func (g *Cursor) Slice(ctx context.Context, q SliceQuery) (*Slice, error) {
	o, what, err := g.Criterion(ctx, q)
	if q.Control && !q.Copies && o.Here != 0 && errors.Is(err, ErrNoCriterion) { // as of UD2: that the program came there is all there is to explain
		what, err = "the crash", nil
	}
	if err != nil {
		return nil, err
	}
	if q.Control {
		if q.Copies {
			return nil, errControlOfOrigin
		}
		if o.Controls, err = g.controls(ctx, &o, q.Progress); err != nil {
			return nil, err
		}
	}
	if q.Progress != nil {
		o.Progress = func(done, all uint64) {
			q.Progress(fmt.Sprintf("%.1f million instructions", float64(done)/1e6))
		}
	}
	s, err := slice.Of(ctx, g.t, o)
	if err != nil {
		return nil, err
	}
	return g.rows(ctx, s, what, max(q.Most, 1), q.Copies)
}

var errControlOfOrigin = errors.New("the origin of a value is followed through copies alone, with no branches")

// controls returns who knows which branches decide about an instruction, from an execution of all up to the moment of o.
func (g *Cursor) controls(ctx context.Context, o *slice.Options, progress func(string)) (func(pc uint64) []uint64, error) {
	var ids []uint32
	for _, id := range g.t.Intervals() {
		if id <= o.At.Interval {
			ids = append(ids, id)
		}
	}
	var done atomic.Uint64
	m := g.cur.Machine()
	c, err := controlflow.Collect(ctx, g.s, ids, controlflow.Options{Fetch: controlflow.Fetch(m.Mem), ID: m.CPU.ID}, func(n uint64) {
		if progress != nil {
			progress(fmt.Sprintf("branches of %.1f million instructions", float64(done.Add(n))/1e6))
		}
	})
	if err != nil {
		return nil, err
	}
	return c.Controls, nil
}

// Criterion returns what q asks of package slice at the present position, and its name. Errors: as
// Slice; with ErrNoCriterion and behind a fault the options are complete but for what is wanted.
func (g *Cursor) Criterion(ctx context.Context, q SliceQuery) (o slice.Options, what string, err error) {
	if g.s.Rec.IsMoment() {
		return o, "", ErrMoment
	}
	if err := g.leaveFinal(ctx); err != nil {
		return o, "", err
	}
	g.Undivert()
	if q.TID == 0 {
		q.TID = g.tid()
	}
	if _, err := g.threadState(q.TID); err != nil {
		return o, "", err
	}
	o = slice.Options{At: g.cur.Position(), TID: checkpoint.TID(q.TID), Values: q.Values, Copies: q.Copies}
	what, err = g.criterion(ctx, &q, &o)
	return o, what, err
}

// criterion fills in what is wanted, and where, and names it.
func (g *Cursor) criterion(ctx context.Context, q *SliceQuery, o *slice.Options) (what string, err error) {
	expr := strings.TrimSpace(q.Expr)
	if expr == "" {
		return g.crashCriterion(ctx, o)
	}
	if name, ok := strings.CutPrefix(expr, "$"); ok {
		l, ok := registerNamed(name)
		if !ok {
			return "", fmt.Errorf("there is no register %s that a slice can be of: a general register as $rax or $eax, or $xmm0", expr)
		}
		o.Want = []slice.Location{l}
		return expr, nil
	}
	addr, length, isRange := strings.Cut(expr, ",")
	if !isRange {
		addr, length, isRange = strings.Cut(expr, " ")
	}
	if a, ok := parseAddress(addr); ok {
		n := uint64(8)
		if isRange {
			if n, err = strconv.ParseUint(strings.TrimSpace(length), 0, 64); err != nil || n == 0 || n > api.MaxWatchLen {
				return "", fmt.Errorf("bad length %q: 1 to %d bytes", length, api.MaxWatchLen)
			}
		}
		return g.wantMemory(o, a, n, fmt.Sprintf("%#x, %d bytes", a, n))
	}
	return g.expression(expr, q.TID, o)
}

// wantMemory asks for bytes of memory.
func (g *Cursor) wantMemory(o *slice.Options, a, n uint64, what string) (string, error) {
	var b [1]byte
	if _, err := g.ReadMemory(a, b[:]); err != nil {
		return "", err
	}
	if a+n < a {
		return "", fmt.Errorf("bad length %d", n)
	}
	key, _ := g.mem().Key(a)
	o.Want = []slice.Location{{IsMemory: true, Addr: key + a%mem.PageSize, Len: n}}
	return what, nil
}

// expression asks for the value of a C expression in the thread's innermost frame.
func (g *Cursor) expression(expr string, tid int, o *slice.Options) (string, error) {
	d := NewSymbols(g)
	stack := d.Stack(tid, 64)
	if len(stack) == 0 {
		return "", errNoFrame
	}
	var first error
	for i := range stack { // a frame without debug information has no variables
		v, err := d.Eval(&stack[i], expr)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		what := expr
		if stack[i].Function != "" && i > 0 {
			what += " in " + stack[i].Function
		}
		if v.Size > 0 {
			return g.wantMemory(o, v.Addr, uint64(v.Size), what)
		}
		if l, ok := inRegister(v.Handle); ok && i == 0 {
			o.Want = []slice.Location{l}
			return what, nil
		}
		if at, mod := d.elsewhere(expr); mod != "" {
			return g.wantMemory(o, at, 8, what)
		}
		return "", fmt.Errorf("%s is neither in memory nor in a register here", expr)
	}
	return "", first
}

// inRegister returns the register that holds a value.
func inRegister(handle any) (l slice.Location, ok bool) {
	v, ok := handle.(dwarf.Value)
	if !ok {
		return l, false
	}
	n, ok := v.Register()
	if !ok || n > dwarf.RIP+16 {
		return l, false
	}
	if r, ok := loader.GPR(int(n)); ok {
		return slice.Location{Reg: uint8(r), Len: uint64(max(v.Size(), 1))}, true
	}
	if n > dwarf.RIP { // xmm0 to xmm15 (System V ABI, AMD64, figure 3.36)
		return slice.Location{Reg: uint8(n - dwarf.RIP - 1), IsVector: true}, true
	}
	return l, false
}

// registerNamed returns the register of a name without the $.
func registerNamed(name string) (l slice.Location, ok bool) {
	for r, n := range checkpoint.RegNames[:16] {
		short := n[1:] // ax, r8 has no other
		switch {
		case name == n:
			return slice.Location{Reg: uint8(r), Len: 8}, r != x86.RSP
		case r < 8 && name == "e"+short, r >= 8 && name == n+"d":
			return slice.Location{Reg: uint8(r), Len: 4}, r != x86.RSP
		case r < 8 && name == short:
			return slice.Location{Reg: uint8(r), Len: 2}, r != x86.RSP
		case r < 4 && name == short[:1]+"l":
			return slice.Location{Reg: uint8(r), Len: 1}, true
		}
	}
	for _, kind := range []string{"xmm", "ymm"} {
		if n, err := strconv.ParseUint(strings.TrimPrefix(name, kind), 10, 8); err == nil && strings.HasPrefix(name, kind) && n < 16 {
			return slice.Location{Reg: uint8(n), IsVector: true}, true
		}
	}
	return l, false
}

// crashCriterion asks for what the instruction at which the program stands cannot cope with, and at
// the end of a program that ended itself because of something, for that.
func (g *Cursor) crashCriterion(ctx context.Context, o *slice.Options) (string, error) {
	m := g.cur.Machine()
	if e := m.Pending(); e != nil && e.Kind == checkpoint.EventFault {
		want, ok := faultWants(m, e)
		o.Here, o.Want = m.CPU.RIP, want
		return g.faultCriterion(ctx, o, ok, "the crash")
	}
	if !g.isLastImage() || !g.cur.AtEnd() {
		return "", ErrNoCriterion
	}
	return g.endCriterion(ctx, o)
}

// faultWants returns what the instruction at which m stands, and which raised e, cannot cope with. ok
// is false where there is no instruction: the program has gone to where nothing can be executed.
func faultWants(m *replay.Machine, e *checkpoint.Event) (want []slice.Location, ok bool) {
	in, ok := instructionAt(m)
	if !ok {
		return nil, false
	}
	isAddress := abi.Signal(e.Signo) == abi.SIGSEGV || abi.Signal(e.Signo) == abi.SIGBUS
	return slice.FaultWants(m.CPU, &in, isAddress, e.Addr), true
}

// faultCriterion names what faultWants returned, or finds where the address came from that the program
// has gone to.
func (g *Cursor) faultCriterion(ctx context.Context, o *slice.Options, isCode bool, what string) (string, error) {
	if !isCode {
		return g.targetCriterion(ctx, o, what)
	}
	// An address that cannot be one is refused at the jump, not behind it.
	if len(o.Want) == 0 {
		return "", fmt.Errorf("%w (the instruction has no operand, or its address is made of constants and the stack pointer)", ErrNoCriterion)
	}
	var names []string
	for _, l := range o.Want {
		switch {
		case l.IsAddress:
		case l.IsMemory:
			names = append(names, fmt.Sprintf("[%#x]", l.Addr))
		default:
			names = append(names, "$"+checkpoint.RegNames[l.Reg])
		}
	}
	return what + ": " + strings.Join(names, ", "), nil
}

// targetCriterion asks for the address that the program has gone to, where nothing can be
// executed.
func (g *Cursor) targetCriterion(ctx context.Context, o *slice.Options, what string) (string, error) {
	var target uint64
	err := g.t.Look(ctx, []checkpoint.Position{before(o.At)}, func(_ int, m *replay.Machine) {
		if in, ok := instructionAt(m); ok {
			o.Want, o.At, o.Here = slice.TargetWants(m.CPU, &in), m.Position(), m.CPU.RIP
		}
	}, func(_ int, m *replay.Machine) { target = m.CPU.RIP })
	if err == nil && len(o.Want) == 0 {
		err = ErrNoCriterion
	}
	return fmt.Sprintf("%s: where %#x came from", what, target), err
}

// before is the position at which the instruction before p stands.
func before(p checkpoint.Position) checkpoint.Position {
	if p.Instr > 0 {
		p.Instr--
	}
	p.Step = 0
	return p
}

// instructionAt decodes the instruction at which m stands; ok is false where nothing can be
// executed.
func instructionAt(m *replay.Machine) (in x86.Inst, ok bool) {
	var b [15]byte
	r, mapped := m.Mem.Find(m.CPU.RIP)
	if !mapped || r.Prot&mem.ProtExec == 0 {
		return in, false
	}
	n, _ := m.Mem.Peek(m.CPU.RIP, b[:])
	in, err := x86.DecodeInst(b[:n], m.CPU.RIP, m.CPU.ID)
	return in, err == nil
}
