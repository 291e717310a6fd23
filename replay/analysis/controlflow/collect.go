package controlflow

import (
	"context"
	"sync"

	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// What a recorded execution tells of its code: which functions were called, where indirect jumps led, and the code itself, as
// an interval has only the pages that it used.

// Bounds for recordings that are made to do harm.
const (
	maxTransfers = 1 << 20 // functions, and ways of indirect jumps
	maxPages     = 1 << 14 // pages of code, 64 MiB
)

// transfer is where an indirect jump led, or with from 0 a call: it matters not from where.
type transfer struct{ from, to uint64 }

// collector joins what intervals tell.
type collector struct {
	mu    sync.Mutex
	all   map[transfer]bool
	pages map[uint64]*page
}

// page is a page of code, as far as it is known.
type page struct {
	b        mem.Page
	known    mem.Mask // by byte
	interval uint32
}

// part is what one interval tells.
type part struct {
	seen   map[transfer]bool
	pages  map[uint64]bool
	recent [1 << 10]transfer // by a hash
	last   [2]uint64         // pages noted last
}

// Fetch returns a function that reads code from memory.
func Fetch(space *mem.Space) func(pc uint64, b []byte) int {
	return func(pc uint64, b []byte) int {
		r, ok := space.Find(pc)
		if !ok || r.Prot&mem.ProtExec == 0 {
			return 0
		}
		n, _ := space.Peek(pc, b)
		return n
	}
}

// Collect replays intervals of a process and returns its code. It is read by o.Fetch, and where that knows nothing
// from the pages that an interval executed. progress is called now and then with the instructions executed since its last call, from
// several goroutines. Errors: those of observe.Run.
func Collect(ctx context.Context, s *replay.Session, ids []uint32, o Options, progress func(n uint64)) (*Code, error) {
	x := &collector{all: map[transfer]bool{}, pages: map[uint64]*page{}}
	err := observe.Run(ctx, s, observe.Options{
		Intervals: ids,
		Progress:  progress,
		Begin: func(*observe.View) (*observe.Observer, error) {
			p := &part{seen: map[transfer]bool{}, pages: map[uint64]bool{}}
			return &observe.Observer{
				Branch: func(_ *observe.View, b *observe.Branch) { p.branch(b) },
				Done:   func(v *observe.View) { x.join(p, v) },
			}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	fetch := o.Fetch
	o.Fetch = func(pc uint64, b []byte) int {
		if n := fetch(pc, b); n > 0 {
			return n
		}
		return x.fetch(pc, b)
	}
	c := New(o)
	for t := range x.all {
		if t.from == 0 {
			c.AddEntry(t.to)
		} else {
			c.AddTarget(t.from, t.to)
		}
	}
	return c, nil
}

// branch notes a transfer.
func (p *part) branch(b *observe.Branch) {
	p.page(0, b.From)
	p.page(1, b.To)
	var t transfer
	switch {
	case b.Kind == x86.Call:
		t.to = b.To
	case b.Kind == x86.Branch && b.IsIndirect:
		t = transfer{b.From, b.To}
	default:
		return
	}
	r := &p.recent[(t.from^t.to>>1)%uint64(len(p.recent))]
	if *r == t {
		return
	}
	if *r = t; len(p.seen) < maxTransfers {
		p.seen[t] = true
	}
}

// page notes that a page was executed; which is 0 or 1.
func (p *part) page(which int, pc uint64) {
	if base := pc &^ (mem.PageSize - 1); base != p.last[which] {
		p.last[which] = base
		if len(p.pages) < maxPages {
			p.pages[base] = true
		}
	}
}

// join adds what an interval has told, at whose end v is. Of a page the last interval's is taken.
func (x *collector) join(p *part, v *observe.View) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for t := range p.seen {
		if len(x.all) < maxTransfers {
			x.all[t] = true
		}
	}
	space, id := v.Machine().Mem, v.Machine().Interval()
	for base := range p.pages {
		had := x.pages[base]
		if had != nil && had.interval > id || had == nil && len(x.pages) >= maxPages {
			continue
		}
		x.pages[base] = readPage(space, base, id)
	}
}

// readPage reads what is known of a page.
func readPage(space *mem.Space, base uint64, id uint32) *page {
	p := &page{interval: id}
	for off := 0; off < mem.PageSize; {
		n, _ := space.Peek(base+uint64(off), p.b[off:])
		for i := off; i < off+n; i++ {
			p.known[i/8] |= 1 << (i % 8)
		}
		off += max(n, 1)
	}
	return p
}

// fetch reads code from the pages.
func (x *collector) fetch(pc uint64, b []byte) (n int) {
	for ; n < len(b); n++ {
		p, off := x.pages[(pc+uint64(n))&^(mem.PageSize-1)], (pc+uint64(n))%mem.PageSize
		if p == nil || p.known[off/8]>>(off%8)&1 == 0 {
			break
		}
		b[n] = p.b[off]
	}
	return n
}
