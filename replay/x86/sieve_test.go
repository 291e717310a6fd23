package x86

import "testing"

// TestSieve runs loops past a breakpoint with a sieve: Run stops at the first
// moment that has the state looked for, by whichever way the loop comes there,
// and never where a register, a vector register or a word of memory differs.
func TestSieve(t *testing.T) {
	const data = testData + 64
	// top: inc qword [rbx]; inc cl; nop; BREAK: nop; jmp top
	falls := []byte{0x48, 0xff, 0x03, 0xfe, 0xc1, 0x90, 0x90, 0xeb, 0xf7}
	// top: inc qword [rbx]; inc cl; jmp rdx; BREAK: jmp top
	indirect := []byte{0x48, 0xff, 0x03, 0xfe, 0xc1, 0xff, 0xe2, 0xeb, 0xf7}
	for _, x := range []struct {
		name string
		code []byte
		stop uint64
		set  func(c *CPU, s *Sieve)
		want uint64 // turns, 0: never
	}{
		{"registers", falls, 6, func(_ *CPU, s *Sieve) { s.R[RCX] = 200 }, 200},
		{"registers, indirect", indirect, 7, func(_ *CPU, s *Sieve) { s.R[RCX] = 200 }, 200},
		{"a word", falls, 6, func(_ *CPU, s *Sieve) { s.R[RCX], s.Words = 7, []SieveWord{{data, 256*300 + 7}} }, 256*300 + 7},
		{"a word, indirect", indirect, 7, func(_ *CPU, s *Sieve) { s.R[RCX], s.Words = 7, []SieveWord{{data, 256*3 + 7}} }, 256*3 + 7},
		{"two words", falls, 6, func(_ *CPU, s *Sieve) {
			s.R[RCX], s.Words = 7, []SieveWord{{data + 8, 5}, {data, 256*3 + 7}}
		}, 256*3 + 7},
		{"a word that never comes", falls, 6, func(_ *CPU, s *Sieve) { s.R[RCX], s.Words = 7, []SieveWord{{data + 8, 6}} }, 0},
		{"a page that is not cached", falls, 6, func(_ *CPU, s *Sieve) { s.R[RCX], s.Words = 7, []SieveWord{{1 << 40, 6}} }, 7},
		{"vectors", falls, 6, func(c *CPU, s *Sieve) { s.R[RCX], s.V = 7, new([16]Vec); c.V[3][1] = 1; s.V[3][1] = 1 }, 7},
		{"other vectors", falls, 6, func(c *CPU, s *Sieve) { s.R[RCX], s.V = 7, new([16]Vec); c.V[3][1] = 1 }, 0},
		{"another place", falls, 6, func(_ *CPU, s *Sieve) { s.PC++ }, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, bus := program(x.code...)
			bus.put(data+8, []byte{5})
			c.R[RBX], c.R[RDX] = data, testText+x.stop
			c.SetBreakpoints([]uint64{testText + x.stop})
			c.Sieve = &Sieve{PC: testText + x.stop, R: c.R}
			x.set(c, c.Sieve)
			const limit = 1_000_000
			perTurn := uint64(5) // instructions of a turn, 3 of them before the breakpoint
			if x.stop == 7 {
				perTurn = 4
			}
			got := c.Run(limit)
			if x.want == 0 {
				if got != ExitLimit || c.Retired != limit {
					t.Fatalf("exit %d at %#x after %d instructions, want none", got, c.RIP, c.Retired)
				}
				return
			}
			wantExit(t, c, got, ExitBreak, testText+x.stop, (x.want-1)*perTurn+3)
		})
	}
}

// TestRepLeads asks where the iterations of string instructions lead to.
func TestRepLeads(t *testing.T) {
	for _, x := range []struct {
		name               string
		code               []byte
		down               bool
		rax, rcx, rsi, rdi uint64 // looked for
		want               bool
	}{
		{name: "movsb", code: []byte{0xf3, 0xa4}, rsi: 1030, rdi: 2030, rcx: 70, want: true},
		{name: "movsb elsewhere", code: []byte{0xf3, 0xa4}, rsi: 1030, rdi: 2031, rcx: 70},
		{name: "movsq", code: []byte{0xf3, 0x48, 0xa5}, rsi: 1240, rdi: 2240, rcx: 70, want: true},
		{name: "movsd down", code: []byte{0xf3, 0xa5}, down: true, rsi: 1000 - 120, rdi: 2000 - 120, rcx: 70, want: true},
		{name: "more than are left", code: []byte{0xf3, 0xa4}, rsi: 900, rdi: 1900, rcx: 200},
		{name: "none", code: []byte{0xf3, 0xa4}, rsi: 1000, rdi: 2000, rcx: 100},
		{name: "stosb", code: []byte{0xf3, 0xaa}, rsi: 1000, rdi: 2030, rcx: 70, want: true},
		{name: "scasb", code: []byte{0xf2, 0xae}, rsi: 1000, rdi: 2030, rcx: 70, want: true},
		{name: "lodsb", code: []byte{0xf3, 0xac}, rax: 77, rsi: 1030, rdi: 2000, rcx: 70, want: true},
		{name: "cmpsb", code: []byte{0xf3, 0xa6}, rsi: 1030, rdi: 2030, rcx: 70, want: true},
		{name: "cmpsb, another rax", code: []byte{0xf3, 0xa6}, rax: 77, rsi: 1030, rdi: 2030, rcx: 70},
		{name: "no prefix", code: []byte{0xa4}, rsi: 1030, rdi: 2030, rcx: 70},
		{name: "popcnt", code: []byte{0xf3, 0x0f, 0xb8, 0xc1}, rsi: 1000, rdi: 2000, rcx: 70},
		{name: "rdfsbase, whose opcode ends as SCAS", code: []byte{0xf3, 0x0f, 0xae, 0xc1}, rsi: 1000, rdi: 2030, rcx: 70},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, _ := program(append(x.code, 0x0f, 0x0b)...)
			if x.down {
				c.SetFlags(c.Flags() | FlagDF)
			}
			c.R[RCX], c.R[RSI], c.R[RDI] = 100, 1000, 2000
			want := c.R
			want[RAX], want[RCX], want[RSI], want[RDI] = x.rax, x.rcx, x.rsi, x.rdi
			if got := c.RepLeads(&want); got != x.want {
				t.Errorf("%t, want %t", got, x.want)
			}
		})
	}
}
