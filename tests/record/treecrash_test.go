//go:build linux && amd64

package record

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

// openRecording opens a recording for the length of the test.
func openRecording(t *testing.T, path string) *checkpoint.Recording {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}

// endsOf returns how the last interval of each process ends.
func endsOf(rec *checkpoint.Recording) map[int32]checkpoint.EndKind {
	ends := map[int32]checkpoint.EndKind{}
	for _, info := range rec.Intervals() {
		ends[info.PID] = info.End
	}
	return ends
}

// programsIn returns the last names of the programs of a recording's processes, sorted.
func programsIn(rec *checkpoint.Recording) string {
	var names []string
	for _, p := range rec.Processes() {
		names = append(names, filepath.Base(p.Program))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestTreeCrashes has one process of several crash. The recording is about that one, and has
// all that ran at that moment, each up to there; they run on, and no call of theirs has
// another result for it.
func TestTreeCrashes(t *testing.T) {
	prog := compile(t, "trees")
	for _, c := range []struct {
		name      string
		processes int  // that are recorded at the crash
		first     bool // the program itself crashes
		shares    bool // what crashes is in the log of the program, whose memory it shares
	}{
		{"crashchild", 7, false, false},
		{"crashgrandchild", 7, false, false},
		{"crashvfork", 5, false, true},
		{"crashtwo", 7, false, false},
		{"crashfirst", 3, true, false},
		{"crashbesidevfork", 3, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run{args: []string{prog, c.name}}
			want := r.native(t)
			for _, m := range []struct {
				name string
				opt  recorder.Options
			}{
				{"ring", recorder.Options{Keep: recorder.KeepCrash}},
				{"whole", recorder.Options{Keep: recorder.KeepAlways}},
				{"short", recorder.Options{Keep: recorder.KeepCrash, Interval: time.Microsecond}},
				{"agent", recorder.Options{Keep: recorder.KeepCrash, Agent: true, AgentAfter: -1}},
			} {
				r.opt = m.opt
				t.Run(m.name, func(t *testing.T) {
					got, res := r.recorded(t)
					got.out, want.out = sortLines(got.out), sortLines(want.out)
					same(t, got, want)
					if !res.Recorded || len(res.More) > 0 {
						t.Fatalf("result: %+v", res)
					}
					rec := openRecording(t, res.Path)
					manifest := rec.Manifest()
					if !manifest.Crash || manifest.Signo != int32(syscall.SIGSEGV) {
						t.Errorf("crash %t, signal %d", manifest.Crash, manifest.Signo)
					}
					switch {
					case c.first != (res.Crashed == nil):
						t.Errorf("crashed: %+v", res.Crashed)
					case c.shares && res.Crashed.PID == int(manifest.PID), !c.first && !c.shares && (res.Crashed.PID != int(manifest.PID) || res.Crashed.Signal != int(syscall.SIGSEGV)):
						t.Errorf("crashed: %+v, the recording is about %d", res.Crashed, manifest.PID)
					}
					if n := len(rec.Processes()); n < c.processes {
						t.Errorf("%d processes, want %d", n, c.processes)
					}
					stopped := 0
					for pid, kind := range endsOf(rec) {
						switch {
						case pid == manifest.PID && kind != checkpoint.EndCrash:
							t.Errorf("the process that crashed ends with %d", kind)
						case kind == checkpoint.EndStop:
							stopped++
						}
					}
					if m.opt.Keep == recorder.KeepCrash && stopped < c.processes-2 { // but for one or two that crashed
						t.Errorf("%d processes end where another crashed, want %d", stopped, c.processes-1)
					}
					t.Log(verify(t, res.Path))
				})
			}
		})
	}
}

// TestTreeEachCrash has two processes crash, each of which gives a recording; the others go
// on, and what is no crash gives none.
func TestTreeEachCrash(t *testing.T) {
	prog := compile(t, "trees")
	for _, c := range []struct {
		name string
		want int
	}{{"crashtwo", 2}, {"crashchild", 1}, {"crashvfork", 1}, {"crashkilled", 0}, {"killed", 0}, {"killedvm", 0}} {
		t.Run(c.name, func(t *testing.T) {
			r := run{args: []string{prog, c.name}, opt: recorder.Options{Keep: recorder.KeepCrash, OnCrash: recorder.OnCrashEach}}
			want := r.native(t)
			got, res := r.recorded(t)
			got.out, want.out = sortLines(got.out), sortLines(want.out)
			same(t, got, want)
			files := res.More
			if res.Recorded {
				files = append(files, res.Path)
			}
			if len(files) != c.want {
				t.Fatalf("%d recordings, want %d: %+v", len(files), c.want, res)
			}
			about := map[int32]bool{}
			for _, f := range files {
				m := openRecording(t, f).Manifest()
				if !m.Crash || m.Signo != int32(syscall.SIGSEGV) || about[m.PID] {
					t.Errorf("%s: crash %t, signal %d, process %d", f, m.Crash, m.Signo, m.PID)
				}
				about[m.PID] = true
				t.Log(verify(t, f))
			}
		})
	}
}

// TestTreeFollow records some of the processes of a program.
func TestTreeFollow(t *testing.T) {
	prog := compile(t, "trees")
	for _, c := range []struct {
		follow recorder.Follow
		want   string // programs of the processes
	}{
		{recorder.FollowAll, "cat dash echo trees trees"},
		{recorder.FollowNone, "trees"},
		{recorder.FollowExec + "echo", "echo trees"},
		{recorder.FollowExec + "*/ec*", "trees"},
		{recorder.FollowExec + "/usr/bin/[ec]*", "cat echo trees"},
		{recorder.FollowExec + "trees", "dash trees trees"}, // what such a process starts belongs to it
		{recorder.FollowExec + "dash", "cat dash echo trees"},
		{recorder.FollowExec + "sh", "cat dash echo trees"}, // so execve(2) names it
		{recorder.FollowExec + "/bin/sh", "cat dash echo trees"},
		{recorder.FollowExec + "/bin/echo", "echo trees"}, // the file is in /usr/bin
	} {
		t.Run(string(c.follow), func(t *testing.T) {
			r := run{args: []string{prog, "programs"}, opt: recorder.Options{Follow: c.follow}}
			want := r.native(t)
			got, res := r.recorded(t)
			same(t, got, want)
			if res.Reason != "" || !res.Recorded {
				t.Fatalf("result: %+v", res)
			}
			if got := programsIn(openRecording(t, res.Path)); got != c.want {
				t.Errorf("recorded %q, want %q", got, c.want)
			}
			t.Log(verify(t, res.Path))
		})
	}
}

// TestTreeKilled kills processes and groups at any moment, with an end forced every 3 ms, and under
// a random schedule. TestGuests has them with the usual intervals.
func TestTreeKilled(t *testing.T) {
	for _, name := range []string{"execkilled", "forkkilled", "groupkilled", "threadkilled"} {
		r, c := run{args: []string{compile(t, name)}}, guestCase{name: name}
		want := r.native(t)
		for mode, opt := range map[string]recorder.Options{
			"forced": {ForceEvery: 3 * time.Millisecond}, "chaos": {Chaos: true, ChaosSeed: 1},
		} {
			r.opt = opt
			t.Run(name+"/"+mode, func(t *testing.T) { c.check(t, &r, want) })
		}
	}
}

// TestTreeFollowKilled kills processes that are not recorded while they make children, which run to
// their end all the same, and threads.
func TestTreeFollowKilled(t *testing.T) {
	for _, name := range []string{"forkkilled", "threadkilled"} {
		t.Run(name, func(t *testing.T) {
			r := run{args: []string{compile(t, name)}, opt: recorder.Options{Follow: recorder.FollowExec + "nothing"}}
			want := r.native(t)
			got, res := r.recorded(t)
			same(t, got, want)
			if res.Reason != "" || !res.Recorded {
				t.Fatalf("result: %+v", res)
			}
			t.Log(verify(t, res.Path))
		})
	}
}

// TestTreeInterrupted has Ctrl-C end all processes of a program at once, recorder included.
func TestTreeInterrupted(t *testing.T) {
	need.Recorder(t)
	prog := compile(t, "trees")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.vplay")
	cmd := exec.Command(self, recordVerb, path, "50ms", prog, "forever")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(limit, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer late.Stop()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "runs" {
		t.Fatalf("it says %q", lines.Text())
	}
	time.Sleep(50 * time.Millisecond)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGINT) {
		t.Errorf("the recorder ends with %v", cmd.ProcessState)
	}
	rec := openRecording(t, path)
	if m := rec.Manifest(); m.Signo != int32(syscall.SIGINT) || len(rec.Processes()) != 4 {
		t.Errorf("signal %d, processes %q", m.Signo, programsIn(rec))
	}
	t.Log(verify(t, path))
}
