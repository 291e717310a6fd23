package windows

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"vplay/checkpoint"
)

// The counters against the definitions, on random traces: costs of windows by going through
// them, the optimum by trying every placement.

// step is an access of a made-up trace, of instruction number at.
type step struct {
	at        uint64
	off, n    uint64
	isWrite   bool
	isOutside bool // an event has stored it
	isGap     bool // what was there is not known any more
}

// trace makes a random trace of n instructions, which access a few words of a page in ways that overlap.
func trace(r *rand.Rand, n uint64) (out []step) {
	for at := range n {
		if r.IntN(40) == 0 {
			out = append(out, step{at: at, isGap: true})
		}
		if r.IntN(10) == 0 {
			out = append(out, step{at: at, off: r.Uint64N(20), n: 1 + r.Uint64N(8), isOutside: true})
		}
		for range r.IntN(3) {
			size := uint64(1) << r.IntN(4)
			out = append(out, step{at: at, off: r.Uint64N(24/size) * size, n: size, isWrite: r.IntN(3) == 0})
		}
	}
	return out
}

// count gives a trace to an analysis.
func count(t *testing.T, o Options, n uint64, trace []step) *Report {
	t.Helper()
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	x := newAnalysis(&o, &room{})
	for _, s := range trace {
		err := x.at(s.at)
		if s.isGap {
			x.table.clear()
			continue
		}
		p := x.table.pages[0]
		if p == nil && err == nil {
			p, err = x.table.put(0, 0)
		}
		do := x.read
		if s.isWrite {
			do = x.write
		}
		if s.isOutside {
			do = x.bring
		}
		if err == nil {
			err = do(p, s.off, s.n)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	x.end(n)
	return x.finish()
}

// cost is c(a, b) by the definition: what is read in the window before it is accessed in it.
func cost(trace []step, a, b uint64) (bytes uint64) {
	seen := map[uint64]bool{}
	for _, s := range trace {
		if s.at < a || s.at >= b {
			continue
		}
		if s.isGap {
			clear(seen)
		}
		for i := s.off; i < s.off+s.n; i++ {
			if !s.isWrite && !s.isOutside && !seen[i] {
				bytes++
			}
			seen[i] = true
		}
	}
	return bytes
}

// best tries every placement of cuts at multiples of grain.
func best(costs map[[2]uint64]uint64, from, n, bound, grain uint64) Placement {
	if from >= n {
		return Placement{}
	}
	least := Placement{Bytes: 1 << 60}
	for b := from + grain; ; b += grain {
		if b-from > bound {
			break
		}
		rest := best(costs, b, n, bound, grain)
		if p := (Placement{costs[[2]uint64{from, b}] + rest.Bytes, rest.Windows + 1}); p.less(least) {
			least = p
		}
		if b >= n {
			break
		}
	}
	return least
}

// greedy is the adaptive scheme by its definition.
func greedy(costs map[[2]uint64]uint64, n, bound, grain, scan uint64) (p Placement) {
	for a := uint64(0); a < n; {
		end := a + bound
		at := end
		if end < n {
			for b := end; b > a && end-b <= scan; b -= grain {
				if costs[[2]uint64{a, b}]*(at-a) < costs[[2]uint64{a, at}]*(b-a) {
					at = b
				}
			}
		}
		p = p.plus(costs[[2]uint64{a, at}])
		a = at
	}
	return p
}

// once counts what fixed windows access, each once: locations of size bytes.
func once(trace []step, bound, size uint64, reads bool) (n uint64) {
	seen := map[[2]uint64]bool{}
	for i, s := range trace {
		for b := s.off; b < s.off+s.n; b++ {
			window := s.at / bound
			switch {
			case s.isGap || s.isOutside || s.isWrite == reads:
				continue
			case reads && cost(slices.Concat(trace[:i:i], []step{{at: s.at, off: b, n: 1}}), window*bound, s.at+1) == cost(trace[:i], window*bound, s.at+1):
				continue // not spanning, or not the first
			}
			if k := [2]uint64{window, b / size}; !seen[k] {
				seen[k] = true
				n++
			}
		}
	}
	return n
}

// TestAgainstDefinitions holds every figure to its definition, for every kind of bound and grain.
func TestAgainstDefinitions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	saved := uint64(0)
	for round := range 400 {
		n := 1 + r.Uint64N(16)
		grain := 1 + r.Uint64N(3)
		tr := trace(r, n)
		costs := map[[2]uint64]uint64{}
		for a := uint64(0); a < n; a++ {
			for b := a + 1; b <= n+40; b++ {
				costs[[2]uint64{a, b}] = cost(tr, a, b)
			}
		}
		points := 1 + r.Uint64N(5)
		bounds := []uint64{grain * points, grain * points * 2}
		o := Options{Bounds: bounds, Points: points, Scan: Scan{Instructions: grain * (1 + r.Uint64N(points))}}
		rep := count(t, o, n, tr)
		for i := range rep.Bounds {
			c := &rep.Bounds[i]
			check := func(what string, got, want any) {
				t.Helper()
				if got != want {
					t.Fatalf("round %d, %d instructions, T %d, grain %d, M %d: %s is %v, want %v\n%+v", round, n, c.Bound, c.Grain, c.Scan, what, got, want, tr)
				}
			}
			check("the length", c.Length, bounds[i])
			check("the optimum", c.Optimal, best(costs, 0, n, c.Length, c.Grain))
			check("fixed windows", c.Fixed, greedy(costs, n, c.Length, c.Grain, 0))
			check("M", c.Scanned, greedy(costs, n, c.Length, c.Grain, c.Scan/c.Grain*c.Grain))
			check("M unbounded", c.Unbounded, greedy(costs, n, c.Length, c.Grain, c.Length))
			if !slices.ContainsFunc(tr, func(s step) bool { return s.isGap }) { // behind a gap all counts again
				check("pages read", c.PagesRead, once(tr, c.Length, pageSize, true))
				check("unique writes", c.UniqueWrites, once(tr, c.Length, 1, false))
				check("pages written", c.PagesWritten, once(tr, c.Length, pageSize, false))
			}
			saved += c.Fixed.Bytes - c.Optimal.Bytes
		}
	}
	if saved == 0 {
		t.Error("no optimum was better than fixed windows: the traces try nothing")
	}
}

// TestPhases: a program that works on one array, then on another, is cut between them by the
// optimum and by a scan, and not by fixed windows.
func TestPhases(t *testing.T) {
	var tr []step
	for at := range uint64(48) {
		phase := at / 8 // of 8 instructions, each with words of its own
		tr = append(tr, step{at: at, off: phase*64 + at%4*8, n: 8})
	}
	rep := count(t, Options{Bounds: []uint64{10}, Scan: Scan{Instructions: 2}}, 48, tr)
	c := rep.Bounds[0]
	const each = 4 * 8 // bytes of a phase, traced once for it
	if want := (Placement{6 * each, 6}); c.Optimal != want {
		t.Errorf("optimum %v, want %v", c.Optimal, want)
	}
	if c.Scanned.Bytes != 6*each || c.Fixed.Bytes <= 6*each {
		t.Errorf("M of 2: %v, fixed %v; the phases have %d bytes", c.Scanned, c.Fixed, 6*each)
	}
	if rep.Outside != 6*each {
		t.Errorf("%d bytes from outside, want %d", rep.Outside, 6*each)
	}
}

// TestBadOptions: what makes no sense is refused.
func TestBadOptions(t *testing.T) {
	for _, o := range []Options{
		{},
		{Bounds: []uint64{0, 5}},
		{Bounds: make([]uint64, 1)},
		{Bounds: []uint64{5}, Points: MaxPoints + 1},
		{Bounds: []uint64{5}, Scan: Scan{Share: 1.5}},
	} {
		if err := o.check(); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	many := Options{}
	for i := range uint64(MaxBounds + 1) {
		many.Bounds = append(many.Bounds, i+1)
	}
	if many.check() == nil {
		t.Error("too many bounds were taken")
	}
}

// TestRoom: pages take at most half of what the recording's budget allows, and those that are split take more.
func TestRoom(t *testing.T) {
	o := Options{Bounds: []uint64{10}}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	x := newAnalysis(&o, &room{budget: checkpoint.NewBudget(t.Context(), 128<<10)})
	var limit *checkpoint.LimitError
	var last *lastPage
	for i := range uint64(20) {
		p, err := x.table.put(i*pageSize, 0)
		if err != nil {
			if !errors.As(err, &limit) || i < 5 {
				t.Errorf("page %d: %v", i, err)
			}
			break
		}
		last = p
	}
	if limit == nil {
		t.Error("20 pages were taken")
	}
	if err := x.read(last, 1, 1); !errors.As(err, &limit) {
		t.Errorf("a page was split: %v", err)
	}
	x.table.clear()
	if x.table.room.used != 0 {
		t.Errorf("%d bytes are left", x.table.room.used)
	}
}

// TestTable: mremap, munmap and cells that are split keep what is known of other bytes.
func TestTable(t *testing.T) {
	o := Options{Bounds: []uint64{10}}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	x := newAnalysis(&o, &room{})
	p, err := x.table.put(0x1000, 7)
	if err != nil {
		t.Fatal(err)
	}
	p.last[3] = 9 // bytes 12 to 15
	if i, j, err := x.cells(p, 13, 1); err != nil || i != 13 || j != 14 || fmt.Sprint(p.last[10:18]) != "[7 7 9 9 9 9 7 7]" {
		t.Errorf("split: %d to %d, %v, %v", i, j, p.last[10:18], err)
	}
	change := func(op checkpoint.MapOp, tick uint32) {
		t.Helper()
		if err := x.table.remap([]checkpoint.MapOp{op}, tick); err != nil {
			t.Fatal(err)
		}
	}
	change(checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: 0x2000, End: 0x3000}, 3)
	change(checkpoint.MapOp{Kind: checkpoint.MapOpMove, Start: 0x1000, End: 0x3000, New: 0x9000, NewEnd: 0xc000}, 5)
	if x.table.pages[0x1000] != nil || x.table.pages[0x9000] != p {
		t.Error("the page is not where it was moved")
	}
	if got := fmt.Sprint(x.table.fresh.All()); got != fmt.Sprint([]fresh{{0xa000, 0xb000, 3}, {0xb000, 0xc000, 5}}) {
		t.Errorf("zeros are at %s", got)
	}
	change(checkpoint.MapOp{Kind: checkpoint.MapOpUnmap, Start: 0, End: 1 << 47}, 0)
	if len(x.table.pages) != 0 || x.table.taken != 0 || x.table.fresh.Len() != 0 {
		t.Errorf("%d pages, %d bytes and %d ranges are left", len(x.table.pages), x.table.taken, x.table.fresh.Len())
	}
}
