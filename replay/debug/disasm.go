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
	if in, err := x86asm.Decode(b, 64); err == nil && in.Len == d.Len {
		return x86asm.GNUSyntax(in, rip, nil)
	}
	return d.Mnemonic
}
