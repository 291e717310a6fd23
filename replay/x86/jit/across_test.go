//go:build linux && amd64

package jit

import (
	"testing"

	"vplay/replay/x86"
)

// twoPages is textBus with a second page of code behind the first one.
type twoPages struct {
	textBus
	more [pageSize]byte
	ids  [2]uint64
	gone bool // the second page cannot be executed
}

const moreAt = textAt + pageSize

func (b *twoPages) Translate(a uint64, k x86.Access) (*[pageSize]byte, bool) {
	if a == moreAt && k != x86.Store && !b.gone {
		return &b.more, true
	}
	return b.textBus.Translate(a, k)
}

func (b *twoPages) Fetch(a uint64, p []byte) (int, x86.Fault) {
	switch {
	case a >= moreAt && a < moreAt+pageSize && !b.gone:
		return copy(p, b.more[a-moreAt:]), x86.Fault{}
	case a < textAt || a >= moreAt:
		return 0, b.Probe(a, 1, x86.Exec)
	}
	n := copy(p, b.text[a-textAt:])
	if b.gone || n == len(p) {
		return n, x86.Fault{}
	}
	return n + copy(p[n:], b.more[:]), x86.Fault{}
}

func (b *twoPages) CodeID(a uint64) uint64 {
	if a == moreAt && b.gone {
		return 0
	}
	return b.ids[(a-textAt)/pageSize]
}

// TestAcrossPages: an instruction on two pages is translated, and forgotten when either page changes or a
// breakpoint comes; an engine that is used again keeps it only if both pages are the same.
func TestAcrossPages(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer pool.freeIdle()
	id := *host()
	bus := &twoPages{ids: [2]uint64{1, 2}}
	copy(bus.text[pageSize-2:], []byte{0x83, 0xc0})   // add eax,
	copy(bus.more[:], []byte{0x01, 0xff, 0xc3, 0xeb}) // 1; inc ebx; jmp
	bus.more[4] = 0xf9                                // to the add
	begun := func() (*x86.CPU, *Engine) {
		c := x86.New(bus, &id)
		e := pool.Reuse(c)
		e.Threshold, e.Warmup, e.MinRun = 0, 0, 0
		c.SetEngine(e)
		c.RIP = moreAt - 2
		return c, e
	}
	c, e := begun()
	// run runs 100 turns, and wants eax to be higher by each a turn.
	run := func(what string, each uint64, made uint64) {
		t.Helper()
		eax, ebx, units := c.R[x86.RAX], c.R[x86.RBX], e.Stats.Units
		c.SkipBreak = true
		if x := c.Run(c.Retired + 300); x != x86.ExitLimit || c.R[x86.RAX]-eax != 100*each || c.R[x86.RBX]-ebx != 100 {
			t.Errorf("%s: exit %d, eax +%d, ebx +%d", what, x, c.R[x86.RAX]-eax, c.R[x86.RBX]-ebx)
		}
		if n := e.Stats.Units - units; n != made {
			t.Errorf("%s: %d units were made, want %d", what, n, made)
		}
		if u := e.entries.unit(moreAt - 2); u == nil || u.next == nil || len(u.insts) != 1 {
			t.Errorf("%s: no unit has the instruction alone", what)
		}
		if err := linksAreKnown(e); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	run("at first", 1, 2)
	run("again", 1, 0)
	bus.more[0], bus.ids[1] = 3, 3
	c.FlushTLBPage(moreAt)
	run("the second page is another one", 3, 2)
	bus.ids[0] = 4
	c.FlushTLBPage(textAt)
	run("the first page is another one", 3, 1)

	c.SetBreakpoints([]uint64{moreAt - 2})
	c.SkipBreak = true
	if x := c.Run(c.Retired + 300); x != x86.ExitBreak || c.RIP != moreAt-2 {
		t.Errorf("exit %d at %#x with a breakpoint", x, c.RIP)
	}
	c.SetBreakpoints(nil)
	run("without the breakpoint", 3, 1)

	c.SetEngine(x86.BlockEngine{})
	e.Close()
	c, e = begun()
	run("used again", 3, 0)
	c.SetEngine(x86.BlockEngine{})
	e.Close()
	bus.more[0], bus.ids[1] = 5, 5
	c, e = begun()
	run("used again where the second page is another one", 5, 2)

	bus.gone, bus.ids[1] = true, 6
	c.FlushTLBPage(moreAt)
	if x := c.Run(c.Retired + 300); x != x86.ExitFault || c.Fault.Addr != moreAt || c.RIP != moreAt-2 {
		t.Errorf("exit %d at %#x, %+v without the second page", x, c.RIP, c.Fault)
	}
	c.SetEngine(x86.BlockEngine{})
	e.Close()
}

// TestTable: a table has every key that was added, also those that share a place, until there are too many. Then the units are left.
func TestTable(t *testing.T) {
	var b table
	const most = maxEntries / 2
	one := &unit{}
	for i := range uint64(most) {
		x := b.at(i << 20)
		if x.refused = i%3 == 0 && i%4 != 1; i%4 == 1 {
			x.unit = one
		}
	}
	check := func(i uint64, refused bool) {
		t.Helper()
		if x := b.at(i << 20); x.key != i<<20 || x.refused != refused || (x.unit != nil) != (i%4 == 1) || b.unit(i<<20) != x.unit {
			t.Fatalf("entry %d: %+v", i, *x)
		}
	}
	for i := range uint64(most) {
		check(i, i%3 == 0 && i%4 != 1)
	}
	if b.unit(1) != nil || b.n != most {
		t.Error("there is a unit where none was, or to look for one has made an entry")
	}
	if x := b.at(1); x.refused || b.n != most/4+1 || x.key != 1 || len(b.entries) != maxEntries {
		t.Errorf("%d of %d entries are left of too many", b.n, len(b.entries))
	}
	for i := range uint64(100) {
		check(i, false)
	}
}
