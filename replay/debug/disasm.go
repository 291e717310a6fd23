package debug

import (
	"fmt"

	"golang.org/x/arch/x86/x86asm"

	"vplay/loader/image"
	"vplay/replay/x86"
)

// An instruction as text, with numbers for addresses. With names for addresses it is in
// symbols.go.

// Disassemble prints the instruction at rip in GNU syntax; where x86asm does
// not know it, the emulator's own decoder names it.
func Disassemble(m image.Memory, rip uint64) string {
	var b [15]byte
	n := m.ReadMemory(rip, b[:])
	if n == 0 {
		return "(not captured)"
	}
	return DisassembleBytes(b[:n], rip)
}

// DisassembleBytes prints the instruction at the start of b, which stands at
// rip.
func DisassembleBytes(b []byte, rip uint64) string {
	d, err := x86.Decode(b)
	if err != nil {
		return fmt.Sprintf("(bad) % x", b[:min(len(b), 4)])
	}
	if in, err := decode(b); err == nil && in.Len == d.Len {
		return x86asm.GNUSyntax(in, rip, nil)
	}
	return d.Mnemonic
}

// decode is x86asm.Decode with signed displacements: x86asm takes one of 32 bits for
// unsigned, and so has 0xfffffde8(%rbp) for -0x218(%rbp), 4 GiB too far.
func decode(b []byte) (x86asm.Inst, error) {
	in, err := x86asm.Decode(b, 64)
	if op := in.Opcode >> 24; op >= 0xa0 && op <= 0xa3 {
		return in, err // MOV with an address of 64 bits
	}
	for i, a := range in.Args {
		if m, ok := a.(x86asm.Mem); ok && m.Disp>>32 == 0 {
			m.Disp = int64(int32(m.Disp))
			in.Args[i] = m
		}
	}
	return in, err
}
