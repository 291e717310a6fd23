//go:build linux && amd64

package jit

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"vplay/replay/x86"
)

// movingBus has pages of data from dataAt on. The last one goes through the Bus, and each access to it moves another one.
type movingBus struct {
	textBus
	c     *x86.CPU
	pages [4]*[pageSize]byte
	moved int
}

func (b *movingBus) Translate(a uint64, k x86.Access) (*[pageSize]byte, bool) {
	if i := (a - dataAt) / pageSize; a >= dataAt && i < uint64(len(b.pages)) && k != x86.Exec {
		return b.pages[i], i != uint64(len(b.pages)-1)
	}
	return b.textBus.Translate(a, k)
}

func (b *movingBus) Probe(a uint64, n int, k x86.Access) x86.Fault {
	if end := dataAt + uint64(len(b.pages))*pageSize; a < dataAt || a+uint64(n) > end {
		return b.textBus.Probe(max(a, min(end, a+uint64(n))), n, k)
	}
	return x86.Fault{}
}

func (b *movingBus) access(a uint64, n int, k x86.Access, f func(p []byte)) x86.Fault {
	if f := b.Probe(a, n, k); f.Kind != x86.FaultNone {
		return f
	}
	for end := a + uint64(n); a < end; {
		o := a - dataAt
		p := b.pages[o/pageSize][o%pageSize:]
		p = p[:min(uint64(len(p)), end-a)]
		f(p)
		a += uint64(len(p))
	}
	i := b.moved % (len(b.pages) - 1)
	b.moved++
	old := b.pages[i]
	b.pages[i] = newPage()
	*b.pages[i] = *old
	for j := range old { // who goes on there is found out
		old[j] = 0xee
	}
	b.c.FlushTLBPage(dataAt + uint64(i)*pageSize)
	return x86.Fault{}
}

func (b *movingBus) Read(a uint64, p []byte) x86.Fault {
	return b.access(a, len(p), x86.Load, func(from []byte) { p = p[copy(p, from):] })
}

func (b *movingBus) Write(a uint64, p []byte) x86.Fault {
	return b.access(a, len(p), x86.Store, func(to []byte) { p = p[copy(to, p):] })
}

// Peek implements x86.PeekBus for a byte.
func (b *movingBus) Peek(a uint64, p []byte) int {
	if b.Probe(a, 1, x86.Load).Kind != x86.FaultNone {
		return 0
	}
	p[0] = b.pages[(a-dataAt)/pageSize][a%pageSize]
	return 1
}

// newPage returns a page, which Go aligns as it does all objects of this size.
func newPage() *[pageSize]byte { return new([pageSize]byte) }

func newMovingBus(text [pageSize]byte) *movingBus {
	b := &movingBus{textBus: textBus{text}}
	for i := range b.pages {
		b.pages[i] = newPage()
		for j := range b.pages[i] {
			b.pages[i][j] = byte(i*37 + j*11 + j>>8)
		}
	}
	return b
}

// reachCode returns instructions that access memory from few registers, which change now and then, and jump back to the first.
func reachCode(rng *rand.Rand) (text [pageSize]byte) {
	forms := [][]byte{
		{0x48, 0x8b, 0x8b}, {0x8b, 0x93}, {0x48, 0x89, 0x8b}, {0x89, 0x93}, {0x48, 0x01, 0x8b}, {0x48, 0x03, 0x93}, {0x0f, 0xb6, 0x83}, // of rbx
		{0xd9, 0x83}, // fld, which a handler executes
		{0x48, 0x39, 0x93}, {0x0f, 0x10, 0x83}, {0x0f, 0x11, 0x83}, {0x0f, 0x28, 0x8b}, {0x48, 0x87, 0x8b},
		{0x48, 0x8b, 0x8d}, {0x48, 0x89, 0x95}, {0x66, 0x89, 0x85}, // of rbp
		{0x49, 0x8b, 0x8c, 0x24}, {0x49, 0x89, 0x94, 0x24}, {0x48, 0x8b, 0x84, 0x24}, {0x48, 0x89, 0x84, 0x24}, {0x48, 0x03, 0x84, 0x24}, // of r12, rsp
	}
	others := [][]byte{
		{0x50}, {0x53}, {0x41, 0x54}, {0x58}, {0x59}, {0x41, 0x5d}, {0x48, 0x83, 0xec, 0x18}, {0x48, 0x83, 0xc4, 0x18}, {0x48, 0x8d, 0x64, 0x24, 0xf8}, {0x6a, 0x7f},
		{0x48, 0x8b, 0x06}, {0x48, 0x89, 0x16}, // of rsi, on the page that moves others
		{0x48, 0x83, 0xc3, 0x08}, {0x48, 0x83, 0xeb, 0x08}, {0x48, 0xff, 0xc5}, {0x48, 0xff, 0xcd}, // rbx, rbp
		{0x48, 0x01, 0xc8}, {0x48, 0x29, 0xc2}, {0x48, 0x39, 0xc1}, {0x48, 0xd1, 0xe1}, {0x74, 0x00}, {0x0f, 0x92, 0xc0}, {0x48, 0x0f, 0x42, 0xca},
	}
	const back = 0xf00 // of a subroutine
	text[back] = 0xc3
	n := 0
	for n < 400 {
		switch rng.IntN(60) {
		case 0:
			n += copy(text[n:], []byte{0xe8}) // call
			binary.LittleEndian.PutUint32(text[n:], uint32(back-n-4))
			n += 4
			continue
		case 1:
			n += copy(text[n:], []byte{0x48, 0x8d, 0x3d}) // lea rdi, back; call rdi
			binary.LittleEndian.PutUint32(text[n:], uint32(back-n-4))
			n += 4 + copy(text[n+4:], []byte{0xff, 0xd7})
			continue
		case 2:
			n += copy(text[n:], []byte{0x48, 0x8d, 0x3d, 2, 0, 0, 0, 0xff, 0xe7}) // lea rdi, 1f; jmp rdi; 1:
			continue
		}
		if rng.IntN(3) == 0 {
			n += copy(text[n:], others[rng.IntN(len(others))])
			continue
		}
		n += copy(text[n:], forms[rng.IntN(len(forms))])
		binary.LittleEndian.PutUint32(text[n:], uint32(rng.IntN(16)*8+rng.IntN(2)*rng.IntN(300)))
		n += 4
	}
	text[n] = 0xe9 // jmp
	binary.LittleEndian.PutUint32(text[n+1:], uint32(-n-5))
	return text
}

// reachMachines returns two processors with registers r at the beginning of text, each with memory of its own.
func reachMachines(rng *rand.Rand, text [pageSize]byte) (want, got *x86.CPU, buses []*movingBus, r [16]uint64) {
	for j := range r {
		r[j] = rng.Uint64()
	}
	for _, j := range []int{x86.RBX, x86.RBP, x86.RSP, x86.R12} {
		r[j] = dataAt + pageSize*uint64(1+rng.IntN(2)) - uint64(rng.IntN(600)) // all over the end of a page, or not
	}
	r[x86.RSI] = dataAt + 3*pageSize + 64
	want, got = x86.New(nil, host()), x86.New(nil, host())
	buses = []*movingBus{newMovingBus(text), newMovingBus(text)}
	for j, c := range []*x86.CPU{want, got} {
		c.Renew(buses[j], host())
		buses[j].c, c.R, c.RIP = c, r, textAt
	}
	return want, got, buses, r
}

// TestReaches: units that check several accesses at once do what the interpreter does, at all places near the ends of
// pages, and behind handlers that move pages.
func TestReaches(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	n := 300
	if testing.Short() {
		n = 60
	}
	rng := rand.New(rand.NewPCG(9, 10))
	var all Stats
	for i := range n {
		text := reachCode(rng)
		want, got, buses, r := reachMachines(rng, text)
		e := pool.Engine(got)
		e.Eager()
		got.SetEngine(e)
		for limit := uint64(0); limit < 30_000; {
			limit += 1 + rng.Uint64N(2000)
			x, y := want.Run(limit), got.Run(limit)
			if err := sameMachines(want, got, buses); err != nil || x != y {
				t.Fatalf("program %d: exit %d, want %d, behind %d instructions, want %d: %v\n% x", i, y, x, got.Retired, want.Retired, err, text[:450])
			}
			if x != x86.ExitLimit { // the stack has left its pages
				for _, c := range []*x86.CPU{want, got} {
					c.R = r
					c.RIP = textAt
				}
			}
		}
		e.Close()
		all.Handled += e.Stats.Handled
		all.Units += e.Stats.Units
		all.Bad += e.Stats.Bad
	}
	if all.Bad != 0 {
		t.Errorf("%d units could not be used", all.Bad)
	}
	t.Logf("%+v", all)
}

// sameMachines compares two processors and their memory.
func sameMachines(a, b *x86.CPU, buses []*movingBus) error {
	if a.R != b.R || a.RIP != b.RIP || a.V != b.V || a.Flags() != b.Flags() || a.Retired != b.Retired || a.Fault != b.Fault {
		return fmt.Errorf("rip %#x, %#x; flags %#x, %#x; faults %+v, %+v; registers\n%x\n%x", a.RIP, b.RIP, a.Flags(), b.Flags(), a.Fault, b.Fault, a.R, b.R)
	}
	for i := range buses[0].pages {
		if *buses[0].pages[i] != *buses[1].pages[i] {
			return fmt.Errorf("page %d differs", i)
		}
	}
	return nil
}
