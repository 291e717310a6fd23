package x86

import (
	"testing"
	"time"
)

// program returns a CPU with code at testText (writable too) and zero data.
func program(code ...byte) (*CPU, *testBus) {
	bus := newTestBus()
	bus.add(testText, 2*pageSize, "rwx")
	bus.put(testText, code)
	bus.add(testData, testTop-testData, "rw")
	c := New(bus, &CPUIdentity{Vendor: VendorAMD, Family: 0x19})
	c.RIP = testText
	c.R[RSP] = testTop - 64
	return c, bus
}

func wantExit(t *testing.T, c *CPU, got, want Exit, rip, retired uint64) {
	t.Helper()
	if got != want || c.RIP != rip || c.Retired != retired {
		t.Fatalf("exit %d at %#x after %d, fault %+v; want exit %d at %#x after %d", got, c.RIP, c.Retired, c.Fault, want, rip, retired)
	}
}

// TestSelfModifying stores into the instruction behind the store, in the same
// block: the new one is executed.
func TestSelfModifying(t *testing.T) {
	// c6 05 d32 b0: mov byte [rip+1], 2: the immediate of mov eax, 1.
	code := []byte{0xc6, 0x05, 1, 0, 0, 0, 2, 0xb8, 1, 0, 0, 0, 0x0f, 0x0b}
	c, _ := program(code...)
	wantExit(t, c, c.Run(100), ExitFault, testText+12, 2)
	if c.R[RAX] != 2 {
		t.Fatalf("eax = %d, want 2", c.R[RAX])
	}
	// Again, from a warm cache, with the old byte back.
	c.Bus.Write(testText+8, []byte{1})
	c.FlushTLB()
	c.RIP, c.Retired = testText, 0
	wantExit(t, c, c.Run(100), ExitFault, testText+12, 2)
	if c.R[RAX] != 2 {
		t.Fatalf("second run: eax = %d, want 2", c.R[RAX])
	}
}

// TestModifiedLoop changes a loop's body from inside the loop, in another
// block that is linked to it.
func TestModifiedLoop(t *testing.T) {
	code := []byte{
		0xb9, 10, 0, 0, 0, // mov ecx, 10
		0x83, 0xc0, 1, // loop: add eax, 1
		0x83, 0xf9, 5, // cmp ecx, 5
		0x75, 0x07, // jne skip
		0xc6, 0x05, 0xf3, 0xff, 0xff, 0xff, 100, // mov byte [rip-13], 100: the add's immediate
		0xff, 0xc9, // skip: dec ecx
		0x75, 0xed, // jnz loop
		0x0f, 0x0b,
	}
	c, _ := program(code...)
	wantExit(t, c, c.Run(1000), ExitFault, testText+24, 1+10*5+1)
	if want := uint64(6 + 4*100); c.R[RAX] != want {
		t.Fatalf("eax = %d, want %d", c.R[RAX], want)
	}
}

func TestBreakpoints(t *testing.T) {
	// add eax,1; add eax,2; add eax,4; jmp back
	c, _ := program(0x83, 0xc0, 1, 0x83, 0xc0, 2, 0x83, 0xc0, 4, 0xeb, 0xf5)
	c.SetBreakpoints([]uint64{testText + 3, testText})
	wantExit(t, c, c.Run(100), ExitBreak, testText, 0)
	c.SkipBreak = true
	wantExit(t, c, c.Run(100), ExitBreak, testText+3, 1)
	wantExit(t, c, c.Run(100), ExitBreak, testText+3, 1)
	c.SkipBreak = true
	wantExit(t, c, c.Run(100), ExitBreak, testText, 4)
	c.SetBreakpoints(nil)
	wantExit(t, c, c.Run(9), ExitLimit, testText+3, 9)
	wantExit(t, c, c.Run(9), ExitLimit, testText+3, 9)
}

// TestBreakpointsKeepCode: setting and removing a breakpoint decodes nothing again but
// the blocks that it lies in, and exits that are linked to those find the new ones.
func TestBreakpointsKeepCode(t *testing.T) {
	// top: inc eax; jmp A; A: inc ebx; jmp B; B: inc ecx; jmp top
	c, bus := program(0xff, 0xc0, 0xeb, 0, 0xff, 0xc3, 0xeb, 0, 0xff, 0xc1, 0xeb, 0xf4)
	wantExit(t, c, c.Run(60), ExitLimit, testText, 60)
	kept, asked := map[uint16]*block{}, bus.asked
	for off, b := range c.code.pages[testText].blocks {
		kept[off] = b
	}
	for _, x := range []struct {
		at      uint64
		retired uint64
	}{{testText + 4, 2}, {testText + 8, 4}, {testText + 10, 5}, {testText, 6}} {
		c.SetBreakpoints([]uint64{x.at})
		c.Retired, c.RIP, c.SkipBreak = 0, testText, true
		wantExit(t, c, c.Run(60), ExitBreak, x.at, x.retired)
		c.SetBreakpoints(nil)
		wantExit(t, c, c.Run(60), ExitLimit, testText, 60)
		for off, b := range c.code.pages[testText].blocks {
			if was := kept[off]; was != nil && was != b && x.at < testText+uint64(off) {
				t.Errorf("breakpoint at %#x: the block at %#x was decoded again", x.at, b.pc)
			}
			kept[off] = b
		}
	}
	if bus.asked != asked {
		t.Errorf("the page's identity was asked for %d times", bus.asked-asked)
	}
}

// TestBreakpointInFormerCode: a page has another identity for a while, as when a snapshot is
// restored, and then the former one. A breakpoint is found in what was decoded at first.
func TestBreakpointInFormerCode(t *testing.T) {
	// top: inc eax; inc ebx; jmp top; other: jmp other
	c, bus := program(0xff, 0xc0, 0xff, 0xc3, 0xeb, 0xfa, 0xeb, 0xfe)
	run := func(pc, id uint64) {
		bus.pages[testText].code = id
		c.FlushTLB()
		c.Retired, c.RIP = 0, pc
		wantExit(t, c, c.Run(6), ExitLimit, pc, 6)
	}
	run(testText, 1000)
	run(testText+6, 1001)
	run(testText, 1000)
	c.SetBreakpoints([]uint64{testText + 2})
	c.Retired = 0
	wantExit(t, c, c.Run(6), ExitBreak, testText+2, 1)
}

// TestCodeThatMayNotRun: what was decoded is not executed where execution is no longer allowed.
func TestCodeThatMayNotRun(t *testing.T) {
	// top: inc eax; jmp top
	c, bus := program(0xff, 0xc0, 0xeb, 0xfc)
	for _, prot := range []string{"rx", "r", "", "rx", "r"} {
		bus.add(testText, 1, prot)
		c.FlushTLB()
		c.Retired, c.RIP = 0, testText
		if prot == "rx" {
			wantExit(t, c, c.Run(6), ExitLimit, testText, 6)
			continue
		}
		wantExit(t, c, c.Run(6), ExitFault, testText, 0)
		if c.Fault.Access != Exec || c.Fault.Addr != testText {
			t.Errorf("mapped %q: %+v", prot, c.Fault)
		}
	}
}

func TestAttention(t *testing.T) {
	// mov [rdi], eax; mov edx, [rsi]; inc eax; ud2
	c, bus := program(0x89, 0x07, 0x8b, 0x16, 0xff, 0xc0, 0x0f, 0x0b)
	c.R[RDI], c.R[RSI] = testData, testData+pageSize
	bus.pages[testData].slow = true
	bus.pages[testData+pageSize].slow = true
	bus.onWrite = func(uint64, int) { c.Attention() }
	bus.onRead = bus.onWrite
	wantExit(t, c, c.Run(100), ExitAttention, testText+2, 1)
	wantExit(t, c, c.Run(100), ExitAttention, testText+4, 2)
	wantExit(t, c, c.Run(100), ExitFault, testText+6, 3)
}

// TestAttentionFused: a comparison stops behind itself, not behind the branch
// that is fused with it.
func TestAttentionFused(t *testing.T) {
	// cmp dword [rsi], 2; je +2; ud2; ud2
	c, bus := program(0x83, 0x3e, 2, 0x74, 2, 0x0f, 0x0b, 0x0f, 0x0b)
	bus.pages[testData].slow = true
	bus.onRead = func(uint64, int) { c.Attention() }
	for value, end := range map[byte]uint64{2: testText + 7, 3: testText + 5} {
		bus.put(testData, []byte{value})
		c.R[RSI], c.RIP, c.Retired = testData, testText, 0
		wantExit(t, c, c.Run(100), ExitAttention, testText+3, 1)
		wantExit(t, c, c.Run(100), ExitFault, end, 2)
	}
}

func TestInterrupt(t *testing.T) {
	c, _ := program(0xeb, 0xfe)
	time.AfterFunc(5*time.Millisecond, c.Interrupt)
	if e := c.Run(1 << 62); e != ExitAttention {
		t.Fatalf("exit %d", e)
	}
	if !c.Interrupted() || c.Interrupted() {
		t.Fatal("Interrupted must be true once")
	}
}

// TestRepSteps steps through REP MOVSB: one iteration a step, retired once.
func TestRepSteps(t *testing.T) {
	c, bus := program(0xf3, 0xa4, 0x0f, 0x0b)
	c.R[RCX], c.R[RSI], c.R[RDI] = 3, testData, testData+100
	bus.put(testData, []byte{1, 2, 3})
	for i := uint64(1); i < 3; i++ {
		wantExit(t, c, c.Step(), ExitNone, testText, 0)
		if c.RepIter != i || c.R[RCX] != 3-i {
			t.Fatalf("iteration %d: RepIter %d, rcx %d", i, c.RepIter, c.R[RCX])
		}
	}
	wantExit(t, c, c.Step(), ExitNone, testText+2, 1)
	if c.RepIter != 0 || bus.pages[testData].b[102] != 3 {
		t.Fatalf("RepIter %d at the end", c.RepIter)
	}
}

// TestRepFault: what was copied before the fault stays, and counts.
func TestRepFault(t *testing.T) {
	c, _ := program(0xf3, 0x48, 0xab, 0x0f, 0x0b)
	c.R[RCX], c.R[RDI] = 100, testTop-40
	wantExit(t, c, c.Run(10), ExitFault, testText, 0)
	if c.RepIter != 5 || c.R[RCX] != 95 || c.R[RDI] != testTop || c.Fault.Addr != testTop {
		t.Fatalf("RepIter %d rcx %d rdi %#x fault %+v", c.RepIter, c.R[RCX], c.R[RDI], c.Fault)
	}
}

// TestRepAttention: a watched page stops between iterations.
func TestRepAttention(t *testing.T) {
	c, bus := program(0xf3, 0xaa, 0x0f, 0x0b)
	c.R[RCX], c.R[RDI], c.R[RAX] = 5000, testData, 7
	bus.pages[testData+pageSize].slow = true
	bus.onWrite = func(uint64, int) { c.Attention() }
	wantExit(t, c, c.Run(10), ExitAttention, testText, 0)
	if c.RepIter != pageSize+1 {
		t.Fatalf("RepIter %d", c.RepIter)
	}
	bus.onWrite = nil
	wantExit(t, c, c.Run(10), ExitFault, testText+2, 1)
}

// TestCrossPage executes an instruction that crosses a page, then changes its
// second half.
func TestCrossPage(t *testing.T) {
	c, bus := program()
	at := uint64(testText + pageSize - 3)
	bus.put(at, []byte{0xb8, 1, 2, 3, 4, 0x0f, 0x0b}) // mov eax, 0x04030201
	c.RIP = at
	wantExit(t, c, c.Run(10), ExitFault, at+5, 1)
	c.Bus.Write(at+4, []byte{9})
	c.FlushTLB()
	c.RIP, c.Retired = at, 0
	wantExit(t, c, c.Run(10), ExitFault, at+5, 1)
	if c.R[RAX] != 0x09030201 {
		t.Fatalf("eax = %#x", c.R[RAX])
	}
	delete(bus.pages, testText+pageSize)
	c.FlushTLB()
	c.RIP, c.Retired = at, 0
	wantExit(t, c, c.Run(10), ExitFault, at, 0)
	if want := (Fault{FaultNotMapped, Exec, testText + pageSize}); c.Fault != want {
		t.Fatalf("fault %+v, want %+v", c.Fault, want)
	}
}

// TestSetRandom: the number goes to as many bits as the destination has, and the carry flag alone is set.
func TestSetRandom(t *testing.T) {
	for _, c := range []struct {
		code []byte
		reg  int
		want uint64
	}{
		{[]byte{0x0f, 0xc7, 0xf1}, RCX, 0x55667788},
		{[]byte{0x66, 0x0f, 0xc7, 0xf9}, RCX, 0xffffffffffff7788},
		{[]byte{0x49, 0x0f, 0xc7, 0xf1}, R9, 0x1122334455667788},
	} {
		s, bus := program()
		bus.put(testText, c.code)
		s.R[c.reg] = ^uint64(0)
		s.SetFlags(FlagOF | FlagZF)
		wantExit(t, s, s.Run(1), ExitRandom, testText, 0)
		if !s.SetRandom(0x1122334455667788, true) || s.R[c.reg] != c.want || s.Flags()&(FlagOF|FlagZF|FlagCF) != FlagCF || s.RIP != testText+uint64(len(c.code)) || s.Retired != 1 {
			t.Errorf("% x: %#x, flags %#x, rip %#x", c.code, s.R[c.reg], s.Flags(), s.RIP)
		}
	}
}

// TestExits: what each instruction leaves Run with, and where.
func TestExits(t *testing.T) {
	for _, k := range []struct {
		name    string
		code    []byte
		exit    Exit
		fault   FaultKind
		rip     uint64
		retired uint64
	}{
		{"syscall", []byte{0x90, 0x0f, 0x05}, ExitSyscall, 0, 3, 2},
		{"cpuid", []byte{0x90, 0x0f, 0xa2}, ExitCPUID, 0, 1, 1},
		{"rdtsc", []byte{0x90, 0x0f, 0x31}, ExitRDTSC, 0, 1, 1},
		{"rdtscp", []byte{0x90, 0x0f, 0x01, 0xf9}, ExitRDTSCP, 0, 1, 1},
		{"rdrand", []byte{0x90, 0x0f, 0xc7, 0xf0}, ExitRandom, 0, 1, 1},
		{"enclu", []byte{0x90, 0x0f, 0x01, 0xd7}, ExitUnsupported, 0, 1, 1},
		{"hlt", []byte{0x90, 0xf4}, ExitFault, FaultGP, 1, 1},
		{"int3", []byte{0x90, 0xcc}, ExitFault, FaultBP, 1, 1},
		{"ud2", []byte{0x90, 0x0f, 0x0b}, ExitFault, FaultUD, 1, 1},
		{"lock on nop", []byte{0x90, 0xf0, 0x90}, ExitFault, FaultUD, 1, 1},
		{"lock on register", []byte{0x90, 0xf0, 0x01, 0xc0}, ExitFault, FaultUD, 1, 1},
		{"divide by zero", []byte{0x90, 0xf7, 0xf1}, ExitFault, FaultDE, 1, 1},
		{"16 bytes", []byte{0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90}, ExitFault, FaultGP, 0, 0},
		{"load", []byte{0x90, 0x8b, 0x04, 0x25, 0, 0, 0, 0}, ExitFault, FaultNotMapped, 1, 1},
		{"push through a bad rsp", []byte{0x48, 0xbc, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x50}, ExitFault, FaultSS, 10, 1},
	} {
		t.Run(k.name, func(t *testing.T) {
			c, _ := program(k.code...)
			e := c.Run(100)
			wantExit(t, c, e, k.exit, testText+k.rip, k.retired)
			if e == ExitFault && c.Fault.Kind != k.fault {
				t.Fatalf("fault %+v, want kind %d", c.Fault, k.fault)
			}
		})
	}
}

// TestTrapFlag: with TF set, #DB follows every instruction.
func TestTrapFlag(t *testing.T) {
	c, _ := program(0x90, 0x90)
	c.SetFlags(c.Flags() | FlagTF)
	wantExit(t, c, c.Run(100), ExitFault, testText+1, 1)
	if c.Fault.Kind != FaultDB {
		t.Fatalf("fault %+v", c.Fault)
	}
}

// TestFlagsRoundTrip: every combination of arithmetic flags survives.
func TestFlagsRoundTrip(t *testing.T) {
	var s State
	for v := uint64(0); v < 1<<12; v++ {
		f := v&flagsArith | 2
		s.SetFlags(f)
		if s.Flags() != f {
			t.Fatalf("%#x became %#x", f, s.Flags())
		}
		for cc, want := range []bool{f&FlagOF != 0, f&FlagCF != 0, f&FlagZF != 0, f&(FlagCF|FlagZF) != 0, f&FlagSF != 0, f&FlagPF != 0} {
			if s.cond(uint8(2*cc)) != want || s.cond(uint8(2*cc+1)) == want {
				t.Fatalf("%#x: condition %d", f, cc)
			}
		}
	}
}

func TestSkipInstruction(t *testing.T) {
	c, _ := program(0x0f, 0xa2, 0x90)
	wantExit(t, c, c.Run(5), ExitCPUID, testText, 0)
	if !c.SkipInstruction() || c.RIP != testText+2 || c.Retired != 1 {
		t.Fatalf("rip %#x retired %d", c.RIP, c.Retired)
	}
}

// TestIndirect goes through calls and jumps by register and by memory.
func TestIndirect(t *testing.T) {
	code := []byte{
		0xff, 0xd0, // call rax -> 0x20
		0xff, 0x51, 0x08, // call [rcx+8] -> 0x20
		0xff, 0x24, 0xd1, // jmp [rcx+rdx*8] -> 0x30
	}
	c, bus := program(code...)
	bus.put(testText+0x20, []byte{0x48, 0xff, 0xc3, 0xc3}) // inc rbx; ret
	bus.put(testText+0x30, []byte{0x0f, 0x0b})
	bus.put(testData+8, le.AppendUint64(le.AppendUint64(nil, testText+0x20), testText+0x30))
	c.R[RAX], c.R[RCX], c.R[RDX] = testText+0x20, testData, 2
	for i := uint64(1); i <= 3; i++ {
		c.RIP, c.Retired = testText, 0
		wantExit(t, c, c.Run(100), ExitFault, testText+0x30, 7)
		if c.R[RBX] != 2*i || c.R[RSP] != testTop-64 {
			t.Fatalf("rbx %d rsp %#x", c.R[RBX], c.R[RSP])
		}
	}
	// A target that is not canonical faults at the branch.
	c.R[RAX], c.RIP, c.Retired = 1<<63, testText, 0
	wantExit(t, c, c.Run(100), ExitFault, testText, 0)
	if c.Fault.Kind != FaultNonCanon || c.R[RSP] != testTop-64 {
		t.Fatalf("fault %+v rsp %#x", c.Fault, c.R[RSP])
	}
}
