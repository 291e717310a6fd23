package bench

import (
	"context"
	"debug/elf"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/dwarf/agentexpr"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/x86"
	"vplay/tests/internal/tool"
)

// BenchmarkLatency measures how long a debugger waits while it goes backward in
// a recording of 10^9 instructions (tests/guest/long.c; -turns 100000000: of 10^10), with the targets of
// design.md beside each figure. Each sub-benchmark is one command; what they
// share is prepared once. Run it with -benchtime 1x.

var turnsFlag = flag.Uint64("turns", 10_000_000, "`N` turns of BenchmarkLatency's program, of 100 instructions each")

// longRun is the recording that latencies are measured on.
type longRun struct {
	dir, path, bin string
	symbols        map[string]uint64
}

// long records tests/guest/long.c.
func long(b *testing.B) *longRun {
	b.Helper()
	r := &longRun{dir: b.TempDir(), symbols: map[string]uint64{}}
	r.bin, r.path = filepath.Join(r.dir, "long"), filepath.Join(r.dir, "long.vplay")
	run(b, "gcc", "-O1", "-g", "-static", fmt.Sprintf("-DTURNS=%d", *turnsFlag), "-o", r.bin, filepath.Join("..", "guest", "long.c"))
	if err := exec.Command(vplayd(b), "record", "-q", "--no-slim", "--keep-seconds", "1000", "-o", r.path, "--", r.bin).Run(); err == nil {
		b.Fatal("the program did not crash")
	}
	f, err := elf.Open(r.bin)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range syms {
		r.symbols[s.Name] = s.Value
	}
	return r
}

// open returns a timeline over the recording that nothing is known of.
func (r *longRun) open(b *testing.B, memory int64) (*tool.Timeline, *replay.Session) {
	b.Helper()
	t := tool.OpenTimeline(b, r.path, memory)
	return t, t.Session
}

// budget is the --memory of the measurements.
const budget = 1 << 30

// toEnd moves to the crash and disarms everything.
func toEnd(b *testing.B, t *tool.Timeline) {
	b.Helper()
	t.SetBreakpoints(nil, nil)
	t.SetWatches(nil)
	if _, err := t.ToEnd(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// reverse runs reverse-continue from the crash and returns how long it took.
func reverse(b *testing.B, t *tool.Timeline, want replay.Reason) time.Duration {
	b.Helper()
	start, cpu := time.Now(), cpuTime()
	s, err := t.ReverseContinue(context.Background())
	took := time.Since(start)
	b.Logf("%v, %v of CPU time", took, cpuTime()-cpu)
	if err != nil || s.Reason != want {
		b.Fatalf("reverse-continue: %+v, %v; want reason %d", s, err, want)
	}
	return took
}

// turnIs is the condition of a breakpoint on hot: its first argument is n.
func turnIs(n uint64) func(*replay.Machine) bool {
	return func(m *replay.Machine) bool { return m.CPU.R[7] == n }
}

// turnIsCode is the same as an agent expression, as gdb sends it: $rdi == n.
func turnIsCode(n uint64) []byte {
	var b agentexpr.Builder
	b.Register(5)
	b.Number(n)
	b.Op(agentexpr.Equal)
	b.Op(agentexpr.End)
	return b.Code
}

// latencies are the measurements, in the order in which they are made; each
// begins at the crash.
var latencies = []struct {
	name string
	run  func(b *testing.B, r *longRun, t *tool.Timeline) time.Duration
}{
	{"watch-once-ms", func(b *testing.B, r *longRun, t *tool.Timeline) time.Duration {
		t.SetWatches([]mem.Watch{{Addr: r.symbols["once"], Len: 8, Kind: mem.WatchWrite}})
		return reverse(b, t, replay.StopWatch)
	}},
	{"watch-once-on-a-busy-page-ms", func(b *testing.B, r *longRun, t *tool.Timeline) time.Duration {
		t.SetWatches([]mem.Watch{{Addr: r.symbols["page"] + 8, Len: 8, Kind: mem.WatchWrite}})
		return reverse(b, t, replay.StopWatch)
	}},
	{"break-never-hit-ms", func(b *testing.B, r *longRun, t *tool.Timeline) time.Duration {
		t.SetBreakpoints([]uint64{r.symbols["never"]}, nil)
		return reverse(b, t, replay.StopLimit)
	}},
	{"break-hit-each-turn-ms", func(b *testing.B, r *longRun, t *tool.Timeline) time.Duration {
		t.SetBreakpoints([]uint64{r.symbols["hot"]}, nil)
		return reverse(b, t, replay.StopBreak)
	}},
	{"condition-met-once-ms", func(b *testing.B, r *longRun, t *tool.Timeline) time.Duration {
		t.SetBreakpoints([]uint64{r.symbols["hot"]}, turnIs(*turnsFlag/100))
		return reverse(b, t, replay.StopBreak)
	}},
	{"condition-of-gdb-met-once-ms", func(b *testing.B, r *longRun, t *tool.Timeline) time.Duration {
		n, hot := *turnsFlag/100, r.symbols["hot"]
		t.SetBreakpoints([]uint64{hot}, turnIs(n))
		t.SetConditions(&x86.Conditions{At: map[uint64][][]byte{hot: {turnIsCode(n)}}})
		return reverse(b, t, replay.StopBreak)
	}},
	{"last-write-ms", func(b *testing.B, r *longRun, t *tool.Timeline) time.Duration {
		start := time.Now()
		_, ok, err := t.LastAccess(context.Background(), mem.Watch{Addr: r.symbols["once"], Len: 8, Kind: mem.WatchWrite}, t.Position())
		if err != nil || !ok {
			b.Fatal(ok, err)
		}
		return time.Since(start)
	}},
	{"last-write-busy-ms", func(b *testing.B, r *longRun, t *tool.Timeline) time.Duration {
		start := time.Now()
		_, ok, err := t.LastAccess(context.Background(), mem.Watch{Addr: r.symbols["page"], Len: 8, Kind: mem.WatchWrite}, t.Position())
		if err != nil || !ok {
			b.Fatal(ok, err)
		}
		return time.Since(start)
	}},
}

// BenchmarkLatency is described at the head of the file.
func BenchmarkLatency(b *testing.B) {
	r := long(b)
	b.Run("moves", func(b *testing.B) { benchMoves(b, r) })
	b.Run("steps", func(b *testing.B) { benchSteps(b, r) })
	b.Run("watches", func(b *testing.B) { benchWatches(b, r) })
	b.Run("cores", func(b *testing.B) { benchCores(b, r) })
	b.Run("prompt", func(b *testing.B) { benchPrompt(b, r) })
	b.Run("interrupt", func(b *testing.B) { benchInterrupt(b, r) })
}

// benchMoves builds the index and then takes the latencies.
func benchMoves(b *testing.B, r *longRun) {
	best := make([]time.Duration, len(latencies))
	for i := range best {
		best[i] = time.Hour
	}
	for b.Loop() {
		t, s := r.open(b, budget)
		start := time.Now()
		if err := t.BuildIndex(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds()*1e3, "index-ms")
		b.ReportMetric(float64(t.Progress().Instr)/1e6, "Minsn")
		for i, l := range latencies {
			toEnd(b, t)
			best[i] = min(best[i], l.run(b, r, t))
		}
		b.ReportMetric(float64(s.Pool.InUse())/(1<<20), "guest-MiB")
		b.ReportMetric(rss(), "RSS-MiB")
	}
	for i, l := range latencies {
		b.ReportMetric(best[i].Seconds()*1e3, l.name)
	}
}

// rss is the process's resident memory in MiB, 0 where /proc does not tell.
func rss() float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	return float64(abi.ProcStatus(text).Number("VmRSS")) / 1024
}

// cpuTime is the process's CPU time, 0 where /proc does not tell.
func cpuTime() time.Duration {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	s, _ := abi.ParseProcStat(text)
	return s.CPU()
}

// benchSteps takes chains of reverse-stepi at random places: the first of a chain
// makes the place warm, the others are measured. Places of the first kind are no further from the start of their interval than
// the crash is from that of the last, reach-Minsn, which is another distance in each recording. Those of the second kind are
// anywhere, so that their figures can be compared from one recording to the next; the seek to the place has a figure, too.
func benchSteps(b *testing.B, r *longRun) {
	ctx := context.Background()
	t, _ := r.open(b, budget)
	if err := t.BuildIndex(ctx); err != nil {
		b.Fatal(err)
	}
	toEnd(b, t)
	rng := rand.New(rand.NewPCG(1, 2))
	end := t.Position()
	var first, warm []time.Duration
	for b.Loop() {
		for range 50 {
			p := checkpoint.Position{Interval: t.Intervals()[rng.IntN(len(t.Intervals()))], Instr: rng.Uint64N(end.Instr)}
			if err := t.Seek(ctx, p); err != nil {
				b.Fatal(err)
			}
			for i := range 400 {
				start := time.Now()
				if _, err := t.StepBack(ctx); err != nil {
					b.Fatal(err)
				}
				if took := time.Since(start); i == 0 {
					first = append(first, took)
				} else {
					warm = append(warm, took)
				}
			}
		}
	}
	report(b, first, "first-step")
	report(b, warm, "warm-step")
	b.ReportMetric(float64(end.Instr)/1e6, "reach-Minsn")
	stepsAnywhere(b, r)
}

// stepsAnywhere is benchSteps for places that are spread evenly over the whole recording, which a timeline goes to that
// has the index and nothing else.
func stepsAnywhere(b *testing.B, r *longRun) {
	ctx := context.Background()
	t, _ := r.open(b, budget)
	if err := t.BuildIndex(ctx); err != nil {
		b.Fatal(err)
	}
	all := t.Segments()
	rng := rand.New(rand.NewPCG(3, 4))
	var first, seek []time.Duration
	for range 200 {
		s := all[rng.IntN(len(all))]
		p := checkpoint.Position{Interval: s.From.Interval, Instr: s.From.Instr + 2 + rng.Uint64N(s.To.Instr-s.From.Instr)}
		start := time.Now()
		if err := t.Seek(ctx, p); err != nil {
			b.Fatal(err)
		}
		seek = append(seek, time.Since(start))
		start = time.Now()
		if _, err := t.StepBack(ctx); err != nil {
			b.Fatal(err)
		}
		first = append(first, time.Since(start))
	}
	report(b, seek, "seek-anywhere")
	report(b, first, "first-step-anywhere")
}

// report reports the median, the 99th of a hundred and the largest.
func report(b *testing.B, took []time.Duration, name string) {
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	b.ReportMetric(ms(took[len(took)/2]), name+"-p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), name+"-p99-ms")
	b.ReportMetric(ms(took[len(took)-1]), name+"-max-ms")
}

// benchWatches compares a search through everything with and without 1000
// watchpoints on heap blocks that the program goes on using around them.
func benchWatches(b *testing.B, r *longRun) {
	t, _ := r.open(b, budget)
	if err := t.BuildIndex(context.Background()); err != nil {
		b.Fatal(err)
	}
	var ws []mem.Watch
	for i := range uint64(1000) {
		ws = append(ws, mem.Watch{Addr: r.symbols["page"] + 16 + 3*i, Len: 1 + i%3, Kind: mem.WatchWrite})
	}
	none := func(*replay.Machine) bool { return false }
	plain, watched := time.Hour, time.Hour
	for b.Loop() {
		for range 5 { // a single run says little
			for _, w := range [][]mem.Watch{nil, ws} {
				toEnd(b, t)
				t.SetWatches(w)
				t.SetBreakpoints([]uint64{r.symbols["hot"]}, none)
				took := reverse(b, t, replay.StopLimit)
				if w == nil {
					plain = min(plain, took)
				} else {
					watched = min(watched, took)
				}
			}
		}
	}
	b.ReportMetric(plain.Seconds()*1e3, "none-ms")
	b.ReportMetric(watched.Seconds()*1e3, "1000-watches-ms")
	b.ReportMetric((watched.Seconds()/plain.Seconds()-1)*100, "slower-%")
}

// benchCores compares a search through everything on one core and on two.
func benchCores(b *testing.B, r *longRun) {
	t, _ := r.open(b, budget)
	if err := t.BuildIndex(context.Background()); err != nil {
		b.Fatal(err)
	}
	none := func(*replay.Machine) bool { return false }
	best := [2]time.Duration{time.Hour, time.Hour}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for b.Loop() {
		for i := range best {
			runtime.GOMAXPROCS(i + 1)
			toEnd(b, t)
			t.SetBreakpoints([]uint64{r.symbols["hot"]}, none)
			best[i] = min(best[i], reverse(b, t, replay.StopLimit))
		}
	}
	b.ReportMetric(best[0].Seconds()*1e3, "one-core-ms")
	b.ReportMetric(best[1].Seconds()*1e3, "two-cores-ms")
	b.ReportMetric(best[0].Seconds()/best[1].Seconds(), "speed-up-x")
}

// benchPrompt measures how long gdb takes from its start to a backtrace at the
// crash, serve included.
func benchPrompt(b *testing.B, r *longRun) {
	best := time.Hour
	for b.Loop() {
		start := time.Now()
		out, err := exec.Command(vplayd(b), "replay", "--symbols", r.dir, r.path, "--", "-nx", "-batch", "-ex", "bt").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "main") {
			b.Fatalf("%v\n%s", err, out)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(best.Seconds()*1e3, "ms-to-backtrace")
}

// benchInterrupt interrupts movements that would take long and measures how soon
// they end.
func benchInterrupt(b *testing.B, r *longRun) {
	worst := time.Duration(0)
	for b.Loop() {
		for i := range 20 {
			t, _ := r.open(b, budget)
			t.SetBreakpoints([]uint64{r.symbols["never"]}, nil)
			ctx, cancel := context.WithCancel(context.Background())
			asked := make(chan time.Time, 1)
			time.AfterFunc(time.Duration(20+37*i)*time.Millisecond, func() {
				asked <- time.Now()
				cancel()
			})
			if i%2 == 0 {
				_, _ = t.Continue(ctx)
			} else {
				_, _, _ = t.LastAccess(ctx, mem.Watch{Addr: r.symbols["once"], Len: 8, Kind: mem.WatchRead}, t.End())
			}
			worst = max(worst, time.Since(<-asked))
		}
	}
	b.ReportMetric(worst.Seconds()*1e3, "worst-ms")
}
