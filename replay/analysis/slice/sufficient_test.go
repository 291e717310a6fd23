package slice

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/analysis/controlflow"
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// The check that a slice is sufficient: its instructions alone give the value (shadow_test.go).

var (
	checkValues = flag.Int("values", 0, "how many random values TestSufficient checks; 0: a few")
	checkFiles  = flag.String("recordings", "", "recordings that it takes them from, a pattern; the demo's by default")
	checkLength = flag.Uint64("length", 500_000, "how many instructions from the start of an interval a position is at most")
	checkTrace  = flag.Bool("trace", false, "print the instructions that are executed of the slices")
	checkSeed   = flag.Uint64("seed", 1, "of the values")
)

const demo = "../../../cmd/vplayd/demo/weather.vplay"

func openTimeline(t testing.TB, path string) *replay.Timeline {
	t.Helper()
	_, tl := open(t, path)
	return tl
}

// open returns a session and a timeline of a recording.
func open(t testing.TB, path string) (*replay.Session, *replay.Timeline) {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	s, err := replay.NewSession(rec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.Engine = engines(t, false)
	tl, err := replay.NewTimeline(s, 512<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tl.Close)
	return s, tl
}

// TestSufficient re-computes random values by their slices alone.
func TestSufficient(t *testing.T) {
	files, n := []string{demo}, 8
	if *checkFiles != "" {
		files, _ = filepath.Glob(*checkFiles)
	}
	if *checkValues > 0 {
		n = *checkValues
	}
	for _, f := range files {
		tl := openTimeline(t, f)
		r := rand.New(rand.NewPCG(*checkSeed, 0))
		for i := range n {
			o := randomValue(t, tl, r)
			if *checkValues == 0 {
				o.Oldest = o.At.Interval // the demo's first interval is long
			}
			if err := recompute(t, tl, o, r); err != nil {
				t.Errorf("%s, value %d: %v", filepath.Base(f), i, err)
			}
		}
	}
}

// TestSufficientControl does the same for slices with control dependences. Each branch that is in one must go where it went, as what it
// compares is re-computed from the slice alone; and the slice has what it has without them.
func TestSufficientControl(t *testing.T) {
	files, n := []string{demo}, 4
	if *checkFiles != "" {
		files, _ = filepath.Glob(*checkFiles)
	}
	if *checkValues > 0 {
		n = *checkValues
	}
	for _, f := range files {
		s, tl := open(t, f)
		r := rand.New(rand.NewPCG(*checkSeed, 1))
		c, err := tl.NewCursor()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		m := c.Machine()
		code, err := controlflow.Collect(t.Context(), s, tl.Intervals(), controlflow.Options{Fetch: controlflow.Fetch(m.Mem), ID: m.CPU.ID}, nil)
		if err != nil {
			t.Fatal(err)
		}
		decisions := 0
		for i := range n {
			o := randomValue(t, tl, r)
			o.Oldest = o.At.Interval // such slices reach the beginning
			data, err := Of(t.Context(), tl, o)
			if err != nil {
				t.Fatal(err)
			}
			o.Controls, o.Here = code.Controls, 0
			all, err := recomputed(t, tl, o, r)
			if err != nil {
				t.Errorf("%s, value %d: %v", filepath.Base(f), i, err)
				continue
			}
			if all.Values < data.Values || all.Instances-all.Controls < data.Instances {
				t.Errorf("%s, value %d: %d values of %d instructions, without control dependences %d of %d", filepath.Base(f), i, all.Values, all.Instances-all.Controls, data.Values, data.Instances)
			}
			decisions += len(all.Decisions)
		}
		if decisions == 0 {
			t.Errorf("%s: no branch was followed", filepath.Base(f))
		}
	}
}

// randomValue chooses a position and something to explain there: a register, or memory that
// a register points to.
func randomValue(t *testing.T, tl *replay.Timeline, r *rand.Rand) (o Options) {
	c, err := tl.NewCursor()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ToEnd(t.Context()); err != nil {
		t.Fatal(err)
	}
	end := c.Position()
	ids := tl.Intervals()
	p := checkpoint.Position{Interval: ids[r.IntN(len(ids))]}
	if p.Interval != end.Interval {
		if err := c.Seek(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if end, err = intervalEnd(t, tl, p.Interval); err != nil {
			t.Fatal(err)
		}
	}
	if p.Instr = r.Uint64N(min(max(end.Instr, 2)-1, *checkLength)); end.Instr < *checkLength && r.IntN(2) == 0 {
		p.Instr = end.Instr - min(end.Instr, r.Uint64N(10_000)) // where the program says goodbye
	}
	if err := c.Seek(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	m := c.Machine()
	o = Options{At: c.Position(), TID: m.TID(), length: 300_000}
	reg := uint8(r.IntN(16))
	if reg == x86.RSP {
		reg = x86.RAX
	}
	o.Want = []Location{{Reg: reg, Len: 8}}
	if a := m.CPU.R[r.IntN(16)]; r.IntN(2) == 0 {
		var b [8]byte
		if n, _ := m.Mem.Peek(a, b[:]); n == 8 {
			o.Want = []Location{{IsMemory: true, Addr: a, Len: 8}}
		}
	}
	return o
}

func intervalEnd(t *testing.T, tl *replay.Timeline, id uint32) (checkpoint.Position, error) {
	tr, err := tl.NewTracing(nil)
	if err != nil {
		return checkpoint.Position{}, err
	}
	defer tr.Close()
	return tr.End(t.Context(), id)
}

// recompute executes the slice of a value alone, and compares.
func recompute(t *testing.T, tl *replay.Timeline, o Options, r *rand.Rand) error {
	_, err := recomputed(t, tl, o, r)
	return err
}

// recomputed is recompute, and returns the slice.
func recomputed(t *testing.T, tl *replay.Timeline, o Options, r *rand.Rand) (*Slice, error) {
	s := &shadow{saved: map[checkpoint.TID]x86.State{}, in: map[uint32][]instant{}, regs: map[checkpoint.TID]dataflow.RegSet{}, rand: r, prog: newProgram()}
	s.mem = &shadowMemory{bytes: map[uint64]byte{}, rand: r}
	var live []Location
	o.visit = func(i Instance) { s.in[i.Interval] = append(s.in[i.Interval], instant{i.Instr, i.Retires}) }
	o.start = func(w *walker) {
		w.mem.within(0, ^uint64(0), func(a, mask uint64) {
			for i := range uint64(64) {
				if mask>>i&1 != 0 {
					live = append(live, Location{IsMemory: true, Addr: a + i})
				}
			}
		})
		for tid, l := range w.regs {
			s.regs[tid] = l.live()
		}
	}
	sl, err := Of(t.Context(), tl, o)
	if err != nil {
		return nil, err
	}
	for _, l := range s.in {
		slices.Reverse(l)
	}
	what := fmt.Sprintf("%v at %s: %d of %d instructions, %d decisions, from %s", o.Want[0], o.At, sl.Instances, sl.Executed, len(sl.Decisions), sl.From)
	t.Log(what)
	tr, err := tl.NewTracing(nil)
	if err != nil {
		return nil, err
	}
	defer tr.Close()
	for id := sl.From.Interval; id <= o.At.Interval; id++ {
		from, to := checkpoint.Position{Interval: id}, o.At
		if id == sl.From.Interval {
			from = sl.From
		}
		if id < o.At.Interval {
			if to, err = tr.End(t.Context(), id); err != nil {
				return nil, err
			}
		}
		always := true
		err := tr.Run(t.Context(), replay.Stretch{From: from, To: to, Event: s.event, Begin: func(m *replay.Machine) { s.begin(m, live) }, Before: s.instruction, After: s.executed, Pending: &always, End: func(m *replay.Machine) {
			if id == o.At.Interval {
				err = s.compare(m, &o)
			}
		}})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return sl, nil
}

// begin gives the shadow what it needs of the start, the first time.
func (s *shadow) begin(m *replay.Machine, live []Location) {
	s.real, s.mem.code = m, m.Mem
	if s.cpu != nil {
		return
	}
	s.cpu = x86.New(s.mem, m.CPU.ID)
	s.tid = -1
	for _, l := range live {
		var b [1]byte
		m.Mem.Peek(l.Addr, b[:])
		s.mem.set(l.Addr, b[:])
	}
	s.state(m.TID())
}

// compare compares what is wanted with the recording.
func (s *shadow) compare(m *replay.Machine, o *Options) error {
	s.settle()
	if s.fault != "" {
		return fmt.Errorf("after %d: %s", s.ran, s.fault)
	}
	for _, l := range o.Want {
		if !l.IsMemory {
			if got, want := s.state(o.TID).R[l.Reg], m.CPU.R[l.Reg]; got != want {
				return fmt.Errorf("after %d: register %d is %#x, want %#x", s.ran, l.Reg, got, want)
			}
			continue
		}
		want := make([]byte, l.Len)
		m.Mem.Peek(l.Addr, want)
		for i, b := range want {
			if got := s.mem.get(l.Addr + uint64(i)); got != b {
				return fmt.Errorf("after %d: byte %d is %#x, want %#x", s.ran, i, got, b)
			}
		}
	}
	return nil
}
