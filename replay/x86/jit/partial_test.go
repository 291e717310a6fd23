//go:build linux && amd64

package jit

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"vplay/replay/x86"
)

// dataAt is where partialBus has a page of data.
const dataAt = textAt + 4*pageSize

// partialBus has a page of data beside its code, of which some bytes are known. It counts accesses.
type partialBus struct {
	textBus
	data  *[pageSize]byte
	known *[pageSize / 8]byte
	calls int
}

func (b *partialBus) Translate(a uint64, k x86.Access) (*[pageSize]byte, bool) {
	if a == dataAt && k != x86.Exec {
		return b.data, false
	}
	return b.textBus.Translate(a, k)
}

func (b *partialBus) Probe(a uint64, n int, k x86.Access) x86.Fault {
	for i := a; i < a+uint64(n); i++ {
		o := i - dataAt
		switch {
		case o >= pageSize:
			return x86.Fault{Kind: x86.FaultNotMapped, Access: k, Addr: i}
		case k == x86.Load && b.known[o/8]>>(o%8)&1 == 0:
			return x86.Fault{Kind: x86.FaultNotCaptured, Access: k, Addr: i}
		}
	}
	return x86.Fault{}
}

func (b *partialBus) Read(a uint64, p []byte) x86.Fault {
	b.calls++
	f := b.Probe(a, len(p), x86.Load)
	if f.Kind == x86.FaultNone {
		copy(p, b.data[a-dataAt:])
	}
	return f
}

func (b *partialBus) Write(a uint64, p []byte) x86.Fault {
	b.calls++
	f := b.Probe(a, len(p), x86.Store)
	if f.Kind == x86.FaultNone {
		copy(b.data[a-dataAt:], p)
		for o := a - dataAt; o < a-dataAt+uint64(len(p)); o++ {
			b.known[o/8] |= 1 << (o % 8)
		}
	}
	return f
}

// tellingBus is one that tells which bytes are known, and wants accesses counted unless it is silent.
type tellingBus struct {
	partialBus
	silent bool
	direct uint64
}

func (b *tellingBus) PartialPage(a uint64, k x86.Access) x86.PartialPage {
	if a != dataAt || k == x86.Exec {
		return x86.PartialPage{}
	}
	return x86.PartialPage{Page: b.data, Plain: b.known, Counted: !b.silent}
}

func (b *tellingBus) CountPartial(n uint64) { b.direct += n }

// TestPartialPages: loads and stores of all sizes on a page with unknown bytes do what they do through the Bus, which learns of nearly
// none of them, and those of unknown bytes fault.
func TestPartialPages(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	forms := [][]byte{
		{0x8a, 0x87}, {0x66, 0x8b, 0x8f}, {0x8b, 0x97}, {0x48, 0x8b, 0x9f}, {0x0f, 0x10, 0x87}, {0xc5, 0xfc, 0x10, 0x8f},
		{0x88, 0x8f}, {0x66, 0x89, 0x97}, {0x89, 0x9f}, {0x48, 0x89, 0x87}, {0x0f, 0x11, 0x8f}, {0xc5, 0xfc, 0x11, 0x87},
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for run := range 40 {
		var code [pageSize]byte
		var offsets []uint32
		n := 0
		for range 50 {
			form := forms[rng.IntN(len(forms))]
			n += copy(code[n:], form)
			o := []uint32{rng.Uint32N(pageSize), rng.Uint32N(64), pageSize - 1 - rng.Uint32N(40)}[rng.IntN(3)]
			offsets = append(offsets, o)
			binary.LittleEndian.PutUint32(code[n:], o)
			n += 4
		}
		code[n] = 0xe9 // jmp back
		binary.LittleEndian.PutUint32(code[n+1:], uint32(-n-5))
		var data [pageSize]byte
		var known [pageSize / 8]byte
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		for i := range known {
			if known[i] = 0xff; rng.IntN(4) == 0 {
				known[i] = byte(rng.Uint32())
			}
		}
		plain := &partialBus{textBus{code}, new(data), new(known), 0}
		telling := &tellingBus{partialBus{textBus{code}, new(data), new(known), 0}, run%2 == 1, 0}
		want, got := x86.New(plain, host()), x86.New(telling, host())
		e := pool.Engine(got)
		e.Eager()
		got.SetEngine(e)
		for _, c := range []*x86.CPU{want, got} {
			c.RIP, c.R[x86.RDI] = textAt, dataAt
		}
		for want.Retired < 20_000 {
			x, y := want.Run(20_000), got.Run(20_000)
			if x != y || want.Fault != got.Fault || want.State != got.State || *plain.data != *telling.data || *plain.known != *telling.known {
				t.Fatalf("exit %d, fault %+v at %#x behind %d instructions, want %d, %+v at %#x behind %d; offsets %x", y, got.Fault, got.RIP, got.Retired,
					x, want.Fault, want.RIP, want.Retired, offsets)
			}
			switch f := want.Fault; {
			case x != x86.ExitFault:
			case f.Kind == x86.FaultNotCaptured:
				for _, k := range []*[pageSize / 8]byte{plain.known, telling.known} { // as if it had been injected
					k[(f.Addr-dataAt)/8] |= 1 << (f.Addr % 8)
				}
			default: // the end of the page
				want.SkipInstruction()
				got.SkipInstruction()
			}
		}
		e.Close()
		if telling.silent != (telling.direct == 0) || !telling.silent && telling.direct < 10_000 || telling.calls > plain.calls/4 {
			t.Errorf("%d accesses through the Bus and %d direct ones, %d without", telling.calls, telling.direct, plain.calls)
		}
	}
}
