//go:build linux && amd64

package jit

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"vplay/replay/x86"
)

// testFile returns a file of memory of so many pages.
func testFile(t *testing.T, pages int) int {
	t.Helper()
	fd, err := memoryFile()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Ftruncate(fd, int64(pages)*pageSize); err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestWindows maps pages and takes them out: the kernel has what the windows say, and they know how many ranges that are.
func TestWindows(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	const pages = 64
	w := &windows{}
	w.init(pool, chunks)
	w.fd = testFile(t, pages)
	before := pool.borders.Load()
	const at = inStack
	if !w.open(at) || w.open(at) || w.open(1<<47) {
		t.Fatal("a window is there twice, or for an address that no program has")
	}
	t.Cleanup(func() {
		if err := unmap(w.list[0].base-windowGuard, windowSize+2*windowGuard); err != nil {
			t.Error(err)
		}
	})
	rng := rand.New(rand.NewPCG(7, 8))
	for n := range 3000 {
		a := uint64(at + rng.IntN(pages)*pageSize)
		switch rng.IntN(64) {
		case 0:
			w.clear()
		case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16:
			w.drop(a)
		case 17:
			first, last := a/pageSize-uint64(rng.IntN(9)), a/pageSize+uint64(rng.IntN(9))
			want := maps.Clone(w.mapped)
			maps.DeleteFunc(want, func(n uint64, _ mapping) bool { return n >= first && n < last })
			if w.dropRange(first*pageSize, last*pageSize); !maps.Equal(w.mapped, want) {
				t.Fatalf("step %d: %+v is mapped, want %+v", n, w.mapped, want)
			}
		default:
			m := x86.Mapping{Addr: a, Offset: int64(rng.IntN(pages/2)) * pageSize, Pages: 1 + rng.IntN(4), Stores: rng.IntN(2) == 0}
			if rng.IntN(2) == 0 {
				m.Offset = int64(a-at) / 2 &^ (pageSize - 1)
			}
			if !w.set(a, m) {
				t.Fatal("pages are not mapped")
			}
		}
		var borders int64
		for page := uint64(at/pageSize - 1); page < at/pageSize+pages+8; page++ {
			borders += w.bordersIn(page+1, 0)
		}
		if borders != w.borders || pool.borders.Load()-before != borders || len(w.mapped) != w.list[0].pages {
			t.Fatalf("step %d: %d borders are counted, there are %d; %d pages, there are %d", n, w.borders, borders, w.list[0].pages, len(w.mapped))
		}
		if n%100 == 0 {
			w.compare(t)
		}
	}
	w.clear()
	w.compare(t)
}

// TestWindowEnds: what is to be mapped around a page goes no further than its part, at both ends.
func TestWindowEnds(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	w := &windows{}
	w.init(pool, chunks)
	w.fd = testFile(t, 8)
	const from = 0x7e << windowShift
	if !w.open(from) {
		t.Fatal("there is no window")
	}
	t.Cleanup(func() {
		if err := unmap(w.list[0].base-windowGuard, windowSize+2*windowGuard); err != nil {
			t.Error(err)
		}
	})
	for _, x := range []struct {
		a     uint64
		m     x86.Mapping
		first uint64
		want  mapping
	}{
		{from, x86.Mapping{Addr: from - 3*pageSize, Pages: 5}, from / pageSize, mapping{offset: 3 * pageSize}},
		{from + windowSize - pageSize, x86.Mapping{Addr: from + windowSize - 2*pageSize, Pages: 5}, (from+windowSize)/pageSize - 2, mapping{}},
	} {
		if !w.set(x.a, x.m) || len(w.mapped) != 2 || w.mapped[x.first] != x.want {
			t.Errorf("%#x: %+v is mapped", x.a, w.mapped)
		}
		w.compare(t)
		w.clear()
	}
}

// compare compares w with what the kernel says of its first window.
func (w *windows) compare(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	there := map[uint64]mapping{}
	for line := range strings.Lines(string(text)) {
		var from, to, offset uint64
		var rights string
		if n, err := fmt.Sscanf(line, "%x-%x %s %x", &from, &to, &rights, &offset); n != 4 {
			t.Fatal(line, err)
		}
		if a, ok := w.guest(from); ok && rights != "---p" {
			for i := range (to - from) / pageSize {
				there[a/pageSize+i] = mapping{offset: int64(offset + i*pageSize), stores: rights == "rw-s"}
			}
		}
	}
	if len(there) != len(w.mapped) {
		t.Fatalf("the kernel has %d pages, not %d", len(there), len(w.mapped))
	}
	for n, m := range w.mapped {
		if there[n] != m {
			t.Fatalf("page %#x is %+v, not %+v", n, there[n], m)
		}
	}
}

// TestTooManyMappings: where the kernel would have too many, all accesses are checked from then on.
func TestTooManyMappings(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	b := newDataBus(t, true)
	copy(b.text[:], []byte{0x48, 0xff, 0x06, 0xeb, 0xfb}) // 1: inc qword [rsi]; jmp 1b
	*b.data[0] = [pageSize]byte{}
	c := x86.New(b, host())
	e := pool.Engine(c)
	defer e.Close()
	e.Eager()
	c.SetEngine(e)
	c.RIP, c.R[x86.RSI] = textAt, fastAt
	run := func(want uint64, isDirect bool) {
		t.Helper()
		if x := c.Run(c.Retired + 20_000); x != x86.ExitLimit || b.data[0][0] != byte(want) || b.data[0][1] != byte(want>>8) || e.direct != isDirect {
			t.Fatalf("exit %d behind %d, % x; without checks: %t", x, c.Retired, b.data[0][:2], e.direct)
		}
	}
	run(10_000, true)
	pool.borders.Add(maxBorders)
	defer pool.borders.Add(-maxBorders)
	c.FlushTLBPage(fastAt)
	run(20_000, true)
	run(30_000, false)
}

// TestCostly: accesses are checked for a while where faults are frequent, and for twice as long each time again.
func TestCostly(t *testing.T) {
	e := &Engine{}
	for _, want := range []uint64{firstWait, 2 * firstWait, 4 * firstWait} {
		e.faults, e.executed = freeFaults, 0
		if e.isCostly() {
			t.Fatal("the first faults are too many")
		}
		if e.faults++; !e.isCostly() {
			t.Fatal("many faults are not too many")
		}
		if e.executed = want - 1; !e.isCostly() {
			t.Fatalf("checked for less than %d instructions", want)
		}
		if e.executed = want; e.isCostly() {
			t.Fatalf("checked for more than %d instructions", want)
		}
	}
	e.faults, e.executed = 2*freeFaults, 2*freeFaults*faultCost
	if e.isCostly() {
		t.Error("faults that are rare are too many")
	}
}
