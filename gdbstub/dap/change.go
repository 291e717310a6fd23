package dap

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// New values for variables, registers and memory, and calls of the program's functions. A
// recording does not change: the first change makes a copy of the process at the present
// position (api.DivertTarget), and from then on all that is read is of the copy. It is
// dropped when the program moves on, and the client's console says so.

// errNoCopy says that a target cannot be changed.
var errNoCopy = errors.New("nothing can be changed here")

// divert makes sure that there is a copy.
func (s *session) divert() (api.DivertTarget, error) {
	t, ok := s.target.(api.DivertTarget)
	if !ok {
		return nil, errNoCopy
	}
	if s.diverted {
		return t, nil
	}
	if err := t.Divert(func(b []byte) { s.later(strings.TrimSuffix(string(b), "\n")) }); err != nil {
		return nil, err
	}
	s.diverted = true
	s.touch()
	s.later("vplay: this is done in a copy of the process, which is dropped as soon as the program moves")
	return t, nil
}

// undivert drops the copy when the program moves, and says so.
func (s *session) undivert() {
	if s.dropCopy() {
		s.output("vplay: what was changed is dropped; the recording goes on from where it stood\n")
	}
}

// dropCopy drops the copy; false when there is none.
func (s *session) dropCopy() bool {
	if !s.diverted {
		return false
	}
	s.diverted = false
	s.touch()
	if t, ok := s.target.(api.DivertTarget); ok {
		t.Undivert()
	}
	return true
}

// touch makes what is read of the program be read anew.
func (s *session) touch() {
	s.changes++
	clear(s.frames)
}

// tellChanged has the client read variables anew.
func (s *session) tellChanged() {
	if s.canInvalidate {
		s.event("invalidated", godap.InvalidatedEventBody{Areas: []godap.InvalidatedAreas{"variables"}})
	}
}

// store makes a change in the copy.
func (s *session) store(tid int, p *api.Patch) error {
	t, err := s.divert()
	if err != nil {
		return err
	}
	defer s.touch()
	if p.Register == api.InMemory {
		return t.WriteMemory(p.Addr, p.Bytes)
	}
	regs, err := s.target.Registers(tid)
	if err != nil {
		return err
	}
	now := *regs
	switch n := p.Register; {
	case n == api.PatchRIP:
		patchWord(&now.RIP, p)
	case n >= 0 && n < len(now.GPR):
		patchWord(&now.GPR[n], p)
	case n >= api.PatchYMM0 && n < api.PatchYMM0+len(now.YMM):
		var b [32]byte
		for i, w := range now.YMM[n-api.PatchYMM0] {
			binary.LittleEndian.PutUint64(b[8*i:], w)
		}
		copy(b[min(p.Addr, 32):], p.Bytes)
		for i := range now.YMM[n-api.PatchYMM0] {
			now.YMM[n-api.PatchYMM0][i] = binary.LittleEndian.Uint64(b[8*i:])
		}
	default:
		return errNoCopy
	}
	return t.WriteRegisters(tid, &now)
}

// patchWord stores part of a register.
func patchWord(w *uint64, p *api.Patch) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], *w)
	copy(b[min(p.Addr, 8):], p.Bytes)
	*w = binary.LittleEndian.Uint64(b[:])
}

// maxCall bounds how long a function of the program may take.
const maxCall = 10 * time.Second

// caller runs functions of the program in the copy, on a thread's stack.
type caller struct {
	s   *session
	ctx context.Context
	tid int
}

// Place implements api.Runner.
func (c *caller) Place(b []byte) (uint64, error) {
	t, err := c.s.divert()
	if err != nil {
		return 0, err
	}
	addr, err := t.AllocateMemory(uint64(len(b)), 3)
	if err != nil {
		return 0, err
	}
	return addr, t.WriteMemory(addr, b)
}

// The registers of a call, as indices of api.Registers.GPR, and the bytes below the stack
// pointer that belong to the function there (System V ABI, AMD64, 3.2.2 and 3.2.3).
const (
	gprRAX  = 0
	gprRSP  = 4
	redZone = 128
)

var intArguments = [...]int{7, 6, 2, 1, 8, 9} // rdi rsi rdx rcx r8 r9

// Call implements api.Runner. The function returns to where the thread stands, and a
// breakpoint there counts when the stack pointer is back. The registers are what they were
// then; memory stays as the function left it.
func (c *caller) Call(entry uint64, ints, vectors []uint64) (rax, xmm0 uint64, err error) {
	t, err := c.s.divert()
	if err != nil {
		return 0, 0, err
	}
	before, err := c.s.target.Registers(c.tid)
	if err != nil {
		return 0, 0, err
	}
	defer c.s.touch()
	saved, regs := *before, *before
	sp := (saved.GPR[gprRSP]-redZone)&^15 - 8
	if err := t.WriteMemory(sp, binary.LittleEndian.AppendUint64(nil, saved.RIP)); err != nil {
		return 0, 0, fmt.Errorf("the stack has no room: %w", err)
	}
	regs.RIP, regs.GPR[gprRSP], regs.GPR[gprRAX] = entry, sp, uint64(len(vectors))
	for i, n := range ints[:min(len(ints), len(intArguments))] {
		regs.GPR[intArguments[i]] = n
	}
	for i, n := range vectors[:min(len(vectors), len(regs.YMM))] {
		regs.YMM[i] = [4]uint64{n}
	}
	regs.EFLAGS &^= 1 << 10 // DF is clear at a call (3.2.1)
	if err := t.WriteRegisters(c.tid, &regs); err != nil {
		return 0, 0, err
	}
	after, err := c.run(t, saved.RIP, sp+8)
	if after != nil {
		rax, xmm0 = after.GPR[gprRAX], after.YMM[0][0]
	}
	if c.s.diverted {
		err = errors.Join(err, t.WriteRegisters(c.tid, &saved))
	}
	return rax, xmm0, err
}

// run runs the copy until it is at an address with the stack pointer there, and returns the
// registers. Breakpoints of the client's on the way do not count.
func (c *caller) run(t api.DivertTarget, to, sp uint64) (*api.Registers, error) {
	b := api.Breakpoint{Kind: api.BreakHardware, Addr: to, Len: 1}
	if err := c.s.target.SetBreakpoint(b); err != nil {
		return nil, err
	}
	defer func() {
		if err := c.s.target.ClearBreakpoint(b); err != nil {
			c.s.srv.log.Warn("clear breakpoint", "err", err)
		}
	}()
	ctx, cancel := context.WithTimeout(c.ctx, maxCall)
	defer cancel()
	for {
		stop, err := t.ResumeDiverted(ctx, api.Resume{Kind: api.Continue, TID: c.tid}, true)
		if err != nil {
			return nil, err
		}
		regs, err := c.s.target.Registers(c.tid)
		if err != nil {
			return nil, err
		}
		switch {
		case isBreak(stop.Kind) && regs.RIP == to && regs.GPR[gprRSP] == sp:
			after := *regs
			return &after, nil
		case isBreak(stop.Kind):
		case stop.Kind == api.StopInterrupted && c.ctx.Err() == nil:
			return nil, fmt.Errorf("the function did not return within %v", maxCall)
		case stop.Kind == api.StopInterrupted:
			return nil, errCancelled
		case stop.Kind == api.StopExited:
			c.s.dropCopy()
			return nil, fmt.Errorf("the function ended the program with code %d; the copy is dropped", stop.Code)
		case stop.Kind == api.StopSignal:
			return nil, fmt.Errorf("the function got %s at %s", signalName(stop.Signo), c.s.symbolic(regs.RIP))
		default:
			return nil, errors.New("the function stopped before it returned")
		}
	}
}

// symbolic is an address with its name.
func (s *session) symbolic(addr uint64) string {
	if name := s.symbols.Symbol(addr); name != "" {
		return hex(addr) + " <" + name + ">"
	}
	return hex(addr)
}

// assignment is one that was typed: what is to be set, and the expression for it.
type assignment struct{ to, value string }

// assigned takes an assignment apart; ok is false for an expression that is none. What an
// operator stands for is written out: a += 2 is a = (a) + (2).
func assigned(expr string) (a assignment, ok bool) {
	if to, found := strings.CutSuffix(expr, "++"); found {
		return assignment{to, "(" + to + ") + 1"}, true
	}
	if to, found := strings.CutSuffix(expr, "--"); found {
		return assignment{to, "(" + to + ") - 1"}, true
	}
	depth, quote := 0, byte(0)
	for i := 0; i < len(expr); i++ {
		c := expr[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == '=' && depth == 0:
			if i+1 < len(expr) && expr[i+1] == '=' {
				i++
				continue
			}
			return splitAssignment(expr, i)
		}
	}
	return a, false
}

// splitAssignment takes an assignment apart at its = sign.
func splitAssignment(expr string, at int) (a assignment, ok bool) {
	to, value := expr[:at], strings.TrimSpace(expr[at+1:])
	if at == 0 || value == "" || to[at-1] == '!' {
		return a, false
	}
	for _, op := range []string{"<<", ">>", "+", "-", "*", "/", "%", "&", "|", "^"} {
		if left, found := strings.CutSuffix(to, op); found {
			return assignment{strings.TrimSpace(left), "(" + left + ") " + op + " (" + value + ")"}, true
		}
	}
	if c := to[at-1]; c == '<' || c == '>' {
		return a, false
	}
	return assignment{strings.TrimSpace(to), value}, true
}

// mayChange reports whether an expression can be more than a look: an assignment or a call.
func mayChange(expr string) bool {
	_, isAssigned := assigned(expr)
	return isAssigned || strings.ContainsAny(expr, `("`)
}

// change evaluates an expression that may change something, as a movement, for a function
// of the program may take long. It answers with what respond makes of the value.
func (s *session) change(req *godap.Request, ref frameRef, f *api.Frame, to *api.Value, expr string, respond func(v *api.Value) (any, error)) (any, error) {
	var value api.Value
	was := s.changes
	run := func(ctx context.Context, _ *movement) (stop api.Stop, err error) {
		run := &caller{s, ctx, ref.tid}
		a, ok := assigned(expr)
		switch {
		case to != nil:
			value, err = s.set(ref, f, to, expr, run)
		case !ok:
			if value, err = s.symbols.Eval(f, expr); err != nil { // not without a call
				value, err = s.symbols.EvalCalling(f, expr, run)
			}
		default:
			var v api.Value
			if v, err = s.symbols.EvalCalling(f, a.to, run); err == nil {
				value, err = s.set(ref, f, &v, a.value, run)
			}
		}
		return stop, err
	}
	s.begin(run, func(_ api.Stop, err error) {
		var body any
		if err == nil {
			body, err = respond(&value)
		}
		if err != nil {
			s.fail(req, err)
			return
		}
		s.respond(req, body)
		if s.changes != was {
			s.tellChanged()
		}
	})
	s.question(req, expr)
	return nil, errAnswered
}

// set gives a variable the value of an expression, and returns what it is then.
func (s *session) set(ref frameRef, f *api.Frame, to *api.Value, expr string, run api.Runner) (api.Value, error) {
	p, err := s.symbols.Assign(f, to, expr, run)
	if err != nil {
		return api.Value{}, err
	}
	if err := s.store(ref.tid, &p); err != nil {
		return api.Value{}, err
	}
	if p.Register == api.InMemory && to.Again != nil {
		return to.Again(), nil
	}
	if f, err = s.frameAt(ref); err != nil {
		return api.Value{}, err
	}
	return s.symbols.Eval(f, to.Expr)
}

// setVariable sets a variable of a group, or a register.
func setVariable(s *session, req *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.SetVariableArguments](raw)
	if err != nil {
		return nil, err
	}
	h, err := s.handle(a.VariablesReference)
	if err != nil {
		return nil, err
	}
	to, err := h.child(a.Name)
	if err != nil {
		return nil, err
	}
	f, err := s.frameAt(h.in)
	if err != nil {
		return nil, err
	}
	return s.change(req, h.in, f, &to, a.Value, func(v *api.Value) (any, error) {
		ref, err := s.reference(v, h.in, h.radix)
		return godap.SetVariableResponseBody{
			Value: v.Text, Type: v.Type, VariablesReference: ref, NamedVariables: v.Named, IndexedVariables: v.Indexed,
		}, err
	})
}

// setExpression sets what an expression is.
func setExpression(s *session, req *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.SetExpressionArguments](raw)
	if err != nil {
		return nil, err
	}
	ref, err := s.frameRef(a.FrameId)
	if err != nil {
		return nil, err
	}
	f, err := s.frameAt(ref)
	if err != nil {
		return nil, err
	}
	to, err := s.symbols.Eval(f, a.Expression)
	if err != nil {
		return nil, err
	}
	return s.change(req, ref, f, &to, a.Value, func(v *api.Value) (any, error) {
		n, err := s.reference(v, ref, 0)
		return godap.SetExpressionResponseBody{
			Value: v.Text, Type: v.Type, VariablesReference: n, NamedVariables: v.Named, IndexedVariables: v.Indexed,
		}, err
	})
}

// writeMemory writes to the copy's memory.
func writeMemory(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.WriteMemoryArguments](raw)
	if err != nil {
		return nil, err
	}
	addr, err := parseAddress(a.MemoryReference)
	if err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.DecodeString(a.Data)
	if err != nil || len(b) > maxMemory {
		return nil, errors.New("the data is not base64, or too long")
	}
	defer s.tellChanged()
	if err := s.store(0, &api.Patch{Register: api.InMemory, Addr: addr + uint64(a.Offset), Bytes: b}); err != nil {
		return nil, err
	}
	return godap.WriteMemoryResponseBody{BytesWritten: len(b)}, nil
}
