//go:build linux && amd64

package record

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
)

// TestForcedEnds ends intervals at arbitrary instructions of loops that make no
// system call: every end must be found by state. With -long each loop takes 2 s
// with an end each 20 ms.
func TestForcedEnds(t *testing.T) {
	ms, every := 40, 4*time.Millisecond
	if *long {
		ms, every = 2000, 20*time.Millisecond
		limit = time.Hour
	}
	counter := compile(t, "counter", "-O0")
	n := strconv.Itoa(ms)
	seconds := fmt.Sprintf("%.3f", float64(ms)/1000)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"awk", awkLoop(awkTurns(ms))},
		{"python", []string{"python3", "-I", "-S", "-c", "import time\nx = 0\ne = time.process_time() + " + seconds + "\nwhile True:\n    x += 1\n    if x % 100000 == 0 and time.process_time() > e: break\nprint('done')"}},
		{"counter in memory", []string{counter, "memory", n}},
		{"rep movsb", []string{counter, "movs", n}},
		{"timer", []string{counter, "timer", n}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run{args: installed(t, c.args), opt: recorder.Options{ForceEvery: every, Interval: time.Minute}}
			want := r.native(t)
			began := time.Now()
			got, res := r.recorded(t)
			took := time.Since(began)
			same(t, got, want)
			if !res.Recorded {
				t.Fatalf("nothing recorded: %s", res.Reason)
			}
			if res.Stats.ForcedEnds == 0 {
				t.Error("no interval ended by force")
			}
			busy := processorTime(t)
			v := verify(t, res.Path)
			busy = processorTime(t) - busy
			ends := float64(max(res.Stats.ForcedEnds, 1))
			t.Logf("recorded in %.2f s, %d forced ends, %d signals; %v; for each end %.1f M instructions, %.0f ms, %.0f ms of processor time",
				took.Seconds(), res.Stats.ForcedEnds, res.Stats.Signals, v, float64(v.insns)/1e6/ends,
				v.took.Seconds()*1000/ends, busy.Seconds()*1000/ends)
		})
	}
}

// TestForcedEndsAtCalls has the recorder's timer lose its race with a call many
// times: the call is undone, and an end or a signal may come before it is made
// again. RCX and R11 are then what SYSCALL left there.
func TestForcedEndsAtCalls(t *testing.T) {
	r := run{args: []string{compile(t, "alarms")}, opt: recorder.Options{ForceEvery: time.Millisecond, Interval: 5 * time.Millisecond}}
	want := r.native(t)
	undone := 0
	for range 3 {
		got, res := r.recorded(t)
		same(t, got, want)
		undone += callsUndone(t, res.Path)
		t.Logf("%d forced ends, %d signals; %v", res.Stats.ForcedEnds, res.Stats.Signals, verify(t, res.Path))
	}
	if undone == 0 {
		t.Error("no call was undone")
	}
}

// TestForcedEndsAtSignals has the timer's signal come together with one that the
// program sends itself, which is queued behind it and yet belongs to the call.
func TestForcedEndsAtSignals(t *testing.T) {
	r := run{args: []string{compile(t, "selfkill")}, opt: recorder.Options{ForceEvery: time.Millisecond, Interval: 5 * time.Millisecond}}
	want := r.native(t)
	got, res := r.recorded(t)
	same(t, got, want)
	t.Logf("%d forced ends, %d signals; %v", res.Stats.ForcedEnds, res.Stats.Signals, verify(t, res.Path))
}

// TestForcedEndsRemapped ends intervals while addresses change between private and
// shared memory, and pages are stored to without being changed.
func TestForcedEndsRemapped(t *testing.T) {
	for _, c := range []struct {
		name  string
		path  string
		flags []string
		times int
	}{
		{"same content", "remapsame", nil, 2},
		{"two views", "../alias", []string{"-O1", "-static", "-DREMAP"}, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run{
				args: []string{compile(t, c.path, c.flags...)},
				opt:  recorder.Options{ForceEvery: 5 * time.Millisecond, Interval: 5 * time.Millisecond},
			}
			want := r.native(t)
			for range c.times {
				got, res := r.recorded(t)
				same(t, got, want)
				t.Logf("%d forced ends; %v", res.Stats.ForcedEnds, verify(t, res.Path))
			}
		})
	}
}

// callsUndone counts the calls that are logged as interrupted and made again.
func callsUndone(t *testing.T, path string) int {
	t.Helper()
	n := 0
	eachInterval(t, path, func(_ *checkpoint.Recording, iv *checkpoint.Interval) {
		for _, e := range iv.Events {
			if e.Kind == checkpoint.EventExit && e.Restart && e.NR == syscall.SYS_GETPPID {
				n++
			}
		}
	})
	return n
}

// eachInterval calls f for the intervals of a recording, in order.
func eachInterval(t *testing.T, path string, f func(*checkpoint.Recording, *checkpoint.Interval)) {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for _, info := range rec.Intervals() {
		iv, err := rec.Interval(info.ID)
		if err != nil {
			t.Fatal(err)
		}
		f(rec, iv)
	}
}

// TestForcedEndsByHash leaves every other interval out of a recording, and with it
// the content of the pages at the end of the one before: what is left to find
// that end by is the hash of memory, which each store then keeps.
func TestForcedEndsByHash(t *testing.T) {
	counter := compile(t, "counter", "-O0")
	for _, loop := range []string{"memory", "movs"} {
		t.Run(loop, func(t *testing.T) {
			r := run{args: []string{counter, loop, "30"}, opt: recorder.Options{ForceEvery: 4 * time.Millisecond, Interval: time.Minute}}
			_, res := r.recorded(t)
			if res.Stats.ForcedEnds < 2 {
				t.Fatalf("%d forced ends: not the recording this test needs", res.Stats.ForcedEnds)
			}
			rec, err := checkpoint.Open(res.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer rec.Close()
			path := filepath.Join(t.TempDir(), "alternate.vplay")
			err = checkpoint.Rewrite(rec, path, checkpoint.RewriteOptions{
				Interval: func(_ *checkpoint.Writer, iv *checkpoint.Interval) (*checkpoint.Interval, error) {
					if iv.ID%2 == 0 {
						return nil, nil
					}
					return iv, nil
				},
				Final: func(*checkpoint.Writer, int32, *checkpoint.Final) (*checkpoint.Final, error) { return nil, nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			if missing := pagesMissing(t, path); missing == 0 {
				t.Fatal("the content of every page written is still there")
			}
			t.Logf("%v", verify(t, path))
		})
	}
}

// processorTime is what this process has used, in user mode.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano())
}

// pagesMissing counts the pages written in some interval whose content at its end
// is not in the recording.
func pagesMissing(t *testing.T, path string) int {
	t.Helper()
	n := 0
	eachInterval(t, path, func(rec *checkpoint.Recording, iv *checkpoint.Interval) {
		for _, e := range iv.End.Pages {
			if _, err := rec.Page(e.Ref, new([checkpoint.PageSize]byte)); err != nil {
				n++
			}
		}
	})
	return n
}

// awkLoop is a program that counts to n in an interpreter.
func awkLoop(n int) []string {
	return []string{"awk", "BEGIN { srand(); t = srand(); for (i = 0; i < " + strconv.Itoa(n) + "; i++) x++; print x }"}
}

// awkTurns is how many turns of awkLoop take about ms milliseconds: in the short
// form by what they take on a fast machine, in the long form measured on this one.
func awkTurns(ms int) int {
	n := ms * 12000
	if !*long {
		return n
	}
	args := awkLoop(n)
	cmd := exec.Command(args[0], args[1:]...)
	if err := cmd.Run(); err != nil { // the run itself says what is missing
		return n
	}
	took := max(cmd.ProcessState.UserTime(), time.Millisecond)
	return int(float64(n) * float64(ms) / 1000 / took.Seconds())
}
