//go:build linux && amd64

package record

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/tests/need"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == LaunchVerb {
		fmt.Fprintln(os.Stderr, Launch(os.Args[2:]))
		os.Exit(126)
	}
	os.Exit(m.Run())
}

// guest compiles a program of testdata.
func guest(t *testing.T, name string, flags ...string) string {
	t.Helper()
	return compiled(t, filepath.Join("testdata", name+".c"), flags...)
}

// compiled compiles a program.
func compiled(t *testing.T, source string, flags ...string) string {
	t.Helper()
	gcc := need.Program(t, "gcc")
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), ".c"))
	args := append([]string{"-g", "-O1", "-w", "-o", out, source, "-lpthread"}, flags...)
	if b, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, b)
	}
	return out
}

var underAgent = flag.Bool("agent", false, "have the agent make frequent calls in all recordings")

// outcome of a program's run.
type ended struct {
	out  string
	code int
	sig  int
}

// native runs a program without the recorder.
func native(t *testing.T, args ...string) ended {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	b, _ := cmd.Output()
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	e := ended{out: string(b), code: ws.ExitStatus()}
	if ws.Signaled() {
		e.sig = int(ws.Signal())
		e.code = 128 + e.sig
	}
	return e
}

// recorded runs a program under the recorder. kick, when not nil, is called
// with the program's process once it has printed its first line.
func recorded(t *testing.T, o Options, kick func(pid int)) (ended, Result) {
	t.Helper()
	end, res, err := recordedOr(t, o, kick)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return end, res
}

// recordedOr is recorded where the recorder may fail.
func recordedOr(t *testing.T, o Options, kick func(pid int)) (ended, Result, error) {
	t.Helper()
	need.Recorder(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	o.checkClean, o.Agent = true, o.Agent || *underAgent
	o.Logger = zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel)
	o.Files = []*os.File{nil, w, os.Stderr}
	if o.Files[0], err = os.Open(os.DevNull); err != nil {
		t.Fatal(err)
	}
	defer o.Files[0].Close()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "out.vplay")
	}
	started := make(chan int, 1)
	o.Started = func(pid int) { started <- pid }
	var buf bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 4096)
		for first := true; ; first = false {
			n, err := r.Read(b)
			buf.Write(b[:n])
			if err != nil {
				return
			}
			if first && kick != nil {
				go kick(<-started)
			}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	res, err := Run(ctx, o)
	w.Close()
	<-done
	if res.Stats.MapDrift != 0 {
		t.Errorf("the map model drifted %d times: %s", res.Stats.MapDrift, res.Stats.MapDriftNote)
	}
	if res.Stats.MissedPages != 0 {
		t.Errorf("%d pages changed unseen", res.Stats.MissedPages)
	}
	return ended{buf.String(), res.ExitCode, res.Signal}, res, err
}

// check reads a recording and checks its structure.
func check(t *testing.T, path string) *checkpoint.Recording {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	for _, info := range rec.Intervals() {
		iv, err := rec.Interval(info.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkInterval(iv); err != nil {
			t.Errorf("interval %d: %v", iv.ID, err)
		}
	}
	return rec
}

func checkInterval(iv *checkpoint.Interval) error {
	type state struct {
		in bool
		nr int64
	}
	threads := map[checkpoint.TID]*state{}
	for _, c := range iv.Start {
		threads[c.TID] = &state{c.InCall, c.OrigRAX}
	}
	runs := iv.Start[0].TID
	for i, e := range iv.Events {
		fail := func(what string) error { return fmt.Errorf("event %d (%s): %s", i, abi.Name(e.NR), what) }
		if e.Kind == checkpoint.EventThread && e.Thread == checkpoint.ThreadStart {
			threads[e.TID] = &state{}
			continue
		}
		t := threads[e.TID]
		if t == nil {
			return fail(fmt.Sprintf("of thread %d, which is not there", e.TID))
		}
		if e.Kind == checkpoint.EventSched {
			runs = e.TID
		}
		if e.TID != runs {
			return fail(fmt.Sprintf("of thread %d, while %d runs", e.TID, runs))
		}
		switch e.Kind {
		case checkpoint.EventEnter:
			if t.in {
				return fail("enter inside a call")
			}
			t.in, t.nr = true, e.NR
		case checkpoint.EventExit:
			if !t.in || e.NR != t.nr && t.nr != abi219 {
				return fail("exit outside of its call")
			}
			t.in = false
		case checkpoint.EventSched:
		case checkpoint.EventThread:
			if !t.in {
				return fail("a thread ends outside of a call")
			}
			delete(threads, e.TID)
		case checkpoint.EventGap:
			if !t.in || i != len(iv.Events)-1 || iv.End.Kind != checkpoint.EndGap {
				return fail("misplaced gap")
			}
		default:
			if t.in {
				return fail("inside a call")
			}
		}
	}
	in := threads[runs] != nil && threads[runs].in
	switch iv.End.Kind {
	case checkpoint.EndSync, checkpoint.EndForced:
		if in {
			return errors.New("ends inside a call")
		}
	case checkpoint.EndExit, checkpoint.EndGap, checkpoint.EndExec:
		if !in {
			return fmt.Errorf("end %d outside of a call", iv.End.Kind)
		}
	case checkpoint.EndCrash, checkpoint.EndStop: // Anywhere.
	}
	if in != iv.End.Contexts[0].InCall && iv.End.Kind != checkpoint.EndCrash {
		return fmt.Errorf("InCall of the end is %v", iv.End.Contexts[0].InCall)
	}
	return nil
}

const abi219 = 219

func TestTransparent(t *testing.T) {
	modes := []struct {
		name string
		opt  Options
	}{
		{"plain", Options{Keep: KeepAlways}},
		{"short intervals", Options{Keep: KeepAlways, Interval: 2 * time.Millisecond}},
		{"forced", Options{Keep: KeepAlways, ForceEvery: 3 * time.Millisecond}},
		{"copied", Options{Keep: KeepAlways, Interval: 2 * time.Millisecond, refuseShadows: true}},
		{"crash", Options{Keep: KeepCrash, Interval: 5 * time.Millisecond, KeepSeconds: 0.05}},
	}
	for _, name := range []string{"signals", "memory", "children", "thread"} {
		for _, flags := range [][]string{nil, {"-static"}} {
			prog := guest(t, name, flags...)
			want := native(t, prog)
			for _, m := range modes {
				t.Run(fmt.Sprint(name, flags, " ", m.name), func(t *testing.T) {
					m.opt.Args = []string{prog}
					m.opt.Path = filepath.Join(t.TempDir(), "out.vplay")
					got, res := recorded(t, m.opt, nil)
					if got != want {
						t.Errorf("got %+v, want %+v", got, want)
					}
					t.Logf("%+v", res.Stats)
					if m.opt.Keep == KeepAlways {
						check(t, res.Path)
					} else if _, err := os.Stat(m.opt.Path); err == nil {
						t.Error("a recording of a program that did not crash was kept")
					}
				})
			}
		}
	}
}

func TestCrash(t *testing.T) {
	prog := guest(t, "crash")
	for _, how := range []string{"null", "jump", "div", "ill", "abort", "stack", "kill", "term", "int3"} {
		for _, keep := range []Keep{KeepCrash, KeepAlways} {
			t.Run(how+" "+string(keep), func(t *testing.T) {
				want := native(t, prog, how)
				got, res := recorded(t, Options{Args: []string{prog, how}, Keep: keep, Interval: 10 * time.Millisecond, KeepSeconds: 0.1}, nil)
				if got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
				t.Logf("%+v", res.Stats)
				rec := check(t, res.Path)
				if m := rec.Manifest(); !m.Crash || int(m.Signo) != want.sig {
					t.Errorf("manifest: crash %v signal %d", m.Crash, m.Signo)
				}
				last := rec.Intervals()[len(rec.Intervals())-1]
				if last.End != checkpoint.EndCrash || last.Forced {
					t.Errorf("last interval ends %d, forced %v", last.End, last.Forced)
				}
			})
		}
	}
}

func TestKilledFromOutside(t *testing.T) {
	prog := guest(t, "crash")
	for _, sig := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGTERM, syscall.SIGKILL} {
		for _, how := range []string{"spin", "sleep"} {
			t.Run(fmt.Sprint(how, " ", sig), func(t *testing.T) {
				got, res := recorded(t, Options{Args: []string{prog, how}, Interval: 10 * time.Millisecond}, func(pid int) {
					time.Sleep(50 * time.Millisecond)
					if pid > 1 {
						syscall.Kill(pid, sig)
					}
				})
				if got.sig != int(sig) {
					t.Fatalf("got %+v", got)
				}
				if !res.Recorded {
					t.Fatalf("nothing recorded: %s", res.Reason)
				}
				rec := check(t, res.Path)
				last := rec.Intervals()[len(rec.Intervals())-1]
				if last.End != checkpoint.EndCrash || last.Forced != (how == "spin") {
					t.Errorf("last interval ends %d, forced %v", last.End, last.Forced)
				}
			})
		}
	}
}

// TestLostShadows kills shadows, as the system does when memory runs short: what is
// left is a recording, and without any there is none.
func TestLostShadows(t *testing.T) {
	prog := guest(t, "crash")
	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprint("all ", all), func(t *testing.T) {
			interval := 10 * time.Millisecond
			if all {
				interval = time.Minute // else the signal may find that another one is due, and its shadow is made
			}
			_, res := recorded(t, Options{Args: []string{prog, "spin"}, Interval: interval}, func(pid int) {
				time.Sleep(200 * time.Millisecond)
				syscall.Kill(pid, syscall.SIGSTOP) // no more are made
				for _, shadow := range settledShadows(t, pid) {
					syscall.Kill(shadow, syscall.SIGKILL)
					if !all {
						break
					}
				}
				syscall.Kill(pid, syscall.SIGTERM)
				syscall.Kill(pid, syscall.SIGCONT)
			})
			if all {
				if res.Recorded || !errors.Is(res.Err, ErrLost) {
					t.Errorf("recorded: %t, %v", res.Recorded, res.Err)
				}
				return
			}
			if !res.Recorded {
				t.Fatalf("nothing recorded: %s", res.Reason)
			}
			rec := check(t, res.Path)
			if notes := strings.Join(rec.Manifest().Notes, ";"); !strings.Contains(notes, "memory ran short") || rec.Intervals()[0].ID == 0 {
				t.Errorf("notes %q, first interval %d", notes, rec.Intervals()[0].ID)
			}
		})
	}
}

// TestShadowsReaped: the shadows that the ring drops do not stay as zombies.
func TestShadowsReaped(t *testing.T) {
	prog := guest(t, "crash")
	_, res := recorded(t, Options{Args: []string{prog, "spin"}, Interval: 4 * time.Millisecond, ForceAfter: time.Millisecond, KeepSeconds: 0.02}, func(pid int) {
		seen := map[int]bool{}
		for end := time.Now().Add(20 * time.Second); len(seen) < 25 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			for _, shadow := range shadowsOf(t, pid) {
				seen[shadow] = true
			}
		}
		if zombies := childrenIn(t, pid, 'Z'); len(zombies) > 5 {
			t.Errorf("%d zombies", len(zombies))
		}
		syscall.Kill(pid, syscall.SIGTERM)
	})
	if res.Stats.Shadows < 20 {
		t.Errorf("only %d shadows were made", res.Stats.Shadows)
	}
}

// shadowsOf returns the shadows of the program, the oldest first.
func shadowsOf(t *testing.T, program int) []int { return childrenIn(t, program, 't') }

// settledShadows returns them once the program and all its shadows have stood still for a while.
func settledShadows(t *testing.T, program int) []int {
	t.Helper()
	var list []int
	for quiet, end := 0, time.Now().Add(20*time.Second); quiet < 20; quiet++ {
		if time.Now().After(end) {
			t.Error("the program does not stop")
			return list
		}
		time.Sleep(10 * time.Millisecond)
		now := shadowsOf(t, program)
		state := stateOf(program)
		if state != 't' && state != 'T' || !slices.Equal(now, list) || len(childrenIn(t, program, 'R')) != 0 {
			quiet = 0
		}
		list = now
	}
	return list
}

// childrenIn returns the children of this process but the program that are in a state.
func childrenIn(t *testing.T, program int, state byte) (pids []int) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lists {
		list, _ := os.ReadFile(name) // a thread may have gone
		for _, f := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(f); err == nil && pid != program && stateOf(pid) == state {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return pids
}

// TestEndsAtOnce: that a process with which the program shares its memory ends the
// recording is said while the program runs, and whether what came before is kept.
func TestEndsAtOnce(t *testing.T) {
	prog := guest(t, "sharing")
	for _, keep := range []Keep{KeepCrash, KeepAlways} {
		said := 0
		o := Options{Args: []string{prog}, Keep: keep, Follow: FollowNone, Ended: func(reason string, kept bool) {
			said++
			if !strings.Contains(reason, "shares its memory") || kept != (keep == KeepAlways) {
				t.Errorf("%s: ended with %q, kept %v", keep, reason, kept)
			}
			if list, err := os.ReadFile("/proc/thread-self/children"); err != nil || len(list) == 0 {
				t.Errorf("%s: the program has ended before: %v", keep, err)
			}
		}}
		if _, res := recorded(t, o, nil); said != 1 || res.Recorded != (keep == KeepAlways) {
			t.Errorf("%s: said %d times, recorded %v", keep, said, res.Recorded)
		}
	}
}

// TestStoresNoted: what processes store in memory that they share is noted at each turn's end, however they map, move and
// protect it meanwhile, with stores that the kernel watches as well as by comparing all.
func TestStoresNoted(t *testing.T) {
	prog := compiled(t, filepath.Join("..", "..", "tests", "guest", "record", "trees.c"))
	for _, memory := range []string{"remaps", "remapsnamed"} {
		want := native(t, prog, memory)
		for _, agent := range []bool{false, true} {
			if got, _ := recorded(t, Options{Args: []string{prog, memory}, Agent: agent}, nil); got != want {
				t.Errorf("%s, agent %t: %+v, natively %+v", memory, agent, got, want)
			}
		}
	}
}

// TestGivesMemoryBack: what holds the past goes when the recording has ended, not only when
// the program does, which may be much later.
func TestGivesMemoryBack(t *testing.T) {
	var left []int
	_, res := recorded(t, Options{Args: []string{guest(t, "lingers")}, Interval: 10 * time.Millisecond, ForceAfter: time.Millisecond}, func(pid int) {
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if left = append(shadowsOf(t, pid), childrenIn(t, pid, 'Z')...); len(left) == 0 {
				break
			}
		}
		syscall.Kill(pid, syscall.SIGTERM)
	})
	if res.Stats.Shadows < 2 || len(left) != 0 {
		t.Errorf("of %d shadows %d are left while the program runs on", res.Stats.Shadows, len(left))
	}
}

// TestQuietStops: while programs are recorded the kernel sends no SIGCHLD for each of their
// stops, and afterwards it does again.
func TestQuietStops(t *testing.T) {
	const noStops = 0x1 // SA_NOCLDSTOP
	prog := guest(t, "crash")
	recorded(t, Options{Args: []string{prog, "sleep"}}, func(pid int) {
		if actionOf(unix.SIGCHLD).flags&noStops == 0 {
			t.Error("SIGCHLD comes with every stop")
		}
		syscall.Kill(pid, syscall.SIGKILL)
	})
	if actionOf(unix.SIGCHLD).flags&noStops != 0 {
		t.Error("SIGCHLD does not come with stops any more")
	}
}
