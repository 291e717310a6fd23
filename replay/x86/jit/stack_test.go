//go:build linux && amd64

package jit

import (
	"encoding/binary"
	"testing"

	"vplay/replay/x86"
)

// eagerEngine has c's code executed by generated code at first sight.
func eagerEngine(t *testing.T, c *x86.CPU) *Engine {
	t.Helper()
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	e := pool.Engine(c)
	t.Cleanup(e.Close)
	e.Eager()
	c.SetEngine(e)
	return e
}

// eachStack runs a test with the stack as the host lets code find it, and without the base of GS.
func eachStack(t *testing.T, test func(t *testing.T, noGS bool)) {
	t.Run("host", func(t *testing.T) { test(t, false) })
	t.Run("without GS", func(t *testing.T) { test(t, true) })
}

// stackEngine returns a processor whose code at textAt is executed by generated code at first sight, without checks of accesses.
func stackEngine(t *testing.T, noGS bool, code ...byte) (*x86.CPU, *Engine, *dataBus) {
	t.Helper()
	b := newDataBus(t, true)
	copy(b.text[:], code)
	c := x86.New(b, host())
	b.c = c
	e := eagerEngine(t, c)
	e.NoGS = e.NoGS || noGS
	c.RIP, c.R[x86.RSP] = textAt, fastAt+2048
	return c, e, b
}

// TestStackParts: a program whose stack is in another part each time leaves generated code for that alone, and no access fails.
func TestStackParts(t *testing.T) { eachStack(t, stackParts) }

func stackParts(t *testing.T, noGS bool) {
	c, e, b := stackEngine(
		t, noGS,
		0x48, 0x87, 0xe3, // 1: xchg rsp, rbx
		0x48, 0x83, 0x44, 0x24, 0xd8, 0x01, // add qword [rsp-40], 1
		0xc5, 0xfe, 0x6f, 0x44, 0x24, 0xc0, // vmovdqu ymm0, [rsp-64]
		0xc5, 0xfe, 0x7f, 0x44, 0x24, 0x80, // vmovdqu [rsp-128], ymm0
		0x51, 0x5a, // push rcx; pop rdx
		0xeb, 0xe7, // jmp 1b
	)
	*b.data[0], *b.data[2] = [pageSize]byte{}, [pageSize]byte{}
	c.R[x86.RBX], c.R[x86.RCX] = farAt+2048, 77
	run := func(rounds uint64) {
		t.Helper()
		if x := c.Run(c.Retired + 7*rounds); x != x86.ExitLimit || c.RIP != textAt {
			t.Fatalf("exit %d at %#x", x, c.RIP)
		}
	}
	const warm, rounds = 40, 5000
	run(warm)
	before := e.Stats
	run(rounds)
	for _, i := range []int{0, 2} {
		p := b.data[i][:2048]
		if n := binary.LittleEndian.Uint64(p[2048-40:]); n != (warm+rounds)/2 || binary.LittleEndian.Uint64(p[2048-104:]) != n || p[2040] != 77 {
			t.Errorf("stack %d: %d rounds, % x", i, n, p[2048-128:])
		}
	}
	handled := uint64(rounds)
	if e.NoGS {
		handled = 0
	}
	if e.Stats.Refused != before.Refused || len(e.checked) != 0 || e.Stats.Direct != before.Direct || len(e.Faults) != 0 || e.Stats.Handled-before.Handled != handled {
		t.Errorf("behind %+v %+v", before, e.Stats)
	}
}

// TestStackAtTop: a stack pointer that goes past the top of all addresses finds no memory of the host at the bottom: Go's program is at 4 MiB.
func TestStackAtTop(t *testing.T) { eachStack(t, stackAtTop) }

func stackAtTop(t *testing.T, noGS bool) {
	c, e, _ := stackEngine(
		t, noGS,
		0x48, 0x81, 0xc4, 0x00, 0x10, 0x00, 0x00, // 1: add rsp, 4096
		0xff, 0xc9, // dec ecx
		0x75, 0xf5, // jnz 1b
		0x58, // pop rax
	)
	const goes = 4<<20 + pageSize
	c.R[x86.RSP], c.R[x86.RCX], c.R[x86.RAX] = ^uint64(8*pageSize-1), goes/pageSize+8, 77
	if x := c.Run(1 << 20); x != x86.ExitFault || c.R[x86.RSP] != goes || c.R[x86.RAX] != 77 || len(e.Faults) != 0 {
		t.Errorf("exit %d at %#x, rsp %#x, rax %#x, %v", x, c.RIP, c.R[x86.RSP], c.R[x86.RAX], e.Faults)
	}
}
