package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay/debug"
	"vplay/replay/debug/api"
	"vplay/replay/x86"
	"vplay/tests/internal/tool"
)

var (
	crewMoves     = flag.Int("crewmoves", 600, "random moves of TestCrew, for each recording; a tenth of them by gdb's protocol")
	crewRecording = flag.String("crewrecording", "", "a recording that TestCrew moves in, instead of making some")
	crewSeed      = flag.Uint64("crewseed", 1, "the seed of TestCrew's moves")
)

// What tests/guest/crew.c has, in all.
const crewThreads, crewProcesses = 8, 3

// view is what a process looks like at one moment.
type view struct {
	pos     checkpoint.Position
	tid     int    // of the thread that runs; 0 where it has just ended
	rip     uint64 // its
	between bool   // two iterations of a REP string instruction: breakpoints on that were passed before
	threads []threadView
}

// threadView is what a thread looks like.
type threadView struct {
	tid    int
	inCall bool
	core   uint64 // digest of the general registers and rip
	all    uint64 // digest of all registers
}

func (l *view) thread(tid int) *threadView {
	for i := range l.threads {
		if l.threads[i].tid == tid {
			return &l.threads[i]
		}
	}
	return nil
}

var crewHash = maphash.MakeSeed()

// coreDigest is a digest of the general registers and rip.
func coreDigest(gpr [16]uint64, rip uint64) uint64 {
	return maphash.Comparable(crewHash, [2]any{gpr, rip})
}

// crew is a recording of several processes that is open for a debugger.
type crew struct {
	t testing.TB
	*debug.Inferiors
}

func openCrew(t testing.TB, path string) *crew {
	t.Helper()
	d, err := debug.Open(tool.OpenSession(t, path), 64<<20, loader.NewSymbols(nil, false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	v, err := d.NewInferiors()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return &crew{t, v}
}

// view returns what the selected process looks like.
func (c *crew) view() view {
	c.t.Helper()
	l := view{pos: c.position()}
	for _, s := range c.ThreadStates() {
		r, err := c.Registers(s.TID)
		if err != nil {
			c.t.Fatal(err)
		}
		l.threads = append(l.threads, threadView{s.TID, s.InCall, coreDigest(r.GPR, r.RIP), maphash.Comparable(crewHash, *r)})
		if s.Runs {
			l.tid, l.rip = s.TID, r.RIP
		}
	}
	return l
}

func (c *crew) position() checkpoint.Position {
	c.t.Helper()
	p, err := debug.ParsePosition(strings.TrimSpace(c.monitor("when")))
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c *crew) monitor(line string) string {
	c.t.Helper()
	var out bytes.Buffer
	if err := c.Monitor(context.Background(), line, &out); err != nil {
		c.t.Fatalf("monitor %s: %v", line, err)
	}
	return out.String()
}

func (c *crew) choose(pid int) {
	c.t.Helper()
	if err := c.Select(pid); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crew) resume(r api.Resume) api.Stop {
	c.t.Helper()
	stop, err := c.Resume(context.Background(), r)
	if err != nil {
		c.t.Fatalf("%+v: %v", r, err)
	}
	return stop
}

// crewHistory is the whole past of one process, found by single steps from its beginning.
type crewHistory struct {
	*crew // that made it, with the process selected
	all   []view
	many  []int // the moments at which it has several threads
	tids  []int // of all threads that it ever had
}

func newCrewHistory(t testing.TB, path string, pid int) *crewHistory {
	t.Helper()
	h := &crewHistory{crew: openCrew(t, path)}
	h.choose(pid)
	h.scan(func(api.Stop) {
		l := h.view()
		if n := len(h.all); n > 0 {
			was := &h.all[n-1]
			l.between = was.pos.Instr == l.pos.Instr && was.tid == l.tid && was.rip == l.rip && h.isRep(l.rip)
		}
		if len(l.threads) > 1 {
			h.many = append(h.many, len(h.all))
		}
		h.all = append(h.all, l)
		for i := range l.threads {
			if tid := l.threads[i].tid; !slices.Contains(h.tids, tid) {
				h.tids = append(h.tids, tid)
			}
		}
	})
	return h
}

// isRep reports whether a string instruction with REP stands at an address.
func (h *crewHistory) isRep(a uint64) bool {
	h.t.Helper()
	var code [15]byte
	n, _ := h.ReadMemory(a, code[:]) // what cannot be read is none
	in, err := x86.DecodeInst(code[:n], a, &x86.CPUIdentity{})
	return err == nil && in.Flags&(x86.InstRep|x86.InstRepne) != 0 && x86.Rows()[in.Row].Attr("rep")
}

// scan calls f at each moment from the beginning on, with the stop that led there.
func (h *crewHistory) scan(f func(api.Stop)) {
	h.t.Helper()
	h.monitor("seek begin")
	f(api.Stop{})
	for {
		stop := h.resume(api.Resume{Kind: api.Step})
		if stop.Kind == api.StopReplayEnd {
			return
		}
		f(stop)
	}
}

// touched returns for each moment whether the step to it touched the watched bytes.
func (h *crewHistory) touched(w api.Breakpoint) []bool {
	h.t.Helper()
	if err := h.SetBreakpoint(w); err != nil {
		h.t.Fatal(err)
	}
	var hit []bool
	h.scan(func(s api.Stop) {
		hit = append(hit, s.Kind == api.StopWatchWrite || s.Kind == api.StopWatchRead || s.Kind == api.StopWatchAccess)
	})
	if err := h.ClearBreakpoint(w); err != nil {
		h.t.Fatal(err)
	}
	return hit
}

// armed are the breakpoints of a process, and where they stop it.
type armed struct {
	list  []api.Breakpoint
	at    map[uint64]bool
	touch []bool // by moment; nil when nothing is watched
}

// stops reports whether a run of h stops at moment i.
func (a *armed) stops(h *crewHistory, i int, dir api.Direction) bool {
	if a.at[h.all[i].rip] && !h.all[i].between {
		return true
	}
	if dir == api.Backward {
		i++
	}
	return i < len(a.touch) && a.touch[i]
}

// crewDriver is how a debugger moves: by the methods of a target, or by packets.
type crewDriver interface {
	// choose makes a process the one that the next calls are about.
	choose(pid int)
	// check compares the process with what it must look like.
	check(what string, want *view)
	view() view
	position() checkpoint.Position
	// move resumes the process, or all.
	move(r api.Resume)
	seek(p checkpoint.Position)
	set(b api.Breakpoint)
	clear(b api.Breakpoint)
}

func (c *crew) check(what string, want *view) {
	c.t.Helper()
	got := c.view()
	if got.pos != want.pos || got.tid != want.tid || len(got.threads) != len(want.threads) {
		c.t.Fatalf("%s: at %s in thread %d of %d, want %s in thread %d of %d", what, got.pos, got.tid, len(got.threads), want.pos, want.tid, len(want.threads))
	}
	for i := range got.threads {
		if got.threads[i] != want.threads[i] {
			c.t.Fatalf("%s: at %s thread %d is %+v, want %+v", what, got.pos, got.threads[i].tid, got.threads[i], want.threads[i])
		}
	}
}

func (c *crew) move(r api.Resume) { c.resume(r) }

func (c *crew) seek(p checkpoint.Position) {
	c.t.Helper()
	if got := c.monitor("seek " + p.String()); strings.TrimSpace(got) != p.String() {
		c.t.Fatalf("seek %s: %s", p, got)
	}
}

func (c *crew) set(b api.Breakpoint)   { c.must(c.SetBreakpoint(b)) }
func (c *crew) clear(b api.Breakpoint) { c.must(c.ClearBreakpoint(b)) }

func (c *crew) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// stack returns the stack pointer of the thread that runs.
func (c *crew) stack() uint64 {
	c.t.Helper()
	r, err := c.Registers(c.view().tid)
	c.must(err)
	return r.GPR[x86.RSP]
}

// unknown is the moment of a process that was taken along when another one was moved, until
// somebody looks.
const unknown = -1

// crewMover moves about at random. It knows where each process must be.
type crewMover struct {
	t       testing.TB
	r       *rand.Rand
	driver  crewDriver
	pids    []int
	history map[int]*crewHistory
	armed   map[int]*armed
	at      map[int]int // the moment of each process, or unknown
	// between holds the processes that stand between at and the next moment: inside a system
	// call, where no step leads, but where going along with another process does.
	between map[int]bool

	along  map[int]string                 // with which movement a process of an unknown moment went along
	others map[string]checkpoint.Position // by along and process: where it was found then
	inside map[string]view                // by process and position: what it looks like between moments
	counts map[string]int                 // of each kind of move
}

// newCrewMover returns a mover with every process at its end.
func newCrewMover(t testing.TB, d crewDriver, pids []int, history map[int]*crewHistory) *crewMover {
	m := &crewMover{
		t: t, r: rand.New(rand.NewPCG(*crewSeed, 8)), driver: d, pids: pids, history: history,
		armed: map[int]*armed{}, at: map[int]int{}, between: map[int]bool{}, along: map[int]string{},
		others: map[string]checkpoint.Position{}, inside: map[string]view{}, counts: map[string]int{},
	}
	for _, pid := range pids {
		m.armed[pid] = &armed{}
		m.at[pid] = len(history[pid].all) - 1
	}
	for _, pid := range pids {
		m.choose(pid)
		m.check("at first", pid)
	}
	return m
}

// choose selects a process and finds out where it is, if it went along with another one.
func (m *crewMover) choose(pid int) {
	m.t.Helper()
	m.driver.choose(pid)
	if m.at[pid] != unknown {
		return
	}
	p := m.driver.position()
	key := fmt.Sprint(pid, " with ", m.along[pid])
	if was, ok := m.others[key]; ok && was != p {
		m.t.Fatalf("process %s is at %s, and was at %s before", key, p, was)
	}
	m.others[key] = p
	m.at[pid], m.between[pid] = m.history[pid].find(p)
}

// find returns the last moment that is not behind p, and whether p lies behind it.
func (h *crewHistory) find(p checkpoint.Position) (at int, isBehind bool) {
	at, found := slices.BinarySearchFunc(h.all, p, func(l view, p checkpoint.Position) int { return l.pos.Compare(p) })
	if found {
		return at, false
	}
	return at - 1, true
}

// check compares a process with its history.
func (m *crewMover) check(what string, pid int) {
	m.t.Helper()
	want := m.history[pid].all[m.at[pid]]
	if m.between[pid] {
		now := m.driver.view()
		key := fmt.Sprint(pid, now.pos)
		was, ok := m.inside[key]
		if m.inside[key] = now; !ok {
			return
		}
		want = was
	}
	m.driver.check(fmt.Sprintf("process %d, %s", pid, what), &want)
}

// arm replaces the breakpoints of a process by others: at code that is executed, some of it
// often, and now and then a watch on bytes of a stack.
func (m *crewMover) arm(pid int) {
	m.t.Helper()
	h := m.history[pid]
	m.choose(pid)
	for _, b := range m.armed[pid].list {
		m.driver.clear(b)
	}
	a := &armed{at: map[uint64]bool{}}
	m.armed[pid] = a
	for range m.r.IntN(4) {
		if rip := h.all[m.r.IntN(len(h.all))].rip; !a.at[rip] {
			a.at[rip] = true
			a.list = append(a.list, api.Breakpoint{Kind: api.BreakSoftware, Addr: rip, Len: 1})
		}
	}
	if m.r.IntN(2) == 0 {
		h.seek(h.all[m.r.IntN(len(h.all))].pos)
		w := api.Breakpoint{Kind: api.WatchWrite + api.BreakpointKind(m.r.IntN(3)), Addr: h.stack() - uint64(m.r.IntN(64)), Len: 1 + uint64(m.r.IntN(8))}
		a.touch = h.touched(w)
		a.list = append(a.list, w)
	}
	for _, b := range a.list {
		m.driver.set(b)
	}
}

// move makes a random move of a random process and looks at all of its threads.
func (m *crewMover) move() {
	m.t.Helper()
	pid := m.pids[m.r.IntN(len(m.pids))]
	m.choose(pid)
	m.check("chosen", pid)
	h := m.history[pid]
	if m.r.IntN(5) == 0 {
		m.at[pid], m.between[pid] = m.r.IntN(len(h.all)), false
		if m.r.IntN(4) > 0 { // where there are several threads, which is late
			m.at[pid] = h.many[m.r.IntN(len(h.many))]
		}
		was, to := m.driver.position(), h.all[m.at[pid]].pos
		m.driver.seek(to)
		m.moved("seek", pid, was != to) // where it stands already it is not moved, nor are others
		return
	}
	r := api.Resume{Dir: api.Direction(m.r.IntN(2)), All: m.r.IntN(2) == 0}
	what := []string{"continue", "reverse-continue"}[r.Dir]
	now := m.driver.view()
	if m.r.IntN(4) > 0 && now.tid != 0 {
		what = []string{"stepi", "reverse-stepi"}[r.Dir]
		r.Kind, r.TID = api.Step, now.tid
		if n := len(now.threads); n > 1 && m.r.IntN(2) == 0 && !m.between[pid] {
			other := slices.IndexFunc(now.threads, func(t threadView) bool { return t.tid == now.tid }) + 1 + m.r.IntN(n-1)
			r.TID = now.threads[other%n].tid
			what += " of another thread"
		}
	}
	want := m.run(pid, m.at[pid], now.tid, r)
	if m.between[pid] {
		want = m.runFromInside(pid, now.tid, r)
	}
	m.driver.move(r)
	p := m.driver.position()
	i := slices.IndexFunc(want, func(i int) bool { return h.all[i].pos == p })
	if i < 0 {
		m.t.Fatalf("process %d, %s from %s (%+v, breakpoints %+v): at %s, want %s", pid, what, now.pos, r, m.armed[pid].list, p, h.all[want[0]].pos)
	}
	m.at[pid], m.between[pid] = want[i], false
	m.moved(what, pid, r.All)
}

// moved notes that a process was moved, with all the others or alone, and looks at it.
func (m *crewMover) moved(what string, pid int, all bool) {
	m.t.Helper()
	m.check(what, pid)
	m.counts[what]++
	if !all {
		return
	}
	for _, other := range m.pids {
		if other != pid {
			m.at[other] = unknown
			m.along[other] = fmt.Sprint(pid, " at ", m.history[pid].all[m.at[pid]].pos)
		}
	}
}

// run returns the moments at which a resume of a process may stop. It begins at moment from,
// with the thread tid running. That is
// one, unless a breakpoint stands where a thread goes on that has its step still to do: what
// comes first there is not said.
func (m *crewMover) run(pid, from, tid int, r api.Resume) []int {
	h, a := m.history[pid], m.armed[pid]
	step, last := 1, len(h.all)-1
	if r.Dir == api.Backward {
		step, last = -1, 0
	}
	if from == last {
		return []int{last}
	}
	// The thread that runs takes its step. Others have one to do when their turn comes,
	// but those in a call, which then returns, and those that go back.
	hasStep := false
	if r.Kind == api.Step && tid == r.TID {
		from += step
		now := &h.all[from]
		isWatched := r.Dir == api.Forward && from < len(a.touch) && a.touch[from]
		if from == last || now.tid == r.TID || now.thread(r.TID) == nil || a.at[now.rip] && !now.between || isWatched {
			return []int{from}
		}
	} else if r.Kind == api.Step {
		hasStep = r.Dir == api.Forward && !h.all[from].thread(r.TID).inCall
	}
	for i := from + step; ; i += step {
		stops := i == last || a.stops(h, i, r.Dir)
		isTurn := r.Kind == api.Step && h.all[i].tid == r.TID
		switch {
		case isTurn && hasStep && i != last:
			more := m.run(pid, i, r.TID, r)
			if stops {
				more = append(more, i)
			}
			return more
		case isTurn, stops:
			return []int{i}
		}
	}
}

// runFromInside is run from between two moments. Whether a run stops there at a breakpoint behind
// the call, or at a watch of what the call writes, is not said.
func (m *crewMover) runFromInside(pid, tid int, r api.Resume) []int {
	from, first := m.at[pid], m.at[pid]+1
	if r.Dir == api.Backward {
		from, first = first, from
	}
	want := m.run(pid, from, tid, r)
	if r.Kind == api.Continue {
		want = append(append(want, first), m.run(pid, first, tid, r)...)
	}
	if a := m.armed[pid]; first < len(a.touch) && a.touch[first] { // the call may have written before
		a.touch[first] = false
		want = append(want, m.run(pid, from, tid, r)...)
		a.touch[first] = true
	}
	return want
}

// TestCrew moves at random in recordings of three processes with eight threads: the
// registers of all threads are at each position what single steps from the beginning
// have shown there, and each movement ends where they say. -crewmoves and -crewseed give
// more moves and others.
func TestCrew(t *testing.T) {
	t.Parallel()
	if *crewRecording != "" {
		crewWalk(t, *crewRecording)
		return
	}
	for _, c := range []struct {
		name string
		args []string
	}{{"pipes", nil}, {"shared memory", []string{"shared"}}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := compile(t, "crew", "-O0", "-static", "-pthread")
			g.args = c.args
			crewWalk(t, g.record(t, "--keep", "always", "--no-slim", "--force-every", "3"))
		})
	}
}

// TestStepPastManyStops steps a thread that does not run back to where it ran last, in ground
// that no search has been through. A breakpoint that was hit more than a thousand times before that
// does not stop it further back.
func TestStepPastManyStops(t *testing.T) {
	t.Parallel()
	g := compile(t, "crew", "-O0", "-static", "-pthread")
	rec := g.record(t, "--keep", "always", "--no-slim", "--interval", "10s")
	c := openCrew(t, rec)
	pid := c.PIDs()[0]
	h := newCrewHistory(t, rec, pid)
	count := map[uint64]int{}
	often := h.all[0].rip
	for i := range h.all {
		rip := h.all[i].rip
		if count[rip]++; count[rip] > count[often] {
			often = rip
		}
	}
	if count[often] < 1100 {
		t.Fatalf("no place is executed more than %d times", count[often])
	}
	from, to := h.stepBackBefore(often)
	h.choose(pid)
	c.set(api.Breakpoint{Kind: api.BreakSoftware, Addr: often, Len: 1})
	c.seek(h.all[from].pos)
	c.move(api.Resume{Dir: api.Backward, Kind: api.Step, TID: h.all[to].tid})
	c.check("reverse-stepi of another thread", &h.all[to])
}

// stepBackBefore returns two moments, of the second of which a thread runs, and not again up
// to the first one; nor is the instruction at rip executed in between.
func (h *crewHistory) stepBackBefore(rip uint64) (from, to int) {
	h.t.Helper()
	for to = len(h.all) - 2; to > 0; to-- {
		tid, next := h.all[to].tid, h.all[to+1]
		if next.tid != tid && next.rip != rip && next.thread(tid) != nil && h.all[to].rip != rip {
			return to + 1, to
		}
	}
	h.t.Fatal("no thread gives up its turn")
	return 0, 0
}

// crewWalk moves about in a recording of the guest.
func crewWalk(t *testing.T, rec string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() && *crewRecording == "" {
			keepRecording(t, rec)
		}
	})
	moves := openCrew(t, rec)
	history := map[int]*crewHistory{}
	threads := 0
	for _, pid := range moves.PIDs() {
		h := newCrewHistory(t, rec, pid)
		history[pid] = h
		threads += len(h.tids)
		t.Logf("process %d: %d moments, %d threads", pid, len(h.all), len(h.tids))
	}
	if len(history) != crewProcesses || threads != crewThreads {
		t.Fatalf("%d processes with %d threads, want %d with %d", len(history), threads, crewProcesses, crewThreads)
	}
	newCrewMover(t, moves, moves.PIDs(), history).walk(*crewMoves)
	byPackets := dialRSP(t, serve(t, rec), moves.PIDs())
	newCrewMover(t, byPackets, moves.PIDs(), history).walk(*crewMoves / 10)
}

// keepRecording copies a recording to where it outlives the test, for -crewrecording.
func keepRecording(t *testing.T, rec string) {
	t.Helper()
	b, err := os.ReadFile(rec)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp("", "crew-*.vplay")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	t.Logf("the recording: -crewrecording %s", f.Name())
}

// walk makes n moves.
func (m *crewMover) walk(n int) {
	m.t.Helper()
	for i := range n {
		if i%100 == 0 {
			for _, pid := range m.pids {
				m.arm(pid)
			}
		}
		m.move()
	}
	m.t.Logf("seed %d, %d moves: %v", *crewSeed, n, m.counts)
}
