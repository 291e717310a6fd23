//go:build linux && amd64

package record

import (
	"testing"
	"time"
)

// TestSessionTSC: the counter that is made from the time goes on from the CPU's, at its rate or a little less.
func TestSessionTSC(t *testing.T) {
	var c sessionTSC
	if c.make() {
		t.Fatal("it is made though nothing is known of the CPU's")
	}
	last := c.now()
	for !c.make() {
		time.Sleep(time.Millisecond)
	}
	for range 1000 {
		now := c.now()
		if now < last {
			t.Fatalf("%d follows on %d", now, last)
		}
		last = now
	}
	time.Sleep(20 * time.Millisecond)
	made := c.now()
	tsc := rdtsc()
	past := tsc - c.tsc
	if behind := tsc - made; made > tsc || behind > past/slower+past/1000+uint64(c.rate>>32)*1_000_000 {
		t.Errorf("it is at %d, the CPU's at %d, %d after it began", made, tsc, past)
	}
}

// TestMovable: which instructions behind RDTSC may be executed in a stub.
func TestMovable(t *testing.T) {
	const pad = "\x90\x90\x90\x90\x90\x90\x90\x90"
	for _, c := range []struct {
		code string
		need uint64
		want uint64
	}{
		{"\x48\xc1\xe2\x20", 3, 4},             // shl $32,%rdx
		{"\x89\xc0\x48\xc1\xe2\x20", 3, 6},     // mov %eax,%eax; shl
		{"\x0f\xae\xe8", 2, 3},                 // lfence
		{"\x48\x09\xd0\x0f\xae\xe8", 2, 3},     // or %rdx,%rax
		{"\x49\x89\xc4", 3, 3},                 // mov %rax,%r12
		{"\x48\x89\x47\x58", 3, 0},             // mov %rax,0x58(%rdi)
		{"\x33\x05\x5a\xcd\x08\x00", 3, 0},     // xor 0x8cd5a(%rip),%eax
		{"\x89\xc0\xeb\x02", 3, 0},             // mov; jmp
		{"\x0f\x31\x48\xc1\xe2\x20", 3, 0},     // rdtsc
		{"\x0f\xae\x38\x48\xc1\xe2", 2, 0},     // clflush (%rax)
		{"\x66\x89\xc2\x48\xc1\xe2", 3, 0},     // mov %ax,%dx
		{"\xc3\x90\x90\x90", 3, 0},             // ret
		{"\x48\x83\xc0\x01\x90", 3, 4},         // add $1,%rax
		{"\x44\x0f\xae\xe8", 3, 0},             // no lfence that a compiler writes
		{"\x48\x63\xd0\x48\x09\xd0", 3, 3},     // movslq %eax,%rdx
		{"\x83\x3d\x00\x00\x00\x00\x01", 3, 0}, // cmpl $1,(%rip)
	} {
		if got := movable([]byte(c.code+pad), c.need); got != c.want {
			t.Errorf("%x: %d bytes, want %d", c.code, got, c.want)
		}
	}
}
