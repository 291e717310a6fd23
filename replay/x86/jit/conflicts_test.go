//go:build linux && amd64

package jit

import (
	"encoding/binary"
	"testing"

	"vplay/replay/x86"
)

// twinBus has two pages that have the same place in a translation cache. Behind a snapshot the first store to each gives it another page.
type twinBus struct {
	textBus
	pages  [2]*[pageSize]byte
	shared [2]bool // by a snapshot
	asked  int
}

const twinAt = dataAt + pageSize*x86.TLBEntries

func (b *twinBus) Translate(a uint64, k x86.Access) (*[pageSize]byte, bool) {
	i := 0
	switch {
	case k == x86.Exec, a != dataAt && a != twinAt:
		return b.textBus.Translate(a, k)
	case a == twinAt:
		i = 1
	}
	b.asked++
	if k == x86.Store && b.shared[i] {
		b.move(i)
	}
	return b.pages[i], true
}

func (b *twinBus) Probe(a uint64, n int, k x86.Access) x86.Fault {
	if base := a &^ (pageSize - 1); base == dataAt || base == twinAt {
		return x86.Fault{}
	}
	return b.textBus.Probe(a, n, k)
}

// move gives page i another place. Who reads the old one is found out.
func (b *twinBus) move(i int) {
	old := b.pages[i]
	b.pages[i] = newPage()
	*b.pages[i] = *old
	for j := range old {
		old[j] = 0xee
	}
	b.shared[i] = false
}

// snapshot shares both pages.
func (b *twinBus) snapshot(c *x86.CPU) {
	b.shared = [2]bool{true, true}
	c.FlushTLB()
}

// TestConflicts: a program that works on two pages with the same place in a translation cache leaves generated code seldom for that, and asks
// the Bus seldom, by the interpreter, too; and what is known of the pages is forgotten where it must be.
func TestConflicts(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"generated code", "interpreter"} {
		t.Run(name, func(t *testing.T) {
			bus := &twinBus{pages: [2]*[pageSize]byte{newPage(), newPage()}}
			copy(bus.text[:], []byte{
				0x8b, 0x03, // again: mov eax, [rbx]
				0x03, 0x0e, // add ecx, [rsi]
				0xff, 0xc0, 0x89, 0x03, // inc eax; mov [rbx], eax: another page than was loaded from, behind a snapshot
				0xff, 0x06, // inc dword [rsi]
				0xeb, 0xf4, // jmp again
			})
			c := x86.New(bus, host())
			e := pool.Engine(c)
			defer e.Close()
			if name == "generated code" {
				e.Threshold, e.Warmup, e.MinRun = 0, 0, 0
				c.SetEngine(e)
			}
			const insns = 6
			c.RIP, c.R[x86.RBX], c.R[x86.RSI] = textAt, dataAt, twinAt
			for turn := range uint64(60) {
				switch turn % 3 {
				case 1:
					bus.snapshot(c)
				case 2:
					i := int(turn / 3 % 2)
					bus.move(i)
					c.FlushTLBPage([]uint64{dataAt, twinAt}[i])
				}
				if x := c.Run((turn + 1) * insns * 1000); x != x86.ExitLimit {
					t.Fatalf("exit %d", x)
				}
				n := uint32(turn+1) * 1000
				for i, p := range bus.pages {
					if got := binary.LittleEndian.Uint32(p[:]); got != n {
						t.Fatalf("turn %d: the word of page %d is %d, want %d", turn, i, got, n)
					}
				}
				if got := uint32(c.R[x86.RCX]); got != n*(n-1)/2 {
					t.Fatalf("turn %d: the sum is %d, want %d", turn, got, n*(n-1)/2)
				}
			}
			if e.Stats.Handled > 1000 || bus.asked > 1000 {
				t.Errorf("in 60,000 turns generated code was left %d times, and the Bus asked %d times", e.Stats.Handled, bus.asked)
			}
		})
	}
}

// twiceBus has its page of code at two addresses with the same low bits.
type twiceBus struct{ textBus }

const twiceAt = textAt + cacheEntries

func (b *twiceBus) once(a uint64) uint64 {
	if a&^(pageSize-1) == twiceAt {
		a -= twiceAt - textAt
	}
	return a
}

func (b *twiceBus) Translate(a uint64, k x86.Access) (*[pageSize]byte, bool) {
	return b.textBus.Translate(b.once(a), k)
}

func (b *twiceBus) Fetch(a uint64, p []byte) (int, x86.Fault) { return b.textBus.Fetch(b.once(a), p) }

// TestSecondEntries: a loop of two indirect branches to addresses with the same low bits stays in generated code, and neither is found when its code is gone.
func TestSecondEntries(t *testing.T) {
	b := &twiceBus{}
	copy(b.text[:], []byte{
		0x48, 0x93, // xchg rax, rbx
		0xff, 0xc1, // inc ecx
		0xff, 0xe0, // jmp rax
	})
	c := x86.New(b, host())
	e := eagerEngine(t, c)
	c.RIP, c.R[x86.RAX], c.R[x86.RBX], c.R[x86.RCX] = textAt, textAt, twiceAt, 0
	run := func(n uint64) {
		t.Helper()
		if x := c.Run(c.Retired + 3*n); x != x86.ExitLimit || c.Retired != 3*c.R[x86.RCX] {
			t.Fatalf("exit %d behind %d at %#x, rcx %d", x, c.Retired, c.RIP, c.R[x86.RCX])
		}
	}
	run(1000)
	before := e.Stats.Handled
	run(100_000)
	if n := e.Stats.Handled - before; n > 10 || before > 100 {
		t.Errorf("%d exits to handlers before, %d since", before, n)
	}
	for _, at := range []uint64{textAt, twiceAt} {
		e.forget(e.entries.unit(at))
		run(1001)
	}
	for i := range cacheEntries + secondEntries {
		pc := binary.LittleEndian.Uint64(e.pool.rw[e.chunk+16*i:])
		at := binary.LittleEndian.Uint64(e.pool.rw[e.chunk+16*i+8:])
		if u := e.entries.unit(pc); at != 0 && (u == nil || at != uint64(e.pool.address(u.head))) {
			t.Errorf("entry %d leads from %#x to what is not there", i, pc)
		}
	}
}
