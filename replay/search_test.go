package replay

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86/jit"
)

// A program that counts, by hand: the busy word changes at each turn, the rare one, on a page
// of its own, at each 512th. After turns turns it makes a call, and then counts again.
const (
	turns    = 4096
	busyWord = 0x402000
	rareWord = 0x403000

	loopCode  = 0x401000
	rareStore = loopCode + 0x15
	callCode  = loopCode + 0x23
	clearCode = loopCode + 0x25
)

var loopText = []byte{
	0xff, 0x04, 0x25, 0x00, 0x20, 0x40, 0x00, // again: incl 0x402000
	0x8b, 0x04, 0x25, 0x00, 0x20, 0x40, 0x00, // mov 0x402000, %eax
	0xa9, 0xff, 0x01, 0x00, 0x00, // test $511, %eax
	0x75, 0x07, // jne 1f
	0x89, 0x04, 0x25, 0x00, 0x30, 0x40, 0x00, // mov %eax, 0x403000
	0x3d, 0x00, 0x10, 0x00, 0x00, // 1: cmp $4096, %eax
	0x72, 0xdd, // jb again
	0x0f, 0x05, // syscall
	0xc7, 0x04, 0x25, 0x00, 0x20, 0x40, 0x00, 0, 0, 0, 0, // movl $0, 0x402000
	0xeb, 0xce, // jmp again
}

// counting writes a recording of the program's first n calls, an interval for each.
func counting(t *testing.T, n uint32) *Session {
	t.Helper()
	path := filepath.Join(t.TempDir(), "counting.vplay")
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	page := func(b ...byte) checkpoint.PageRef {
		ref, err := w.AddPage(append(b, make([]byte, checkpoint.PageSize-len(b))...))
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	maps := []checkpoint.Mapping{
		{Start: loopCode, End: loopCode + checkpoint.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtExec},
		{Start: busyWord, End: rareWord + checkpoint.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtWrite},
	}
	var r checkpoint.Regs
	r.RIP, r.RFLAGS = loopCode, 0x202
	at := checkpoint.Context{TID: 1, Regs: r, XState: xstateWith(0), OrigRAX: -1}
	counted := page()
	for id := range n {
		iv := &checkpoint.Interval{ID: id, PID: 1, Start: []checkpoint.Context{at}, Maps: maps}
		iv.Pages = []checkpoint.PageEntry{{Addr: loopCode, Ref: page(loopText...)}, {Addr: busyWord, Ref: counted}, {Addr: rareWord, Ref: counted}}
		if id > 0 {
			done := returned(at.Regs, 0)
			iv.Events = append(iv.Events, checkpoint.Event{Kind: checkpoint.EventExit, TID: 1, NR: turns, RegHash: checkpoint.HashRegs(&done)})
		}
		r.RFLAGS = 0x246 // of turns == turns
		call := atCall(r, callCode, turns)
		iv.Events = append(iv.Events, checkpoint.Event{Kind: checkpoint.EventEnter, TID: 1, NR: turns, RegHash: checkpoint.HashRegs(&call)})
		at = checkpoint.Context{TID: 1, Regs: call, XState: at.XState, OrigRAX: turns, InCall: true}
		iv.End = checkpoint.End{Kind: checkpoint.EndSync, Contexts: []checkpoint.Context{at}}
		if err := w.AddInterval(iv); err != nil {
			t.Fatal(err)
		}
		counted = page(0, turns>>8)
	}
	s, err := NewSession(finished(t, w, path, checkpoint.Manifest{PID: 1}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// past is what a look at every step has seen: where the cursor stood, and what was about to
// be executed there.
type past struct {
	at  []checkpoint.Position
	rip []uint64
}

// lookAt steps through all of a recording.
func lookAt(t *testing.T, cur *Cursor) (p past) {
	t.Helper()
	for {
		p.at, p.rip = append(p.at, cur.Position()), append(p.rip, cur.Machine().CPU.RIP)
		stop, err := cur.StepForward(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if stop.Edge {
			return p
		}
	}
}

// matching returns the positions in [from, before) at which one of the instructions is
// about to be executed.
func (p *past) matching(from, before int, rips ...uint64) (out []checkpoint.Position) {
	for i := from; i < before; i++ {
		if slices.Contains(rips, p.rip[i]) {
			out = append(out, p.at[i])
		}
	}
	return out
}

// TestSearch asks for the newest and the oldest stops of random stretches, moves back to
// breakpoints and watchpoints, and compares with a look at every step: without an index, with
// one, and with so little memory that snapshots are dropped and segments joined.
func TestSearch(t *testing.T) {
	t.Run("interpreter", func(t *testing.T) { searchPast(t, counting(t, 3)) })
	t.Run("generated code", func(t *testing.T) {
		pool, err := jit.Open()
		if err != nil {
			if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
				t.Error(err)
			}
			return
		}
		s := counting(t, 3)
		s.Engine = pool.Maker(true, func(*jit.Engine) {})
		searchPast(t, s)
	})
}

func searchPast(t *testing.T, s *Session) {
	t.Helper()
	for _, c := range []struct {
		name    string
		memory  int64  // bytes
		spacing uint64 // instructions in a segment
	}{{"long segments", 16 << 20, 20_000}, {"little memory", 32 << 10, 500}} {
		t.Run(c.name, func(t *testing.T) {
			tl, err := NewTimeline(s, c.memory)
			if err != nil {
				t.Fatal(err)
			}
			defer tl.Close()
			tl.SetSpacing(c.spacing)
			cur, err := tl.NewCursor()
			if err != nil {
				t.Fatal(err)
			}
			defer cur.Close()
			h := lookAt(t, cur)
			if n := len(h.matching(0, len(h.at), rareStore)); n != 3*turns/512 {
				t.Fatalf("the rare word was stored to %d times", n)
			}
			r := rand.New(rand.NewPCG(1, 7))
			for i := range 60 {
				askPast(t, tl, &h, r)
				moveBack(t, cur, &h, r)
				if i == 20 {
					for _, id := range tl.Intervals() {
						if err := tl.explore(t.Context(), id); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		})
	}
}

// TestParkedWorkers wants a search to use the worker of the one before, no more to wait than are wanted, and all memory to
// be given back in the end.
func TestParkedWorkers(t *testing.T) {
	s := counting(t, 3)
	explored := func() *Timeline {
		tl, err := NewTimeline(s, 16<<20)
		if err != nil {
			t.Fatal(err)
		}
		tl.SetSpacing(2_000)
		for _, id := range tl.Intervals() {
			if err := tl.explore(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		return tl
	}
	explored().Close()
	before := s.Pool.InUse() // what the session keeps of intervals
	tl := explored()
	var parked *worker
	for i := range 5 {
		c, err := newestStop(t.Context(), tl.index, stops{watches: []mem.Watch{{Addr: rareWord, Len: 4, Kind: mem.WatchWrite}}}, tl.Begin(), future)
		if err != nil || c == nil {
			t.Fatalf("search %d: %v, %v", i, c, err)
		}
		tl.index.awaitClosed()
		idle := tl.index.idle
		if len(idle) == 0 || len(idle) > mostIdle {
			t.Fatalf("%d workers wait", len(idle))
		}
		if parked != nil && !slices.Contains(idle, parked) {
			t.Errorf("search %d has made another worker", i)
		}
		parked = idle[len(idle)-1]
	}
	tl.Close()
	if n := s.Pool.InUse(); n != before {
		t.Errorf("%d bytes are in use, want %d", n, before)
	}
}

// words are what is watched, with the instructions that store there.
var words = []struct {
	addr uint64
	rips []uint64
}{{busyWord, []uint64{loopCode, clearCode}}, {rareWord, []uint64{rareStore}}}

// askPast asks one random question.
func askPast(t *testing.T, tl *Timeline, h *past, r *rand.Rand) {
	t.Helper()
	from, n := r.IntN(len(h.at)), 1+r.IntN(5)
	before := from + r.IntN(len(h.at)-from)
	q := Search{From: h.at[from], Before: h.at[before], Most: n, Oldest: r.IntN(2) == 0}
	w := words[r.IntN(len(words))]
	rips := w.rips
	if r.IntN(2) == 0 {
		q.Watches = []mem.Watch{{Addr: w.addr, Len: 4, Kind: mem.WatchWrite}}
	} else {
		rips = [][]uint64{{loopCode}, {rareStore}, {clearCode}, {rareStore, callCode}}[r.IntN(4)]
		q.Exec = rips
	}
	want := h.matching(from, before, rips...)
	if q.Oldest {
		want = want[:min(n, len(want))]
	} else {
		want = want[max(0, len(want)-n):]
	}
	found, err := tl.Find(t.Context(), &q)
	if err != nil {
		t.Fatal(err)
	}
	var got []checkpoint.Position
	for i := range found {
		got = append(got, found[i].Pos)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%+v: %v, want %v", q, got, want)
	}
}

// moveBack goes back from a random position, to a watchpoint or a breakpoint.
func moveBack(t *testing.T, cur *Cursor, h *past, r *rand.Rand) {
	t.Helper()
	from := r.IntN(len(h.at))
	cur.SetWatches(nil)
	cur.SetBreakpoints(nil, nil)
	if err := cur.Seek(t.Context(), h.at[from]); err != nil {
		t.Fatal(err)
	}
	w := words[r.IntN(len(words))]
	rips := w.rips
	if r.IntN(2) == 0 {
		cur.SetWatches([]mem.Watch{{Addr: w.addr, Len: 4, Kind: mem.WatchWrite}})
	} else {
		rips = []uint64{clearCode, rareStore}
		cur.SetBreakpoints(rips, nil)
	}
	stop, err := cur.ReverseContinue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := h.at[0]
	if all := h.matching(0, from, rips...); len(all) > 0 {
		want = all[len(all)-1]
	} else if !stop.Edge {
		t.Errorf("from %s back: %+v, want the beginning", h.at[from], stop)
	}
	if got := cur.Position(); got != want {
		t.Fatalf("from %s back to %x: at %s, want %s", h.at[from], rips, got, want)
	}
}

// TestJoinTasks: joined tasks cover what the tasks did, in the same order, and none that was joined has more than a quarter of what
// comes before it.
func TestJoinTasks(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	joined := 0
	for range 500 {
		var tasks []task
		for id := range uint32(1 + rng.IntN(3)) {
			at := rng.Uint64N(100)
			for range rng.IntN(60) {
				k := task{lo: checkpoint.Position{Interval: id, Instr: at}, hi: checkpoint.Position{Interval: id, Instr: at + 1 + rng.Uint64N(mostJoined/4)}}
				if at = k.hi.Instr; rng.IntN(8) == 0 {
					at += rng.Uint64N(1000)
				}
				tasks = append(tasks, k)
			}
			if rng.IntN(2) == 0 {
				tasks = append(tasks, task{lo: checkpoint.Position{Interval: id, Instr: at}, hi: checkpoint.Position{Interval: id, Instr: ^uint64(0)}, fresh: true})
			}
		}
		if rng.IntN(2) == 0 {
			slices.Reverse(tasks)
		}
		before, rest := uint64(0), tasks
		for _, j := range joinTasks(slices.Clone(tasks)) {
			parts := 0
			for lo, hi := rest[0].lo, rest[0].hi; ; parts++ {
				if parts > 0 {
					lo, hi = earlier(lo, rest[parts].lo), later(hi, rest[parts].hi)
					if rest[parts].lo != rest[parts-1].hi && rest[parts].hi != rest[parts-1].lo {
						t.Fatalf("%v and %v are not neighbours", rest[parts-1], rest[parts])
					}
				}
				if lo == j.lo && hi == j.hi {
					break
				}
			}
			parts++
			if parts > 1 {
				joined++
				if j.fresh || j.size() > before/4 || j.size() > mostJoined {
					t.Fatalf("%d instructions are one task behind %d", j.size(), before)
				}
			}
			if rest = rest[parts:]; !j.fresh {
				before += j.size()
			}
		}
		if len(rest) != 0 {
			t.Fatalf("%d tasks are left", len(rest))
		}
	}
	if joined == 0 {
		t.Error("none was joined")
	}
}

// TestNearFirst: what nearFirst takes from the end of ground that no segment covers begins at snapshots, is a quarter of that at most,
// and together with the rest of it is what there was.
func TestNearFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	at := func(instr uint64) checkpoint.Position { return checkpoint.Position{Interval: 1, Instr: instr} }
	all := 0
	for range 500 {
		lo, size := rng.Uint64N(1000), 1+rng.Uint64N(100_000)
		end := at(lo + size)
		x := &index{spacing: 100, known: map[uint32]*intervalIndex{}}
		l := x.of(1)
		l.end = &end
		for i := uint64(0); i < end.Instr; i += 1 + rng.Uint64N(300) {
			l.snapshots = append(l.snapshots, &Snapshot{Pos: at(i)})
		}
		tasks := []task{{lo: at(lo), hi: at(^uint64(0)), fresh: true}, {lo: checkpoint.Position{}, hi: checkpoint.Position{Instr: 9}}}
		if rng.IntN(2) == 0 {
			tasks[0].hi = end
		}
		got := x.nearFirst(slices.Clone(tasks))
		n := len(got) - len(tasks)
		if got[n+1] != tasks[1] || got[n].lo != tasks[0].lo || !got[n].fresh {
			t.Fatalf("%v became %v", tasks, got)
		}
		if n == 0 && got[0] != tasks[0] {
			t.Fatalf("%v became %v, which is all", tasks[0], got[0])
		}
		hi := end
		for _, k := range got[:n] {
			if k.hi != hi || k.fresh || !x.has(k.lo) {
				t.Fatalf("%v is not what goes from a snapshot to %s", k, hi)
			}
			hi = k.lo
		}
		near := end.Instr - hi.Instr
		if n > 0 && got[n].hi != hi || near > size/4 || near > nearSpacings*x.spacing {
			t.Fatalf("%d of %d instructions first, up to %s; then %v", near, size, hi, got[n])
		}
		all += n
	}
	if all < 1000 {
		t.Errorf("only %d tasks are for what is near", all)
	}
}
