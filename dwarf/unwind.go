package dwarf

import (
	"encoding/binary"
	"errors"

	"github.com/go-delve/delve/pkg/dwarf/regnum"
)

// Unwinding: from the registers of a frame to those of its caller, by the call frame
// information (DWARF 5, section 6.4). Its instructions are executed in cfa.go, its sections read in frame.go.

// Register numbers of the System V ABI, AMD64 supplement, figure 3.36.
const (
	RAX = regnum.AMD64_Rax
	RDX = regnum.AMD64_Rdx
	RCX = regnum.AMD64_Rcx
	RBX = regnum.AMD64_Rbx
	RSI = regnum.AMD64_Rsi
	RDI = regnum.AMD64_Rdi
	RBP = regnum.AMD64_Rbp
	RSP = regnum.AMD64_Rsp
	R8  = regnum.AMD64_R8
	R9  = regnum.AMD64_R9
	R10 = regnum.AMD64_R10
	R11 = regnum.AMD64_R11
	R12 = regnum.AMD64_R12
	R13 = regnum.AMD64_R13
	R14 = regnum.AMD64_R14
	R15 = regnum.AMD64_R15
	RIP = regnum.AMD64_Rip // the return address column

	numRegs = RIP + 1
)

// Memory reads the debugged program: as much of b as is readable from addr on,
// and how much that is.
type Memory interface {
	ReadMemory(addr uint64, b []byte) int
}

// Regs are a frame's registers by their DWARF numbers, and which of them are
// known.
type Regs struct {
	V     [numRegs]uint64
	Known uint32 // bit n: V[n] is the frame's value
}

// Set makes register n known.
func (r *Regs) Set(n int, v uint64) {
	r.V[n] = v
	r.Known |= 1 << n
}

func (r *Regs) get(n uint64) (uint64, bool) {
	if n >= numRegs {
		return 0, false
	}
	return r.V[n], r.Known>>n&1 != 0
}

// errEnd says that a frame has no caller.
var errEnd = errors.New("dwarf: this is the outermost frame")

// Unwind returns the registers of the caller of the frame with registers regs.
// bias is what the module's addresses lie above the file's. behind says that
// the frame is in the middle of a call, so that its pc may lie behind the
// function's end. signal says that the frame is a signal trampoline: its
// caller was interrupted, not calling. Errors: there is no information for the
// address, it is the outermost frame, or memory that is needed cannot be read.
func (m *Module) Unwind(regs *Regs, mem Memory, bias uint64, behind bool) (caller Regs, signal bool, err error) {
	pc := regs.V[RIP] - bias
	if behind {
		pc--
	}
	f, err := m.find(pc)
	if err != nil {
		return caller, false, err
	}
	r, err := f.rowAt(pc)
	if err != nil {
		return caller, false, err
	}
	cfa, err := r.cfa(regs, mem)
	if err != nil {
		return caller, false, err
	}
	for n := range uint64(numRegs) {
		if v, ok := r.rules[n].value(n, cfa, regs, mem); ok {
			caller.Set(int(n), v)
		}
	}
	if r.rules[RSP].kind == ruleSame {
		caller.Set(RSP, cfa)
	}
	ra := f.cie.ra
	if ra >= numRegs || r.rules[ra].kind == ruleUndefined || r.rules[ra].kind == ruleSame {
		return caller, false, errEnd
	}
	v, ok := caller.get(ra)
	if !ok {
		return caller, false, errMemory
	}
	caller.Set(RIP, v)
	return caller, f.cie.signal, nil
}

// cfa computes the canonical frame address.
func (r *row) cfa(regs *Regs, mem Memory) (uint64, error) {
	if r.cfaExpr != nil {
		return evaluate(r.cfaExpr, nil, regs, mem)
	}
	v, ok := regs.get(r.cfaReg)
	if !ok {
		return 0, errProgram
	}
	return v + uint64(r.cfaOff), nil
}

// CFA returns the canonical frame address of the frame with registers regs, which
// tells one activation of a function from another. The arguments are Unwind's.
func (m *Module) CFA(regs *Regs, mem Memory, bias uint64, behind bool) (uint64, error) {
	pc := regs.V[RIP] - bias
	if behind {
		pc--
	}
	return m.cfa(regs, mem, pc)
}

func (m *Module) cfa(regs *Regs, mem Memory, pc uint64) (uint64, error) {
	f, err := m.find(pc)
	if err != nil {
		return 0, err
	}
	r, err := f.rowAt(pc)
	if err != nil {
		return 0, err
	}
	return r.cfa(regs, mem)
}

var errMemory = errors.New("dwarf: the stack cannot be read")

// value returns the caller's value of register n.
func (r *rule) value(n, cfa uint64, regs *Regs, mem Memory) (uint64, bool) {
	switch r.kind {
	case ruleSame:
		return regs.get(n)
	case ruleOffset:
		return load(mem, cfa+uint64(r.n))
	case ruleValOffset:
		return cfa + uint64(r.n), true
	case ruleRegister:
		return regs.get(uint64(r.n))
	case ruleExpression, ruleValExpression:
		v, err := evaluate(r.expr, []uint64{cfa}, regs, mem)
		if err != nil {
			return 0, false
		}
		if r.kind == ruleExpression {
			return load(mem, v)
		}
		return v, true
	case ruleUndefined:
	}
	return 0, false
}

// load reads a word.
func load(mem Memory, addr uint64) (uint64, bool) {
	var w [8]byte
	if mem.ReadMemory(addr, w[:]) != len(w) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(w[:]), true
}

// Frame is one function activation.
type Frame struct {
	Regs   Regs
	PC     uint64  // of the instruction to show: in a caller, inside the call, but for signal trampolines
	Module *Module // nil where nothing is known of PC
	Bias   uint64
	Signal bool // the frame is a signal trampoline
}

// Modules finds the module that holds an address, and its bias. ok says that
// there is one; the module is nil when nothing is known of it.
type Modules func(addr uint64) (m *Module, bias uint64, ok bool)

// Backtrace returns at most limit frames, innermost first, the first being
// that of regs. It ends where unwinding fails. Where call frame information
// lacks, it knows signal trampolines by their code, and believes the frame pointer, and at a jump to nowhere the return
// address on the stack.
func Backtrace(regs Regs, mem Memory, modules Modules, limit int) []Frame {
	var out []Frame
	inCall := false
	for len(out) < limit {
		f := Frame{Regs: regs, PC: regs.V[RIP]}
		if inCall {
			f.PC--
		}
		mod, bias, mapped := modules(f.PC)
		f.Module, f.Bias = mod, bias
		if len(out) > 0 && !mapped {
			break
		}
		caller, signal, err := Regs{}, false, errNoFrame
		if mod != nil {
			caller, signal, err = mod.Unwind(&regs, mem, bias, inCall)
		}
		if !signal {
			if r, ok := interrupted(&regs, mem); ok {
				caller, signal, err = r, true, nil
			}
		}
		if f.Signal = signal; signal {
			f.PC = regs.V[RIP] // no call led there
		}
		out = append(out, f)
		if errors.Is(err, errNoFrame) {
			caller, err = guess(&regs, mem, mapped, len(out) == 1)
		}
		if err != nil || caller.V[RIP] == 0 || caller.V[RSP] <= regs.V[RSP] && !signal {
			break
		}
		regs, inCall = caller, !signal && !f.isInjected()
	}
	return out
}

// isInjected reports whether no instruction called the frame's function: Go's handlers of signals
// put the place that was interrupted on the stack, as if a call stood before it (runtime/traceback.go,
// injectedCall). Of a nil pointer that place is the one that matters.
func (f *Frame) isInjected() bool {
	if f.Module == nil {
		return false
	}
	switch name, _, _ := f.Module.Symbol(f.PC - f.Bias); name {
	case "runtime.sigpanic", "runtime.asyncPreempt", "runtime.debugCallV2":
		return true
	}
	return false
}

// guess finds a caller without call frame information. In the innermost frame,
// which may be a stub of a few instructions or a jump to nowhere, the top of
// the stack is the return address if a call stands before it.
func guess(regs *Regs, mem Memory, mapped, innermost bool) (Regs, error) {
	caller := *regs
	sp, ok := regs.get(RSP)
	if innermost && ok {
		ra, ok := load(mem, sp)
		switch {
		case ok && (!mapped || followsCall(mem, ra)):
			caller.Set(RSP, sp+8)
			caller.Set(RIP, ra)
			return caller, nil
		case !mapped:
			return caller, errMemory
		}
	}
	bp, ok := regs.get(RBP)
	if !ok || bp < sp || bp-sp > 1<<20 || bp%8 != 0 {
		return caller, errEnd
	}
	saved, ok1 := load(mem, bp)
	ra, ok2 := load(mem, bp+8)
	if !ok1 || !ok2 {
		return caller, errMemory
	}
	caller = Regs{}
	caller.Set(RBP, saved)
	caller.Set(RSP, bp+16)
	caller.Set(RIP, ra)
	return caller, nil
}

// followsCall reports whether the bytes before ra are a near call.
func followsCall(mem Memory, ra uint64) bool {
	var b [maxCallLen]byte
	return ra >= maxCallLen && mem.ReadMemory(ra-maxCallLen, b[:]) == maxCallLen && EndsInCall(&b)
}

// maxCallLen is the length of the longest near call.
const maxCallLen = 7

// EndsInCall reports whether bytes of code may end in a near call: E8 and four
// bytes, or FF /2 of two to seven bytes (SDM volume 2A, CALL).
func EndsInCall(b *[maxCallLen]byte) bool {
	if b[2] == 0xe8 {
		return true
	}
	for n := 2; n <= len(b); n++ {
		if at := len(b) - n; b[at] == 0xff && b[at+1]>>3&7 == 2 {
			return true
		}
	}
	return false
}
