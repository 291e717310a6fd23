//go:build linux && amd64

package record

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

// initVerb makes the test binary the first process of a process id namespace: it
// runs the command that follows, and stays for a while after that.
const initVerb = "__init"

func initMain(args []string) int {
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	_ = cmd.Run() // it is killed
	time.Sleep(500 * time.Millisecond)
	return 0
}

// killed is what became of a program that sends a signal to its recorder, or, natively,
// to the process in its place.
type killed struct {
	out    string
	status syscall.WaitStatus
}

// inSession runs a command as the leader of a session, so that only it and what it starts
// is in its process group, with the name of the recording to be in its environment.
func inSession(t *testing.T, keep recorder.Keep, namespace bool, args ...string) killed {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), keepVariable+"="+string(keep))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if namespace {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait() // until the last that has its output is gone
	return killed{out.String(), cmd.ProcessState.Sys().(syscall.WaitStatus)}
}

// TestKillsRecorder records programs that kill the recorder, with themselves or
// without: what came before is kept, and a program that lives goes on.
func TestKillsRecorder(t *testing.T) {
	need.Recorder(t)
	prog := compile(t, "killgroup")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		how  string
		keep recorder.Keep
		dies bool // the program
	}{
		{"group", recorder.KeepCrash, true},
		{"group", recorder.KeepAlways, true},
		{"minus", recorder.KeepCrash, true},
		{"parent", recorder.KeepCrash, false},
		{"parent", recorder.KeepAlways, false},
		{"queue", recorder.KeepAlways, false},
		{"pidfd", recorder.KeepAlways, false},
		{"all", recorder.KeepCrash, false},
		{"all", recorder.KeepAlways, false},
	} {
		t.Run(c.how+" "+string(c.keep), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.vplay")
			args := []string{self, recordVerb, path, "50ms", prog, c.how, "9"}
			namespace := c.how == "all"
			if namespace {
				args = append([]string{self, initVerb}, args...)
			}
			got := inSession(t, c.keep, namespace, args...)
			if !namespace && (!got.status.Signaled() || got.status.Signal() != syscall.SIGKILL) {
				t.Errorf("the recorder was not killed: %#x", got.status)
			}
			want := "sends 9\n"
			if !c.dies {
				want += "after it: 0, got 0\n"
			}
			if got.out != want {
				t.Errorf("the program said %q, want %q", got.out, want)
			}
			if !c.dies && c.keep == recorder.KeepCrash {
				if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
				return
			}
			endsAtKill(t, path, c.dies)
			verify(t, path)
		})
	}
}

// lastInterval opens a recording, for the length of the test, and returns its last
// interval.
func lastInterval(t *testing.T, path string) (*checkpoint.Recording, *checkpoint.Interval) {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	list := rec.Intervals()
	iv, err := rec.Interval(list[len(list)-1].ID)
	if err != nil {
		t.Fatal(err)
	}
	return rec, iv
}

// endsAtKill checks that a recording ends at the entry of the call that kills.
func endsAtKill(t *testing.T, path string, dies bool) {
	t.Helper()
	rec, iv := lastInterval(t, path)
	last := iv.Events[len(iv.Events)-1]
	if m := rec.Manifest(); last.Kind != checkpoint.EventEnter || m.Crash != dies || dies && m.Signo != 9 {
		t.Errorf("the last event is %d %d, crash %t, signal %d", last.Kind, last.NR, m.Crash, m.Signo)
	}
	if want := map[bool]checkpoint.EndKind{true: checkpoint.EndCrash, false: checkpoint.EndStop}[dies]; iv.End.Kind != want {
		t.Errorf("it ends with %d, want %d", iv.End.Kind, want)
	}
}

// TestRawSignals has programs send their process group the real-time signals that C
// libraries keep for themselves.
func TestRawSignals(t *testing.T) {
	need.Recorder(t)
	prog := compile(t, "killgroup")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []string{"32", "33", "34"} {
		path := filepath.Join(t.TempDir(), "x.vplay")
		want := inSession(t, recorder.KeepAlways, false, prog, "group", sig)
		got := inSession(t, recorder.KeepAlways, false, self, recordVerb, path, "50ms", prog, "group", sig)
		if got != want || !strings.Contains(want.out, "got "+sig) {
			t.Errorf("recorded %q %#x, natively %q %#x", got.out, got.status, want.out, want.status)
			continue
		}
		verify(t, path)
	}
}
