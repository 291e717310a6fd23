package lockstep

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/x86"
	"vplay/tests/need"
)

var count = flag.Int("steps", 20_000, "instructions of each program to run")

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == recorder.LaunchVerb {
		fmt.Fprintln(os.Stderr, recorder.Launch(os.Args[2:]))
		os.Exit(126)
	}
	os.Exit(m.Run())
}

// record records a program and opens a session on it.
func record(t *testing.T, o recorder.Options) *replay.Session {
	t.Helper()
	need.Recorder(t)
	need.Program(t, o.Args[0])
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	o.Path, o.Keep, o.Files = filepath.Join(t.TempDir(), "out.vplay"), recorder.KeepAlways, []*os.File{null, null, null}
	res, err := recorder.Run(context.Background(), o)
	if err != nil || !res.Recorded {
		t.Fatalf("record %q: %v %s", o.Args, err, res.Reason)
	}
	rec, err := checkpoint.Open(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	s, err := replay.NewSession(rec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// exact fails the test unless res is without a difference, and says what was
// compared.
func exact(t *testing.T, res Result, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if d := res.Difference; d != nil {
		t.Errorf("%v\nbefore: %v", d, d.Before)
	}
	if res.Err != nil {
		t.Errorf("at %v: %v", res.To, res.Err)
	}
	t.Logf("%d steps, %d by the emulator alone, %d approximate, %.0f k/s", res.Steps, res.Alone, res.Approximate, float64(res.Steps)/1e3/res.Took.Seconds())
}

// guest compiles testdata/guest.c.
func guest(t *testing.T) string {
	t.Helper()
	gcc := need.Program(t, "gcc")
	out := filepath.Join(t.TempDir(), "guest")
	if b, err := exec.Command(gcc, "-O1", "-w", "-static", "-o", out, "testdata/guest.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, b)
	}
	return out
}

// TestGuest steps through what is hard to step through, to the end.
func TestGuest(t *testing.T) {
	s := record(t, recorder.Options{Args: []string{guest(t)}})
	if code := s.Rec.Manifest().ExitCode; code != 0 {
		t.Fatalf("the program ended with %d", code)
	}
	for _, i := range s.Rec.Intervals() {
		res, err := Run(t.Context(), s, Options{From: checkpoint.Position{Interval: i.ID}})
		exact(t, res, err)
	}
}

// TestPrograms runs stretches of dynamic programs.
func TestPrograms(t *testing.T) {
	python := need.Python(t)
	for _, x := range []struct {
		from uint64
		args []string
	}{
		{0, []string{"date"}},
		{300_000, []string{"sort", "/proc/self/maps"}},
		{1_000_000, []string{"perl", "-e", `my %h; $h{$_ % 7} += sqrt($_) for 1..1000; print join(",", %h)`}},
		{500_000, []string{"awk", `BEGIN { for (i = 0; i < 3000; i++) s += log(i + 1) * sin(i); printf "%.6f\n", s }`}},
		{3_000_000, []string{python, "-c", "print(sum(i * i / 3 for i in range(1000)))"}},
	} {
		t.Run(filepath.Base(x.args[0]), func(t *testing.T) {
			s := record(t, recorder.Options{Args: x.args, Interval: time.Second})
			o := Options{From: checkpoint.Position{Instr: x.from}, Count: uint64(*count)}
			res, err := Run(t.Context(), s, o)
			exact(t, res, err)
			if res.Steps < o.Count/2 {
				t.Errorf("%d steps only", res.Steps)
			}
		})
	}
}

// TestForcedEnd goes to the end of intervals that end anywhere.
func TestForcedEnd(t *testing.T) {
	s := record(t, recorder.Options{
		Args: []string{"awk", "BEGIN { while (x < 3000000) x++ }"}, Interval: time.Millisecond, ForceEvery: time.Millisecond,
	})
	for _, i := range s.Rec.Intervals() {
		iv, err := s.Rec.Interval(i.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !iv.End.Forced {
			continue
		}
		end, err := endOf(t.Context(), s, i.ID)
		if err != nil {
			t.Fatal(err)
		}
		from := end
		from.Step, from.Instr = 0, end.Instr-min(end.Instr, 1000)
		res, err := Run(t.Context(), s, Options{From: from})
		exact(t, res, err)
		if res.To != end {
			t.Errorf("ended at %v, want %v", res.To, end)
		}
		return
	}
	t.Error("no interval has a forced end")
}

// endOf replays an interval and returns where it ends.
func endOf(ctx context.Context, s *replay.Session, id uint32) (checkpoint.Position, error) {
	m, err := s.Machine(id)
	if err != nil {
		return checkpoint.Position{}, err
	}
	defer m.Close()
	err = m.RunToEnd(ctx, nil)
	return m.Position(), err
}

// TestWrongEmulator makes the emulator wrong in one instruction and wants that
// instruction to be found.
func TestWrongEmulator(t *testing.T) {
	s := record(t, recorder.Options{Args: []string{guest(t)}})
	const at = 2000 // none of the instructions that are spoilt stands before
	isStore := func(r *runner) bool { return len(r.spy.stores) == 1 && r.spy.stores[0].n == 8 }
	for _, x := range []struct {
		name string
		// spoil does wrong when the instruction suits it, and says so.
		spoil func(r *runner, row string) bool
		want  string // what differs
	}{
		{"flag", func(r *runner, row string) bool {
			r.m.CPU.SetFlags(r.m.CPU.Flags() ^ x86.FlagAF)
			return strings.HasPrefix(row, "ADD,")
		}, "rflags"},
		{"register", func(r *runner, row string) bool { r.m.CPU.R[x86.R15]++; return strings.HasPrefix(row, "LEA,") }, "r15"},
		{"branch", func(r *runner, row string) bool { r.m.CPU.RIP++; return row == "RET, C3" }, "rip"},
		{"vector", func(r *runner, _ string) bool { r.m.CPU.V[3][2] ^= 1 << 40; return r.decode().class&isVector != 0 }, "ymm3"},
		{"value stored", func(r *runner, _ string) bool {
			if !isStore(r) {
				return false
			}
			var now [1]byte
			if r.m.Mem.Read(r.spy.stores[0].addr+3, now[:]).Kind != mem.FaultNone {
				return false
			}
			r.m.Mem.Inject(r.spy.stores[0].addr+3, []byte{^now[0]})
			return true
		}, "memory at"},
		// The CPU stores where the emulator does not: only the comparison of
		// pages can tell.
		{"store missed", func(r *runner, _ string) bool {
			var now [8]byte
			if !isStore(r) || r.m.Mem.Read(r.spy.stores[0].addr, now[:]).Kind != mem.FaultNone ||
				binary.LittleEndian.Uint64(now[:]) != 0x1122334455667788 {
				return false
			}
			r.m.Mem.Inject(r.spy.stores[0].addr, make([]byte, 8))
			r.spy.stores = nil
			return true
		}, "memory at"},
		// Extended state is compared behind instructions that may touch it only:
		// this one is searched for as well.
		{"extended state behind an integer instruction", func(r *runner, row string) bool {
			r.m.CPU.MXCSR ^= 1 << 15
			return row == "RET, C3"
		}, "mxcsr"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var done checkpoint.Position
			o, spoil := Options{}, func(r *runner, row string) {
				if r.at.Instr < at || done.Instr != 0 && r.at != done {
					return
				}
				before := r.m.CPU.State
				if !x.spoil(r, row) {
					r.m.CPU.State = before
					return
				}
				done = r.at
			}
			res, err := run(t.Context(), s, o, spoil)
			if err != nil {
				t.Fatal(err)
			}
			d := res.Difference
			if d == nil {
				t.Fatalf("no difference; made one at %v", done)
			}
			found := strings.HasPrefix(d.Items[0].Name, x.want)
			if !found || d.At != done {
				t.Errorf("made a difference in %s at %v; found %v", x.want, done, d)
			}
		})
	}
}

// TestDiverged: where the machine faults and the CPU does not, that is the
// difference, and where the CPU does what the machine does, the log is wrong.
func TestDiverged(t *testing.T) {
	s := record(t, recorder.Options{Args: []string{guest(t)}})
	fault := func(r *runner, _ string) {
		if r.at.Instr == 3000 { // the next instruction is not where it was
			r.m.Mem.Protect(r.m.CPU.RIP&^4095, r.m.CPU.RIP&^4095+4096, mem.ProtRead)
		}
	}
	res, err := run(t.Context(), s, Options{Count: 20_000}, fault)
	if err != nil || res.Difference == nil || res.Difference.At.Instr != 3001 || res.Difference.Items[0].Name != "outcome" {
		t.Errorf("%v, %v, %v", err, res.Difference, res.Err)
	}

	m, err := s.Machine(0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.RunToEnd(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for e := m.Past(1 << 30); ; e = e[1:] { // the session's own
		if e[0].Kind == checkpoint.EventExit {
			e[0].RegHash++
			break
		}
	}
	res, err = Run(t.Context(), s, Options{})
	var d *replay.DivergenceError
	if err != nil || res.Difference != nil || !errors.As(res.Err, &d) {
		t.Errorf("%v, %v, %v", err, res.Difference, res.Err)
	}
}
