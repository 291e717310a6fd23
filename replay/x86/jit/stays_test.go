//go:build linux && amd64

package jit

import (
	"testing"

	"vplay/replay/x86"
)

// TestStaysInCode: instructions that once went to their handlers are generated code, and do what the handlers do. Of BMI2 each has a register in
// VEX.vvvv that the host does not have, beside others that it has or has not.
func TestStaysInCode(t *testing.T) {
	if !hostHas("BMI1") || !hostHas("BMI2") {
		t.Log("this CPU lacks BMI1 or BMI2: their handlers execute them here")
	}
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	code := []byte{
		0xc4, 0xc2, 0x93, 0xf6, 0xc4, // again: mulx r12, r13, rax, in the order of AT&T
		0xc4, 0x62, 0x8b, 0xf6, 0xf8, // mulx rax, r14, r15
		0xc4, 0x42, 0x9b, 0xf6, 0xe4, // mulx r12, r12, r12: the upper half stays
		0x4c, 0x01, 0xe7, // add rdi, r12
		0xc4, 0xe2, 0x93, 0xf6, 0xf3, // mulx rbx, r13, rsi
		0xc4, 0x62, 0x93, 0xf6, 0x24, 0x24, // mulx (rsp), r13, r12: all three, and memory
		0xc4, 0x42, 0x99, 0xf7, 0xf5, // shlx r12, r13, r14
		0xc4, 0xe2, 0x83, 0xf7, 0xf3, // shrx r15, rbx, rsi
		0xc4, 0x42, 0x90, 0xf2, 0xf4, // andn r12, r13, r14
		0xc4, 0xc2, 0x98, 0xf3, 0xcd, // blsr r13, r12
		0xff, 0x34, 0x24, // push (rsp)
		0x41, 0x5b, // pop r11
		0x48, 0x83, 0xe9, 0x40, // sub rcx, 40h
		0xe3, 7, // jrcxz over the loop: never
		0xb9, 3, 0, 0, 0, // mov ecx, 3
		0xe2, 0xfe, // loop: to itself
		0xe3, 3, // jrcxz over the next one: always
		0x49, 0xff, 0xc5, // inc r13
		0xeb, 0, // jmp again
	}
	code[len(code)-1] = byte(-len(code))
	var cpus [2]*x86.CPU
	for i := range cpus {
		bus := &twinBus{pages: [2]*[pageSize]byte{newPage(), newPage()}}
		copy(bus.text[:], code)
		c := x86.New(bus, host())
		cpus[i] = c
		for r := range c.R {
			c.R[r] = 0x9e3779b97f4a7c15 * uint64(r+1)
		}
		c.RIP, c.R[x86.RSP] = textAt, dataAt+2048
	}
	cpus[0].SetEngine(x86.StepEngine{})
	e := pool.Engine(cpus[1])
	defer e.Close()
	e.Threshold, e.Warmup, e.MinRun = 0, 0, 0
	cpus[1].SetEngine(e)
	const limit = 20000
	var handled uint64                         // before the last run
	for _, to := range []uint64{1000, limit} { // the first finds the pages
		handled = e.Stats.Handled
		for i, c := range cpus {
			if x := c.Run(to); x != x86.ExitLimit {
				t.Fatalf("processor %d: exit %d, %+v at %#x", i, x, c.Fault, c.RIP)
			}
		}
		if a, b := cpus[0], cpus[1]; a.R != b.R || a.RIP != b.RIP || a.Flags() != b.Flags() {
			t.Fatalf("behind %d instructions\nhandlers       %x, rip %#x, flags %#x\ngenerated code %x, rip %#x, flags %#x", to, a.R, a.RIP, a.Flags(), b.R, b.RIP, b.Flags())
		}
	}
	if n := e.Stats.Handled - handled; n > 2 && hostHas("BMI1") && hostHas("BMI2") {
		t.Errorf("%d instructions of %d went to their handlers", n, limit)
	}
}
