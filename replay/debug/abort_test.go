package debug

import (
	"strings"
	"testing"

	"vplay/dwarf"
)

// TestGuardSlot finds the place of the stack guard in what compilers write for the beginning
// of a function, and nothing where the guard is not stored or its place is not known.
func TestGuardSlot(t *testing.T) {
	const rbp, rsp = 0x7ffe_1000, 0x7ffe_0f00
	for _, c := range []struct {
		what string
		code string
		want uint64 // 0: none
	}{
		// push %rbp; mov %rsp,%rbp; sub $0x50,%rsp; mov %fs:0x28,%rax; mov %rax,-0x8(%rbp)
		{"gcc -O0", "\x55\x48\x89\xe5\x48\x83\xec\x50\x64\x48\x8b\x04\x25\x28\x00\x00\x00\x48\x89\x45\xf8", rbp - 8},
		// sub $0x28,%rsp; mov %fs:0x28,%rax; mov %rax,0x18(%rsp); xor %eax,%eax
		{"gcc -O2", "\x48\x83\xec\x28\x64\x48\x8b\x04\x25\x28\x00\x00\x00\x48\x89\x44\x24\x18\x31\xc0", rsp + 0x18},
		// mov %fs:0x28,%rdx; mov %rax,-0x10(%rbp); mov %rdx,-0x8(%rbp)
		{"another register is stored first", "\x64\x48\x8b\x14\x25\x28\x00\x00\x00\x48\x89\x45\xf0\x48\x89\x55\xf8", rbp - 8},
		// mov %fs:0x30,%rax; mov %rax,-0x8(%rbp)
		{"another word of the thread", "\x64\x48\x8b\x04\x25\x30\x00\x00\x00\x48\x89\x45\xf8", 0},
		// mov %fs:0x28,%rax; mov %rax,(%rbx)
		{"not on the stack", "\x64\x48\x8b\x04\x25\x28\x00\x00\x00\x48\x89\x03", 0},
		// mov %fs:0x28,%rax; mov %rax,0x18(%rsp,%rcx,8)
		{"at an index", "\x64\x48\x8b\x04\x25\x28\x00\x00\x00\x48\x89\x44\xcc\x18", 0},
		{"not to the end", "\x64\x48\x8b\x04\x25\x28\x00\x00\x00\x48\x89", 0},
		{"no code", "", 0},
	} {
		regs := dwarf.Regs{Known: 1<<dwarf.RBP | 1<<dwarf.RSP}
		regs.V[dwarf.RBP], regs.V[dwarf.RSP] = rbp, rsp
		if got, ok := guardSlot([]byte(c.code), &regs); got != c.want || ok != (c.want != 0) {
			t.Errorf("%s: %#x, %t, want %#x", c.what, got, ok, c.want)
		}
		if got, ok := guardSlot([]byte(c.code), &dwarf.Regs{}); ok {
			t.Errorf("%s: %#x, though no register is known", c.what, got)
		}
	}
}

// TestHeapFaults: a message is found by its beginning, so none may stand behind one that it
// begins with.
func TestHeapFaults(t *testing.T) {
	for i, h := range heapFaults {
		for _, before := range heapFaults[:i] {
			if strings.HasPrefix(h.message, before.message) {
				t.Errorf("%q is taken for %q", h.message, before.message)
			}
		}
	}
}
