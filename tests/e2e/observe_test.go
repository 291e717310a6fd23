package e2e

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/observe"
	"vplay/replay/x86"
	"vplay/tests/internal/tool"
)

// Package observe on real recordings, compared with a plain walk through the same.

// observeAll runs one kind of observer over a recording, in order, and fails the test on an error.
func observeAll(t *testing.T, s *replay.Session, make func(v *observe.View) *observe.Observer) {
	t.Helper()
	observeIn(t, s, time.Minute, nil, make)
}

// observeIn is observeAll for some intervals, or nil for all.
func observeIn(t *testing.T, s *replay.Session, limit time.Duration, intervals []uint32, make func(v *observe.View) *observe.Observer) {
	t.Helper()
	err := observe.Run(limited(t, limit), s, observe.Options{Intervals: intervals, Ordered: true, Begin: func(v *observe.View) (*observe.Observer, error) { return make(v), nil }})
	if err != nil {
		t.Fatal(err)
	}
}

// TestObserve compares every callback with a walk through the recording that looks at every step.
func TestObserve(t *testing.T) {
	t.Parallel()
	rec := compile(t, "moves", "-O0", "-static").record(t, "--keep", "always", "--interval", "5ms", "--force-every", "5", "--no-slim")
	w := newWalker(t, tool.OpenTimeline(t, rec, 256<<20), 7)
	s := w.tl.Session
	t.Run("instructions", w.observeInstructions)
	t.Run("branches", w.observeBranches)
	t.Run("addresses", w.observeAddresses)
	t.Run("ranges", w.observeRanges)
	t.Run("marks", w.observeMarks)
	t.Run("later", w.observeLater)
	t.Run("events", func(t *testing.T) {
		var want, got []checkpoint.EventKind
		for _, i := range s.Rec.Intervals() {
			events, err := s.Events(i.ID)
			if err != nil {
				t.Fatal(err)
			}
			for i := range events {
				want = append(want, events[i].Kind)
			}
		}
		applied := 0
		observeAll(t, s, func(*observe.View) *observe.Observer {
			return &observe.Observer{
				Event:   func(_ *observe.View, e *checkpoint.Event) { got = append(got, e.Kind) },
				Applied: func(_ *observe.View, e *checkpoint.Event) { applied++ },
			}
		})
		if !slices.Equal(got, want) || applied != len(want) {
			t.Errorf("%d events and %d applied, want %d", len(got), applied, len(want))
		}
	})
}

// observeInstructions holds the instructions told to the walk, where each that is executed has a moment.
func (w *walker) observeInstructions(t *testing.T) {
	type seen struct {
		p   checkpoint.Position
		rip uint64
	}
	var got []seen
	observeAll(t, w.tl.Session, func(*observe.View) *observe.Observer {
		return &observe.Observer{Instr: func(v *observe.View, in *x86.Inst) {
			got = append(got, seen{v.Position(), v.CPU().RIP})
		}}
	})
	at := 0
	for _, g := range got {
		i, ok := w.index[g.p]
		if !ok || w.all[i].regs.RIP != g.rip {
			t.Fatalf("an instruction at %s, %#x: not in the walk", g.p, g.rip)
		}
		for ; at < i; at++ {
			if m := &w.all[at]; !m.fault && (at == 0 || !w.insideRep(at)) && m.pos.Interval == g.p.Interval && !w.skips(at) {
				t.Fatalf("the instruction at %s, %#x, was not told", m.pos, m.regs.RIP)
			}
		}
		at = i + 1
	}
	if len(got) < len(w.all)/2 {
		t.Errorf("%d instructions of %d moments", len(got), len(w.all))
	}
}

// observeBranches holds the branches told to the walk: each moment whose instruction is a transfer, and that is followed by another
// address than the next one.
func (w *walker) observeBranches(t *testing.T) {
	type branch struct{ from, to uint64 }
	var got []branch
	kinds := map[x86.Transfer]int{}
	runs, retired := uint64(0), map[uint32]uint64{}
	observeAll(t, w.tl.Session, func(*observe.View) *observe.Observer {
		return &observe.Observer{
			Run: func(_ *observe.View, r *x86.Run) { runs += uint64(r.N) },
			Branch: func(v *observe.View, b *observe.Branch) {
				if v.CPU().RIP != b.To {
					t.Errorf("the machine is at %#x behind a branch to %#x", v.CPU().RIP, b.To)
				}
				got = append(got, branch{b.From, b.To})
				kinds[b.Kind]++
			},
			Done: func(v *observe.View) { retired[v.Position().Interval] = v.CPU().Retired },
		}
	})
	var want []branch
	mem, id := w.tl.Machine().Mem, w.tl.Machine().CPU.ID
	for i := range w.all[:len(w.all)-1] {
		m, next := &w.all[i], &w.all[i+1]
		isLast := m.pos.Instr+1 == retired[m.pos.Interval]
		if !isLast && (next.pos.Interval != m.pos.Interval || next.pos.Instr != m.pos.Instr+1) || isLast && next.pos.Interval == m.pos.Interval && next.pos.Instr == m.pos.Instr {
			continue
		}
		var b [15]byte
		n, _ := mem.Peek(m.regs.RIP, b[:])
		in, err := x86.DecodeInst(b[:n], m.regs.RIP, id)
		if err != nil {
			t.Fatalf("%s: %#x: %v", m.pos, m.regs.RIP, err)
		}
		switch name := x86.Rows()[in.Row].Mnemonic; {
		case name == "CALL", name == "RET", name == "JMP", name[0] == 'J' && next.regs.RIP != m.regs.RIP+uint64(in.Len):
			want = append(want, branch{m.regs.RIP, next.regs.RIP})
		}
	}
	if !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("branch %d is %#x, want %#x", i, got[i], want[i])
				break
			}
		}
		t.Errorf("%d branches, want %d", len(got), len(want))
	}
	sum := uint64(0)
	for _, n := range retired {
		sum += n
	}
	if runs == 0 || runs > sum || kinds[x86.Call] < 10 || kinds[x86.Return] < 10 || kinds[x86.Branch] < 100 || kinds[x86.Jump] == 0 {
		t.Errorf("%d instructions of %d in runs, branches: %v", runs, sum, kinds)
	}
}

// skips reports whether no instruction is executed from moment i to the next: an event is applied there, or
// the interval ends.
func (w *walker) skips(i int) bool {
	return i+1 == len(w.all) || w.all[i+1].pos.Interval != w.all[i].pos.Interval || w.all[i+1].pos.Instr == w.all[i].pos.Instr
}

// observeAddresses compares calls of Exec with the walk, for addresses that are executed.
func (w *walker) observeAddresses(t *testing.T) {
	for range 20 {
		var addrs []uint64
		for range 1 + w.r.IntN(5) {
			addrs = append(addrs, w.all[w.r.IntN(len(w.all))].regs.RIP)
		}
		var want, got []checkpoint.Position
		for i := range w.all {
			if slices.Contains(addrs, w.all[i].regs.RIP) && w.isExec(i, w.all[i].regs.RIP) && i+1 < len(w.all) {
				want = append(want, w.all[i].pos)
			}
		}
		observeAll(t, w.tl.Session, func(*observe.View) *observe.Observer {
			return &observe.Observer{Addresses: addrs, Exec: func(v *observe.View) {
				m := v.Machine()
				if p := v.Position(); w.all[w.index[p]].regs.R != m.CPU.R {
					t.Errorf("other registers at %s", p)
				}
				got = append(got, v.Position())
			}}
		})
		if !slices.Equal(got, want) {
			t.Fatalf("%#x: executed at %v, want %v", addrs, got, want)
		}
	}
}

// touched is an access as both ways of observing tell it.
type touched struct {
	pc, addr  uint64
	size      int
	store     bool
	data, old string
}

// observeRanges compares accesses to ranges, found at full speed, with all accesses, looked at one by one.
func (w *walker) observeRanges(t *testing.T) {
	note := func(a *observe.Access) touched {
		return touched{a.PC, a.Addr, a.Size, a.Store, string(a.Data), string(a.Old)}
	}
	var all []touched
	observeAll(t, w.tl.Session, func(*observe.View) *observe.Observer {
		return &observe.Observer{AllAccesses: true, Access: func(_ *observe.View, a *observe.Access) { all = append(all, note(a)) }}
	})
	for range 12 {
		x := mem.Watch{Addr: w.all[w.r.IntN(len(w.all))].regs.R[x86.RSP] - uint64(w.r.IntN(64)), Len: 1 + uint64(w.r.IntN(8)), Kind: mem.WatchAccess}
		var want, got []touched
		for _, a := range all {
			if x.Overlaps(a.addr, a.addr+uint64(a.size)) {
				want = append(want, a)
			}
		}
		observeAll(t, w.tl.Session, func(*observe.View) *observe.Observer {
			return &observe.Observer{Ranges: []mem.Watch{x}, Access: func(_ *observe.View, a *observe.Access) {
				if !a.Event {
					got = append(got, note(a))
				}
			}}
		})
		if !slices.Equal(got, want) {
			t.Fatalf("%#x+%d: %d accesses, want %d\n%+v\n%+v", x.Addr, x.Len, len(got), len(want), got, want)
		}
	}
}

// observeMarks changes a set of marked bytes all the time, and compares the accesses that are told with all accesses,
// each held to the set of that moment. The set goes on from one interval to the next.
func (w *walker) observeMarks(t *testing.T) {
	var addrs []uint64
	for range 6 {
		addrs = append(addrs, w.all[w.r.IntN(len(w.all))].regs.RIP)
	}
	// change is what happens to the set at a moment: what follows from the position alone.
	change := func(v *observe.View) (at, n uint64, isAdd bool) {
		p := v.Position()
		at = v.CPU().R[x86.RSP] - 40 + p.Instr*7%80
		return at, 1 + p.Instr%9, p.Instr%3 != 0
	}
	note := func(a *observe.Access) touched {
		return touched{a.PC, a.Addr, a.Size, a.Store, string(a.Data), string(a.Old)}
	}
	var want, got []touched
	set := map[uint64]bool{}
	observeAll(t, w.tl.Session, func(*observe.View) *observe.Observer {
		return &observe.Observer{Addresses: addrs, AllAccesses: true,
			Exec: func(v *observe.View) {
				for at, n, isAdd := change(v); n > 0; at, n = at+1, n-1 {
					set[at] = isAdd
				}
			},
			Access: func(_ *observe.View, a *observe.Access) {
				for i := range uint64(a.Size) {
					if set[a.Addr+i] {
						want = append(want, note(a))
						return
					}
				}
			}}
	})
	var marks mem.Marks
	asked := 0
	observeAll(t, w.tl.Session, func(*observe.View) *observe.Observer {
		return &observe.Observer{Addresses: addrs, Marks: &marks,
			Exec: func(v *observe.View) {
				if at, n, isAdd := change(v); isAdd {
					marks.Add(at, at+n)
				} else {
					marks.Remove(at, at+n)
				}
			},
			Wants:  func(_ *observe.View, a *observe.Access) bool { asked++; return !a.Event },
			Access: func(_ *observe.View, a *observe.Access) { got = append(got, note(a)) }}
	})
	if !slices.Equal(got, want) || len(want) == 0 || asked < len(want) {
		t.Errorf("%d accesses, asked %d times, want %d of %d bytes", len(got), asked, len(want), len(set))
	}
}

// observeLater has all accesses told from some event on, and compares them with the rest of all.
func (w *walker) observeLater(t *testing.T) {
	type placed struct {
		touched
		at checkpoint.Position
	}
	var all, got []placed
	note := func(list *[]placed) func(v *observe.View, a *observe.Access) {
		return func(v *observe.View, a *observe.Access) {
			*list = append(*list, placed{touched{a.PC, a.Addr, a.Size, a.Store, string(a.Data), string(a.Old)}, v.Position()})
		}
	}
	var begins []int // by event, the accesses before it
	observeAll(t, w.tl.Session, func(*observe.View) *observe.Observer {
		return &observe.Observer{AllAccesses: true, Access: note(&all), Applied: func(*observe.View, *checkpoint.Event) { begins = append(begins, len(all)) }}
	})
	for range 12 {
		got = got[:0]
		from, n := w.r.IntN(len(begins)), 0
		observeAll(t, w.tl.Session, func(*observe.View) *observe.Observer {
			begin := func(v *observe.View) {
				if n > from {
					v.TellAccesses()
				}
			}
			return &observe.Observer{AllAccesses: true, Later: true, Access: note(&got), Start: begin,
				Applied: func(v *observe.View, _ *checkpoint.Event) { n++; begin(v) }}
		})
		if !slices.Equal(got, all[begins[from]:]) {
			t.Fatalf("from event %d on: %d accesses, want %d of %d", from, len(got), len(all)-begins[from], len(all))
		}
	}
}

// TestObserveRepeats: each iteration of a REP string instruction has its accesses, at its step, however many there are, and those before one that
// faults are not lost.
func TestObserveRepeats(t *testing.T) {
	t.Parallel()
	s := tool.OpenSession(t, compile(t, "repfault", "-O1", "-static").record(t, "--no-slim"))
	for _, instructions := range []bool{false, true} {
		type made struct{ loads, stores int }
		by := map[uint64]made{} // the instruction's address
		steps := map[checkpoint.Position]int{}
		observeAll(t, s, func(*observe.View) *observe.Observer {
			ob := &observe.Observer{AllAccesses: true, Access: func(v *observe.View, a *observe.Access) {
				m := by[a.PC]
				if m.loads += 1; a.Store {
					m.loads, m.stores = m.loads-1, m.stores+1
				}
				by[a.PC] = m
				steps[v.Position()]++
			}}
			if instructions {
				ob.Instr = func(*observe.View, *x86.Inst) {}
			}
			return ob
		})
		for _, want := range []made{{0, 1_000_000}, {4096, 4096}} {
			if got := slices.Collect(maps.Values(by)); !slices.Contains(got, want) {
				t.Errorf("instructions told %t: no instruction has made %+v", instructions, want)
			}
		}
		if most := slices.Max(slices.Collect(maps.Values(steps))); most > 8192 {
			t.Errorf("instructions told %t: %d accesses at one position", instructions, most)
		}
	}
}

// TestObserveStops ends a run from a callback, by a context, and by an error.
func TestObserveStops(t *testing.T) {
	t.Parallel()
	s := tool.OpenSession(t, compile(t, "moves", "-O0", "-static").record(t, "--keep", "always", "--interval", "5ms", "--no-slim"))
	want := errors.New("enough")
	for _, ordered := range []bool{false, true} {
		for _, why := range []error{want, nil} {
			err := observe.Run(context.Background(), s, observe.Options{Ordered: ordered, Begin: func(v *observe.View) (*observe.Observer, error) {
				return &observe.Observer{Event: func(v *observe.View, _ *checkpoint.Event) { v.Stop(why) }}, nil
			}})
			if err != why { //nolint:errorlint // it must be that one
				t.Errorf("ordered %t: %v, want %v", ordered, err, why)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	err := observe.Run(ctx, s, observe.Options{Begin: func(v *observe.View) (*observe.Observer, error) {
		return &observe.Observer{Instr: func(*observe.View, *x86.Inst) { cancel() }}, nil
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
