package dwarf

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// demoSymbols is a .debug file of a C program whose source stands beside it.
func demoSymbols(t testing.TB) ([]byte, []string) {
	t.Helper()
	dir := filepath.Join("..", "cmd", "vplayd", "demo")
	b, err := os.ReadFile(filepath.Join(dir, "weather.debug"))
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile(filepath.Join(dir, "weather.c"))
	if err != nil {
		t.Fatal(err)
	}
	return b, strings.Split(string(src), "\n")
}

func TestLookups(t *testing.T) {
	b, src := demoSymbols(t)
	m, err := Open(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !m.HasLines() {
		t.Fatal("no debugging information")
	}
	for _, name := range []string{"main", "report", "add_reading", "forecast", "collect"} {
		addr, ok := m.Lookup(name)
		if !ok {
			t.Errorf("%s is not found", name)
			continue
		}
		if s, off, ok := m.Symbol(addr + 1); s != name || off != 1 || !ok {
			t.Errorf("%s: the symbol is %q+%d", name, s, off)
		}
		if f, entry, ok := m.Function(addr + 1); f != name || entry != addr || !ok {
			t.Errorf("%s: the function is %q at %#x", name, f, entry)
		}
		file, line, ok := m.Line(addr)
		if !ok || filepath.Base(file) != "weather.c" || !strings.Contains(strings.Join(src[line-4:line], "\n"), name+"(") {
			t.Errorf("%s: its line is %s:%d", name, file, line)
		}
	}
	for _, pc := range []uint64{0, 1, ^uint64(0)} {
		if _, _, ok := m.Line(pc); ok {
			t.Errorf("there is a line at %#x", pc)
		}
		if _, _, ok := m.Function(pc); ok {
			t.Errorf("there is a function at %#x", pc)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	b, _ := demoSymbols(t)
	arm := append([]byte(nil), b...)
	binary.LittleEndian.PutUint16(arm[18:], uint16(elf.EM_AARCH64))
	for name, in := range map[string][]byte{"empty": nil, "text": []byte("hello"), "cut": b[:40], "arm64": arm} {
		if _, err := Open(in, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestDemangle(t *testing.T) {
	for in, want := range map[string]string{
		"main": "main", "_ZN3foo3barEi": "foo::bar", "_ZNSt6vectorIiSaIiEE9push_backERKi": "std::vector<int, std::allocator<int> >::push_back",
		"_Z": "_Z", "": "", "_RNvC6_123foo3bar": "123foo::bar",
	} {
		if got := Demangle(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	long := "_Z" + strings.Repeat("N", 1<<20)
	if Demangle(long) != long {
		t.Error("a name of a megabyte is demangled")
	}
}

// ehFrame builds an .eh_frame at address base with one CIE and one FDE.
func ehFrame(base uint64, augmentation string, low, size uint32, initial, program []byte) []byte {
	le := binary.LittleEndian
	record := func(out, body []byte) []byte {
		for len(body)%8 != 4 {
			body = append(body, 0)
		}
		return append(le.AppendUint32(out, uint32(len(body))), body...)
	}
	cie := []byte{0, 0, 0, 0, 1}
	cie = append(append(cie, augmentation...), 0)
	cie = append(cie, 1, 0x78, 16, 1, 0x1b) // code 1, data -8, return address rip, augmentation data: pcrel sdata4
	out := record(nil, append(cie, initial...))
	at := uint32(len(out))
	fde := le.AppendUint32(nil, at+4)
	fde = le.AppendUint32(fde, low-uint32(base)-at-8)
	fde = le.AppendUint32(fde, size)
	fde = append(append(fde, 0), program...)
	return append(record(out, fde), 0, 0, 0, 0)
}

// words is memory of 8-byte words.
type words map[uint64]uint64

func (w words) ReadMemory(addr uint64, b []byte) int {
	for n := range b {
		v, ok := w[(addr+uint64(n))&^7]
		if !ok {
			return n
		}
		b[n] = byte(v >> (8 * ((addr + uint64(n)) & 7)))
	}
	return len(b)
}

func moduleOf(section []byte, addr uint64) *Module {
	return &Module{frames: []*frameSection{{data: section, addr: addr, eh: true}}}
}

// start is what every CIE of a compiler says: CFA = rsp+8, rip at CFA-8.
var start = []byte{0x0c, RSP, 8, 0x80 | RIP, 1}

func TestUnwind(t *testing.T) {
	const base, low = 0x2000, 0x1000
	// push %rbx; sub $16,%rsp; ...; add; pop; ret with DW_CFA_restore.
	program := []byte{
		0x41,     // advance_loc 1
		0x0e, 16, // def_cfa_offset 16
		0x80 | RBX, 2, // rbx at CFA-16
		0x44,     // advance_loc 4
		0x0e, 32, // def_cfa_offset 32
		0x0a,       // remember_state
		0x02, 0x10, // advance_loc1 16
		0x0e, 8, // def_cfa_offset 8
		0xc0 | RBX, // restore rbx
		0x41,       // advance_loc 1
		0x0b,       // restore_state
	}
	stack := words{0x7000: 0x1111, 0x7008: 0x2222, 0x7010: 0xb0b, 0x7018: 0x1400, 0x7020: 0x3333}
	m := moduleOf(ehFrame(base, "zR", low, 0x40, start, program), base)
	for _, c := range []struct {
		name     string
		pc, rsp  uint64
		rip, rbx uint64
		cfa      uint64
	}{
		{"entry", low, 0x7018, 0x1400, 5, 0x7020},
		{"pushed", low + 1, 0x7010, 0x1400, 0xb0b, 0x7020},
		{"body", low + 5, 0x7000, 0x1400, 0xb0b, 0x7020},
		{"restored", low + 21, 0x7018, 0x1400, 5, 0x7020},
		{"state restored", low + 22, 0x7000, 0x1400, 0xb0b, 0x7020},
	} {
		var r Regs
		r.Set(RSP, c.rsp)
		r.Set(RBX, 5)
		r.Set(RIP, c.pc+0x100000)
		got, signal, err := m.Unwind(&r, stack, 0x100000, false)
		if err != nil || signal || got.V[RIP] != c.rip || got.V[RBX] != c.rbx || got.V[RSP] != c.cfa {
			t.Errorf("%s: rip %#x rbx %#x rsp %#x signal %v err %v", c.name, got.V[RIP], got.V[RBX], got.V[RSP], signal, err)
		}
	}
	var r Regs
	r.Set(RSP, 0x9000)
	r.Set(RIP, low)
	if _, _, err := m.Unwind(&r, stack, 0, false); err == nil {
		t.Error("a stack that cannot be read gives a caller")
	}
	r.Set(RIP, low+0x40)
	if _, _, err := m.Unwind(&r, stack, 0, false); err == nil {
		t.Error("there is a frame behind the function")
	}
	r.Set(RSP, 0x7018)
	if _, _, err := m.Unwind(&r, stack, 0, true); err == nil {
		t.Log("in a call, the function's end belongs to it") // unwinds with the last row: memory decides
	}
}

// TestUnwindSignal: a trampoline finds the interrupted registers by
// expressions, and its caller's pc is not behind a call.
func TestUnwindSignal(t *testing.T) {
	const base, low = 0x2000, 0x1000
	program := []byte{
		0x0f, 3, 0x77, 0x20, 0x06, // def_cfa_expression: breg7 32; deref
		0x10, RIP, 2, 0x77, 0x28, // expression rip: breg7 40
		0x16, RBX, 3, 0x77, 0x08, 0x06, // val_expression rbx: breg7 8; deref
	}
	m := moduleOf(ehFrame(base, "zRS", low, 0x10, nil, program), base)
	stack := words{0x7008: 77, 0x7020: 0x7100, 0x7028: 0x1234}
	var r Regs
	r.Set(RSP, 0x7000)
	r.Set(RIP, low+4)
	got, signal, err := m.Unwind(&r, stack, 0, false)
	if err != nil || !signal || got.V[RIP] != 0x1234 || got.V[RSP] != 0x7100 || got.V[RBX] != 77 {
		t.Errorf("rip %#x rsp %#x rbx %d signal %v err %v", got.V[RIP], got.V[RSP], got.V[RBX], signal, err)
	}
}

// TestBacktrace goes from a jump to nowhere through two modules by call frame
// information and through one by frame pointers.
func TestBacktrace(t *testing.T) {
	m := moduleOf(ehFrame(0x2000, "zR", 0x1000, 0x40, start, nil), 0x2000)
	stack := words{
		0x7000: 0x1010,                 // pushed by the call to nowhere
		0x7008: 0x5010,                 // return address of 0x1000's frame, in a module without tables
		0x7020: 0x7040, 0x7028: 0x1020, // saved rbp, return address
		0x7030: 0, // the end
	}
	var r Regs
	r.Set(RSP, 0x7000)
	r.Set(RBP, 0x7020)
	r.Set(RIP, 0)
	find := func(pc uint64) (*Module, uint64, bool) {
		return map[bool]*Module{true: m}[pc < 0x2000], 0, pc >= 0x1000 && pc < 0x6000
	}
	var pcs []uint64
	for _, f := range Backtrace(r, stack, find, 10) {
		pcs = append(pcs, f.PC)
	}
	want := []uint64{0, 0x100f, 0x500f, 0x101f}
	if len(pcs) != len(want) {
		t.Fatalf("got %#x, want %#x", pcs, want)
	}
	for i := range want {
		if pcs[i] != want[i] {
			t.Errorf("frame %d: %#x, want %#x", i, pcs[i], want[i])
		}
	}
}

func TestFollowsCall(t *testing.T) {
	for name, c := range map[string]struct {
		b    uint64 // the eight bytes before the address, the last one highest
		want bool
	}{
		"call rel32":       {0x00000001e8000000, true},
		"call *%rax":       {0xd0ff000000000000, true},
		"call *0x10(%rax)": {0x1050ff0000000000, true},
		"jmp *%rax":        {0xe0ff000000000000, false},
		"nothing":          {0, false},
	} {
		if got := followsCall(words{0x1000: c.b}, 0x1008); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if followsCall(words{}, 3) {
		t.Error("a call before address 3")
	}
}

func FuzzOpen(f *testing.F) {
	b, _ := demoSymbols(f)
	f.Add(b[:64], uint64(0x401000))
	f.Add(b, uint64(0x40178f))
	f.Fuzz(func(t *testing.T, b []byte, pc uint64) {
		m, err := Open(b, &allowance{64 << 20, 64 << 20})
		if err != nil {
			return
		}
		m.Line(pc)
		m.Function(pc)
		m.Inlined(pc)
		m.Symbol(pc)
		var r Regs
		r.Set(RIP, pc)
		r.Set(RSP, pc)
		_, _, _ = m.Unwind(&r, words{pc &^ 7: pc}, 0, false)
	})
}

func FuzzEhFrame(f *testing.F) {
	f.Add(ehFrame(0x2000, "zR", 0x1000, 0x40, start, []byte{0x41, 0x0e, 16, 0x0a, 0x0b}), uint64(0x1002))
	f.Add(ehFrame(0x2000, "zRS", 0x1000, 0x10, nil, []byte{0x0f, 3, 0x77, 0x20, 0x06, 0x10, RIP, 2, 0x77, 0x28}), uint64(0x1004))
	f.Add(ehFrame(0x2000, "zR", 0x1000, 0x10, nil, []byte{0x0f, 3, 0x2f, 0xfd, 0xff}), uint64(0x1004)) // skip to itself
	f.Fuzz(func(t *testing.T, b []byte, pc uint64) {
		for _, eh := range []bool{true, false} {
			m := &Module{frames: []*frameSection{{data: b, addr: 0x2000, eh: eh}}}
			var r Regs
			for i := range r.V {
				r.Set(i, pc)
			}
			find := func(uint64) (*Module, uint64, bool) { return m, 0, true }
			if n := len(Backtrace(r, words{pc &^ 7: pc + 16, pc&^7 + 8: pc}, find, 16)); n > 16 {
				t.Fatalf("%d frames", n)
			}
		}
	})
}
