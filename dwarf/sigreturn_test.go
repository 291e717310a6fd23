package dwarf

import "testing"

// trampoline is memory with a signal trampoline at an address, and a stack.
type trampoline struct {
	at    uint64
	stack words
}

func (m trampoline) ReadMemory(addr uint64, b []byte) int {
	if addr == m.at {
		return copy(b, sigreturn)
	}
	return m.stack.ReadMemory(addr, b)
}

// TestBacktraceSigreturn: the trampolines of Go and musl have no call frame information, and a backtrace ended there, before the
// frames that matter. The return address of the handler is the trampoline's first byte.
func TestBacktraceSigreturn(t *testing.T) {
	m := moduleOf(ehFrame(0x2000, "zR", 0x1000, 0x40, start, nil), 0x2000)
	stack := words{0x7000: 0x5000} // the handler returns to the trampoline
	for i, n := range gregs {
		v := uint64(i)
		switch n {
		case RSP:
			v = 0x6100 // another stack, below
		case RBP:
			v = 0x6200
		case RIP:
			v = 0x4010
		}
		stack[0x7008+gregsAt+8*uint64(i)] = v
	}
	stack[0x6200], stack[0x6208] = 0, 0x4020 // the interrupted function's frame, by frame pointer
	var r Regs
	r.Set(RSP, 0x7000)
	r.Set(RIP, 0x1000)
	find := func(pc uint64) (*Module, uint64, bool) {
		return map[bool]*Module{true: m}[pc < 0x2000], 0, pc >= 0x1000 && pc < 0x6000
	}
	frames := Backtrace(r, trampoline{0x5000, stack}, find, 10)
	want := []struct {
		pc     uint64
		signal bool
	}{{0x1000, false}, {0x5000, true}, {0x4010, false}, {0x401f, false}}
	if len(frames) != len(want) {
		t.Fatalf("%d frames: %+v", len(frames), frames)
	}
	for i, w := range want {
		if f := frames[i]; f.PC != w.pc || f.Signal != w.signal {
			t.Errorf("frame %d: %#x, signal %t, want %#x, %t", i, f.PC, f.Signal, w.pc, w.signal)
		}
	}
}

// TestBacktraceInjected: what Go's runtime has called in the place of an instruction that faulted
// returns to that instruction, and not behind a call. The instruction before may be of another line
// or inlined function.
func TestBacktraceInjected(t *testing.T) {
	for _, c := range []struct {
		name string
		want uint64
	}{{"runtime.sigpanic", 0x1020}, {"runtime.asyncPreempt", 0x1020}, {"runtime.gopanic", 0x101f}} {
		m := moduleOf(ehFrame(0x2000, "zR", 0x1000, 0x40, start, nil), 0x2000)
		m.symbols = []symbol{{name: c.name, addr: 0x1000, size: 0x10}, {name: "main.use", addr: 0x1010, size: 0x20}}
		var r Regs
		r.Set(RSP, 0x7000)
		r.Set(RIP, 0x1004)
		find := func(pc uint64) (*Module, uint64, bool) { return m, 0, pc >= 0x1000 && pc < 0x2000 }
		frames := Backtrace(r, words{0x7000: 0x1020}, find, 10)
		if len(frames) < 2 || frames[1].PC != c.want {
			t.Errorf("%s: %+v, want a caller at %#x", c.name, frames, c.want)
		}
	}
}
