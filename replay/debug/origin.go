package debug

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"vplay/replay"
	"vplay/replay/x86"
)

// Origin says where a bad pointer came from: a register that got value at
// address addr of memory.
type Origin struct {
	Reg   string
	Value uint64
	Addr  uint64
	Load  string // the instruction that loaded it
}

// maxBack bounds the steps back to the instruction that set a register.
const maxBack = 10_000

var errOrigin = errors.New("where the bad pointer came from cannot be found")

// FindOrigin follows the base register of the memory access that the timeline
// stands at back to the load that set it, through moves between registers. The
// timeline ends up at that load.
func FindOrigin(ctx context.Context, t *replay.Cursor) (*Origin, error) {
	at := decodeAt(t)
	m, ok := memoryOf(at)
	if !ok || m.Base == 0 {
		return nil, errOrigin
	}
	reg := m.Base
	o := &Origin{Reg: strings.ToLower(reg.String())}
	st := &t.Machine().CPU.State
	if o.Value, ok = registerValue(st, reg); !ok {
		return nil, errOrigin
	}
	for range maxBack {
		stop, err := t.StepBack(ctx)
		if err != nil {
			return nil, err
		}
		if stop.Edge {
			break
		}
		st := &t.Machine().CPU.State
		if v, _ := registerValue(st, reg); v == o.Value {
			continue
		}
		in := decodeAt(t)
		switch src := in.Args[1].(type) {
		case x86asm.Mem:
			if in.Op != x86asm.MOV {
				return nil, errOrigin
			}
			o.Addr = effective(st, src, in.Len)
			o.Load = x86asm.GNUSyntax(in, st.RIP, nil)
			return o, nil
		case x86asm.Reg:
			if in.Op != x86asm.MOV {
				return nil, errOrigin
			}
			reg = src
		default:
			return nil, errOrigin
		}
	}
	return nil, errOrigin
}

// decodeAt decodes the instruction at the timeline's position; one that is not
// understood has no arguments.
func decodeAt(t *replay.Cursor) x86asm.Inst {
	var b [15]byte
	m := t.Machine()
	n, _ := m.Mem.Peek(m.CPU.RIP, b[:])
	in, err := decode(b[:n])
	if err != nil {
		return x86asm.Inst{}
	}
	return in
}

func memoryOf(in x86asm.Inst) (x86asm.Mem, bool) {
	for _, a := range in.Args {
		if m, ok := a.(x86asm.Mem); ok {
			return m, true
		}
	}
	return x86asm.Mem{}, false
}

// registerValue returns a 64-bit general register.
func registerValue(st *x86.State, r x86asm.Reg) (uint64, bool) {
	if r < x86asm.RAX || r > x86asm.R15 {
		return 0, false
	}
	return st.R[r-x86asm.RAX], true
}

// effective returns the address of a memory operand.
func effective(st *x86.State, m x86asm.Mem, length int) uint64 {
	a := uint64(m.Disp)
	if m.Base == x86asm.RIP {
		a += st.RIP + uint64(length)
	} else if v, ok := registerValue(st, m.Base); ok {
		a += v
	}
	if v, ok := registerValue(st, m.Index); ok {
		a += v * uint64(m.Scale)
	}
	switch m.Segment {
	case x86asm.FS:
		a += st.FSBase
	case x86asm.GS:
		a += st.GSBase
	default: // The other segments begin at 0.
	}
	return a
}

// NotCanonical names the address that the instruction in b would access or jump to, and
// the registers it is made of, when no address can be like that: it raises #GP or #SS, of
// which the signal says no address (SDM vol. 1, 3.3.7.1).
func NotCanonical(st *x86.State, m Memory, b []byte) string {
	in, err := decode(b)
	if err != nil {
		return ""
	}
	isJump := in.Op == x86asm.CALL || in.Op == x86asm.JMP
	if r, ok := in.Args[0].(x86asm.Reg); ok && isJump {
		target, ok := registerValue(st, r)
		return notCanonical(st, target, ok, r)
	}
	o, ok := memoryOf(in)
	a := effective(st, o, in.Len)
	if s := notCanonical(st, a, ok, o.Base, o.Index); s != "" || !ok || !isJump {
		return s
	}
	target, ok := m.Word(a)
	if s := notCanonical(st, target, ok); s != "" {
		return fmt.Sprintf("%s, from %#x", s, a)
	}
	return ""
}

// notCanonical is the text of NotCanonical for an address that is made of registers. "" where
// the address is not known, or memory could have it.
func notCanonical(st *x86.State, a uint64, known bool, from ...x86asm.Reg) string {
	if !known || uint64(int64(a)<<16>>16) == a {
		return ""
	}
	var regs []string
	for _, r := range from {
		if v, ok := registerValue(st, r); ok {
			regs = append(regs, fmt.Sprintf("%%%s=%#x%s", strings.ToLower(r.String()), v, AsText(v)))
		}
	}
	if len(regs) == 0 {
		return fmt.Sprintf("%#x%s is no canonical address", a, AsText(a))
	}
	return fmt.Sprintf("%#x is no canonical address: %s", a, strings.Join(regs, ", "))
}

// AsText returns " (the text ...)" for a number whose bytes in memory are characters:
// what an overflowing string has put in the place of a pointer. "" for others.
func AsText(v uint64) string {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	for _, c := range b {
		if c < ' ' || c > '~' {
			return ""
		}
	}
	return fmt.Sprintf(" (the text %q)", b)
}
