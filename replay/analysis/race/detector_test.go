package race

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"vplay/checkpoint"
)

// watch returns a detector and the races that it has reported.
func watch(o Options) (*Detector, *[]Race) {
	var found []Race
	o.Report = func(r *Race) { found = append(found, *r) }
	d := New(o)
	d.Begin(1)
	d.Fork(1, 2)
	d.Fork(1, 3)
	return d, &found
}

// step is something that a thread does: load and store at an address (pc is by place in the list), or synchronisation.
type step struct {
	tid  int32
	what string
	addr uint64
	size int
}

func play(d *Detector, steps []step) {
	for i, s := range steps {
		a := &Access{TID: s.tid, PC: uint64(i), Addr: s.addr, Size: s.size, At: checkpoint.Position{Instr: uint64(i)}}
		switch s.what {
		case "load":
			d.Access(a, false)
		case "store":
			a.Store = true
			d.Access(a, false)
		case "locked":
			d.Access(a, true)
			a.Store = true
			d.Access(a, true)
		case "acquire":
			d.Acquire(s.tid, Key{Addr: s.addr})
		case "release":
			d.Release(s.tid, Key{Addr: s.addr})
		case "join":
			d.Join(s.tid, int32(s.addr))
		case "fork":
			d.Fork(s.tid, int32(s.addr))
		case "clear":
			d.Clear(s.addr, s.addr+uint64(s.size))
		case "all":
			d.AcquireAll(s.tid)
		}
	}
}

// TestRaces plays what threads do, and says which steps race.
func TestRaces(t *testing.T) {
	for name, c := range map[string]struct {
		steps []step
		want  [][2]uint64 // pairs of steps
	}{
		"stores":            {[]step{{2, "store", 64, 4}, {3, "store", 64, 4}}, [][2]uint64{{0, 1}}},
		"loads":             {[]step{{2, "load", 64, 4}, {3, "load", 64, 4}}, nil},
		"store behind load": {[]step{{2, "load", 64, 4}, {3, "store", 64, 4}}, [][2]uint64{{0, 1}}},
		"other bytes":       {[]step{{2, "store", 64, 4}, {3, "store", 68, 4}, {2, "store", 63, 1}}, nil},
		"one byte":          {[]step{{2, "store", 62, 4}, {3, "load", 65, 1}}, [][2]uint64{{0, 1}}},
		"both readers":      {[]step{{2, "load", 64, 4}, {3, "load", 64, 4}, {1, "store", 64, 8}}, [][2]uint64{{0, 2}, {1, 2}}},
		"lock":              {[]step{{2, "store", 64, 4}, {2, "release", 9, 0}, {3, "acquire", 9, 0}, {3, "store", 64, 4}}, nil},
		"behind the unlock": {[]step{{2, "release", 9, 0}, {2, "store", 64, 4}, {3, "acquire", 9, 0}, {3, "store", 64, 4}}, [][2]uint64{{1, 3}}},
		"other lock":        {[]step{{2, "store", 64, 4}, {2, "release", 9, 0}, {3, "acquire", 8, 0}, {3, "store", 64, 4}}, [][2]uint64{{0, 3}}},
		"handed on": {[]step{{2, "store", 64, 4}, {2, "release", 9, 0}, {3, "acquire", 9, 0}, {3, "release", 8, 0},
			{1, "acquire", 8, 0}, {1, "load", 64, 4}}, nil},
		"join":          {[]step{{2, "store", 64, 4}, {1, "join", 2, 0}, {1, "store", 64, 4}, {3, "load", 64, 4}}, [][2]uint64{{2, 3}}},
		"fork":          {[]step{{1, "store", 64, 4}, {1, "fork", 4, 0}, {4, "store", 64, 4}, {1, "load", 64, 4}}, [][2]uint64{{2, 3}}},
		"new memory":    {[]step{{2, "store", 64, 8}, {3, "clear", 64, 8}, {3, "store", 64, 8}}, nil},
		"part of it":    {[]step{{2, "store", 64, 8}, {3, "clear", 64, 4}, {3, "store", 64, 4}, {3, "store", 68, 4}}, [][2]uint64{{0, 3}}},
		"atomic":        {[]step{{2, "store", 128, 4}, {2, "locked", 64, 4}, {3, "load", 64, 4}, {3, "load", 128, 4}}, nil},
		"atomic store":  {[]step{{1, "locked", 64, 4}, {2, "store", 128, 4}, {2, "store", 64, 4}, {3, "load", 64, 4}, {3, "load", 128, 4}}, nil},
		"becomes one":   {[]step{{2, "store", 128, 4}, {2, "store", 64, 4}, {3, "locked", 64, 4}, {3, "load", 128, 4}}, nil},
		"beside atomic": {[]step{{2, "locked", 64, 4}, {2, "store", 68, 4}, {3, "store", 68, 4}}, [][2]uint64{{1, 2}}},
		"unknown":       {[]step{{2, "store", 64, 4}, {9, "store", 64, 4}, {2, "store", 64, 4}}, [][2]uint64{{1, 2}}},
		"in the midst":  {[]step{{2, "store", 64, 4}, {3, "all", 0, 0}, {3, "store", 64, 4}}, nil},
		"wide":          {[]step{{2, "store", 500, 32}, {3, "load", 520, 1}}, [][2]uint64{{0, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			d, found := watch(Options{})
			play(d, c.steps)
			var got [][2]uint64
			for _, r := range *found {
				got = append(got, [2]uint64{r.First.PC, r.Second.PC})
			}
			if len(got) != len(c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("got %v, want %v", got, c.want)
				}
			}
		})
	}
}

// TestDeclaredAtomic: a variable that is declared atomic orders by plain instructions.
func TestDeclaredAtomic(t *testing.T) {
	d, found := watch(Options{IsAtomic: func(r *Race) bool { return r.First.Addr == 64 }})
	play(d, []step{{2, "store", 128, 4}, {2, "store", 64, 4}, {3, "load", 64, 4}, {3, "load", 128, 4}, {2, "store", 72, 4}, {3, "store", 72, 4}})
	if len(*found) != 1 || (*found)[0].Second.Addr != 72 {
		t.Errorf("got %v", *found)
	}
}

// TestAgainstHistory holds the detector to a plain history: an access races with each earlier one that no chain of
// program order, release and acquire leads from. Random threads use three variables and two locks, and a
// store is kept for good, so that all pairs are known.
func TestAgainstHistory(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 300 {

		var steps []step
		for range 60 {
			what := []string{"load", "store", "acquire", "release"}[rng.IntN(4)]
			addr := uint64(64 + 8*rng.IntN(3))
			if what == "acquire" || what == "release" {
				addr = uint64(1 + rng.IntN(2))
			}
			steps = append(steps, step{int32(1 + rng.IntN(3)), what, addr, 8})
		}
		threads, locks := map[int32]map[int]bool{1: {}, 2: {}, 3: {}}, map[uint64]map[int]bool{1: {}, 2: {}}
		racy := map[uint64]bool{} // accesses that race with an earlier one
		for i, s := range steps {
			mine := threads[s.tid]
			for j := range i {
				o := steps[j]
				isPair := (s.what == "store" && (o.what == "store" || o.what == "load") || s.what == "load" && o.what == "store") && o.addr == s.addr
				if isPair && o.tid != s.tid && !mine[j] {
					racy[uint64(i)] = true
				}
			}
			mine[i] = true
			switch s.what {
			case "acquire":
				for j := range locks[s.addr] {
					mine[j] = true
				}
			case "release":
				for j := range mine {
					locks[s.addr][j] = true
				}
			}
		}
		d, found := watch(Options{})
		play(d, steps)
		got := map[uint64]bool{}
		for _, r := range *found {
			got[r.Second.PC] = true
		}
		for i := range steps {
			if got[uint64(i)] != racy[uint64(i)] {
				t.Fatalf("step %d: reported %v, races %v: %v", i, got[uint64(i)], racy[uint64(i)], steps)
			}
		}
	}
}

// TestBounds: shadow memory stays bounded, what was forgotten makes no race, and the sizes that
// it is counted by are those of the types.
func TestBounds(t *testing.T) {
	if unsafe.Sizeof(entry{}) > entrySize || unsafe.Sizeof(line{}) > lineSize {
		t.Errorf("an entry has %d bytes, a line %d", unsafe.Sizeof(entry{}), unsafe.Sizeof(line{}))
	}
	d, found := watch(Options{MaxBytes: 1 << 20})
	for i := range uint64(1 << 14) {
		d.Access(&Access{TID: 2, PC: 1, Addr: i << 9, Size: 8, Store: true}, false)
		if d.shadow.bytes > 2<<20 {
			t.Fatalf("%d bytes", d.shadow.bytes)
		}
	}
	if d.Forgotten() == 0 {
		t.Error("nothing was forgotten")
	}
	play(d, []step{{2, "store", 0, 8}, {2, "release", 5, 0}, {3, "acquire", 5, 0}, {3, "store", 0, 8}})
	if len(*found) != 0 {
		t.Errorf("got %v", *found)
	}
}

// TestClearLine: what is kept of other memory with the same place in the cache stays.
func TestClearLine(t *testing.T) {
	const other = cacheLines * lineBytes
	d, found := watch(Options{})
	play(d, []step{{2, "store", 0, 8}, {2, "store", other, 8}, {2, "clear", 0, lineBytes}, {3, "store", 0, 8}, {3, "store", other, 8}})
	if len(*found) != 1 || (*found)[0].Second.Addr != other {
		t.Errorf("got %v", *found)
	}
}

// TestManyThreads: threads that are joined leave their slots to others, and none is taken for another one.
func TestManyThreads(t *testing.T) {
	d, found := watch(Options{})
	for i := range int32(2000) {
		tid := 10 + i
		d.Fork(1, tid)
		d.Access(&Access{TID: tid, PC: 1, Addr: 64, Size: 8, Store: true}, false)
		d.Join(1, tid)
	}
	if len(*found) != 0 || len(d.slots) > reuseAbove+1 {
		t.Errorf("%d races, %d slots", len(*found), len(d.slots))
	}
}
