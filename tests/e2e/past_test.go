package e2e

import (
	"cmp"
	"flag"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/observe"
	"vplay/replay/x86"
	"vplay/tests/internal/tool"
)

var (
	pastRecordings = flag.String("past-recordings", "", "recordings that TestPastAccesses takes as well, a pattern")
	pastLength     = flag.Int("past-length", 300_000, "how many accesses of each interval it compares at most")
)

// TestPastAccesses compares what Observer.Accesses is told some time behind the accesses, by generated code and by the interpreter, with each
// access told at its instruction: threads, string instructions with faults, vectors, signals, forced ends.
func TestPastAccesses(t *testing.T) {
	t.Parallel()
	var files []string
	for _, g := range []struct {
		name    string
		options []string
	}{
		{"moves", []string{"-O0", "-static"}},
		{"crew", []string{"-O1", "-pthread"}},
		{"repfault", []string{"-O1", "-static"}},
		{"wideregs", []string{"-O2", "-mavx2"}},
	} {
		files = append(files, compile(t, g.name, g.options...).record(t, "--keep", "always", "--interval", "5ms", "--force-every", "5", "--slim", "never"))
	}
	if *pastRecordings != "" {
		more, err := filepath.Glob(*pastRecordings)
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: %d files, %v", *pastRecordings, len(more), err)
		}
		files = append(files, more...)
	}
	for _, file := range files {
		s := tool.OpenSession(t, file)
		for _, iv := range s.Rec.Intervals() {
			want := accessesOf(t, s, iv.ID)
			made := s.Engine
			for _, noData := range []bool{false, true} {
				comparePast(t, file, s, iv.ID, want, noData)
				s.Engine = nil
				comparePast(t, file, s, iv.ID, want, noData)
				s.Engine = made
			}
		}
	}
}

// pastAccess is an access as both ways of observing tell it.
type pastAccess struct {
	pc, addr, sp, instr uint64
	size                int
	store               bool
	data, old           string
}

// accessesOf returns the accesses of an interval, each told at its instruction.
func accessesOf(t *testing.T, s *replay.Session, id uint32) (list []pastAccess) {
	t.Helper()
	var sp, retired uint64
	observeInterval(t, s, id, &observe.Observer{
		AllAccesses: true,
		Instr:       func(v *observe.View, _ *x86.Inst) { sp, retired = v.CPU().R[x86.RSP], v.CPU().Retired },
		Access: func(v *observe.View, a *observe.Access) {
			if len(list) == *pastLength {
				v.Stop(nil)
			} else {
				list = append(list, pastAccess{a.PC, a.Addr, sp, retired, a.Size, a.Store, string(a.Data), string(a.Old)})
			}
		},
	})
	return list
}

// comparePast holds what Observer.Accesses is told of an interval to want.
func comparePast(t *testing.T, file string, s *replay.Session, id uint32, want []pastAccess, noData bool) {
	t.Helper()
	at, calls := 0, 0
	events := uint64(0)
	observeInterval(t, s, id, &observe.Observer{
		Revisits: true, NoData: noData,
		Accesses: func(v *observe.View, told []observe.PastAccess) {
			if calls++; calls%50 == 1 {
				for _, i := range []int{len(told) / 2, len(told) / 3} {
					checkPast(t, v, &told[i])
				}
			}
			now := v.CPU().Retired
			var list []pastAccess
			for i := range told {
				x := &told[i]
				if x.Instr < events || x.Instr > now {
					t.Errorf("%s, interval %d: told at %d: %+v, behind an event at %d", file, id, now, *x, events)
					v.Stop(nil)
					return
				}
				data, old := v.Bytes(x)
				list = append(list, pastAccess{x.PC, x.Addr, x.SP, x.Instr, int(x.Size), x.Store, string(data), string(old)})
			}
			n := min(len(list), *pastLength-at, len(want)-at)
			wanted := slices.Clone(want[at : at+n])
			sortWithin(list[:n])
			sortWithin(wanted)
			for i, x := range list[:n] {
				if noData {
					wanted[i].data, wanted[i].old = "", ""
				}
				if x != wanted[i] {
					t.Errorf("%s, interval %d, access %d: %+v, want %+v", file, id, at+i, x, wanted[i])
					v.Stop(nil)
					return
				}
			}
			switch at += n; {
			case at == *pastLength:
				v.Stop(nil)
			case n < len(list):
				t.Errorf("%s, interval %d: more than %d accesses: %+v", file, id, at, list[n])
				v.Stop(nil)
			}
		},
		Event: func(v *observe.View, _ *checkpoint.Event) { events = v.CPU().Retired },
	})
	if at != len(want) {
		t.Errorf("%s, interval %d: %d accesses, want %d", file, id, at, len(want))
	}
	t.Logf("%s, interval %d: %d accesses in %d calls", filepath.Base(file), id, at, calls)
}

// checkPast looks at the machine behind an access.
func checkPast(t *testing.T, v *observe.View, a *observe.PastAccess) {
	t.Helper()
	past, err := v.At(a)
	if err != nil {
		t.Error(err)
		return
	}
	c := past.CPU()
	switch isInside := c.Retired == a.Instr && c.RepIter > 0 && c.RIP == a.PC; {
	case c.Retired != a.Instr+1 && !isInside, past.TID() != v.TID():
		t.Errorf("behind %+v there are %d instructions, %d iterations, thread %d, not %d", *a, c.Retired, c.RepIter, past.TID(), v.TID())
	case a.Store && c.Retired == v.CPU().Retired && a.Size <= 8:
		var was, is [8]byte
		past.ReadMemory(a.Addr, was[:a.Size])
		if v.ReadMemory(a.Addr, is[:a.Size]); was != is {
			t.Errorf("behind %+v there is %x, and %x in the machine that is there, too", *a, was, is)
		}
	}
}

// sortWithin sorts the accesses of each instruction: a comparison of two operands may load them in any order.
func sortWithin(list []pastAccess) {
	slices.SortStableFunc(list, func(a, b pastAccess) int {
		stores := func(x pastAccess) int {
			if x.store {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.instr, b.instr), cmp.Compare(a.addr, b.addr), stores(a)-stores(b))
	})
}

// observeInterval runs an observer over one interval.
func observeInterval(t *testing.T, s *replay.Session, id uint32, ob *observe.Observer) {
	t.Helper()
	observeIn(t, s, 5*time.Minute, []uint32{id}, func(*observe.View) *observe.Observer { return ob })
}
