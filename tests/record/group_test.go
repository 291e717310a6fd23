//go:build linux && amd64

package record

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vplay/tests/need"
)

// vplayd builds the command once: the tests' own executable has no symbols.
var vplayd = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "vplayd")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "vplayd")
	b, err := exec.Command("go", "build", "-o", out, "vplay/cmd/vplayd").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w: %s", err, b)
	}
	return out, err
})

// command returns vplayd record with flags and a program.
func command(t *testing.T, args ...string) []string {
	t.Helper()
	need.Recorder(t)
	bin, err := vplayd()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{bin, "record", "-q", "--no-slim", "-f", "-o", filepath.Join(t.TempDir(), "out.vplay")}, args...)
}

// inGroup runs a command in a process group of its own; kick, when not nil, is
// called with the command's process when it has printed its first line.
func inGroup(t *testing.T, args []string, kick func(pid int)) outcome {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var out []byte
	b := make([]byte, 4096)
	for first := true; ; first = false {
		n, err := r.Read(b)
		out = append(out, b[:n]...)
		if err != nil {
			break
		}
		if first && kick != nil {
			kick(cmd.Process.Pid)
		}
	}
	_ = cmd.Wait() // its status is looked at
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	o := outcome{out: string(out), code: ws.ExitStatus()}
	if ws.Signaled() {
		o.sig = int(ws.Signal())
		o.code = 128 + o.sig
	}
	return o
}

// TestSignalsToGroup: a program sends each signal to its process group, which
// the recorder is in. Both survive what the program alone survives, and a death
// is recorded.
func TestSignalsToGroup(t *testing.T) {
	prog := compile(t, "group")
	for sig := 1; sig <= 64; sig++ {
		if sig == int(syscall.SIGSTOP) || sig == int(syscall.SIGTSTP) || sig == int(syscall.SIGTTIN) || sig == int(syscall.SIGTTOU) {
			continue // nobody is there to continue the job
		}
		t.Run(fmt.Sprint(sig), func(t *testing.T) {
			for _, how := range []string{"default", "handle"} {
				args := []string{prog, how, fmt.Sprint(sig)}
				want := inGroup(t, args, nil)
				cmd := command(t, args...)
				got := inGroup(t, cmd, nil)
				if got != want {
					t.Errorf("%s: recorded %+v, native %+v", how, got, want)
				}
				_, err := os.Stat(cmd[6])
				if (err == nil) != (want.sig != 0) {
					t.Errorf("%s: the recording: %v", how, err)
				}
				if err == nil && sig < 10 {
					verify(t, cmd[6])
				}
			}
		})
	}
}

// TestSignalsToRecorder: what a supervisor sends to the recorder the program
// gets, once, as from the supervisor; also when it goes to the whole group.
func TestSignalsToRecorder(t *testing.T) {
	prog := compile(t, "group")
	for _, sig := range []syscall.Signal{1, 2, 3, 5, 6, 10, 12, 14, 15, 17, 18, 20, 28, 36, 64} {
		for _, to := range []string{"process", "group"} {
			t.Run(fmt.Sprint(to, " ", int(sig)), func(t *testing.T) {
				kick := func(pid int) {
					if to == "group" {
						pid = -pid
					}
					if err := syscall.Kill(pid, sig); err != nil {
						t.Error(err)
					}
					time.Sleep(100 * time.Millisecond)
					if err := syscall.Kill(pid, syscall.SIGUSR2); err != nil {
						t.Error(err)
					}
				}
				args := []string{prog, "wait", fmt.Sprint(os.Getpid())}
				want := inGroup(t, args, kick)
				if got := inGroup(t, command(t, args...), kick); got != want {
					t.Errorf("recorded %+v, native %+v", got, want)
				}
			})
		}
	}
}

// TestInheritedSignals: a program sees the ignored and blocked signals that it
// would see by itself.
func TestInheritedSignals(t *testing.T) {
	show := []string{"grep", "-E", "Sig(Blk|Ign|Cgt)", "/proc/self/status"}
	need.Program(t, "grep", "nohup", "sh")
	python := need.Python(t)
	block := `import signal, subprocess, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [1, 2, 3, 10, 11, 15, 64])
sys.exit(subprocess.call(sys.argv[1:], restore_signals=False))`
	for name, prefix := range map[string][]string{
		"plain":  nil,
		"nohup":  {"nohup"},
		"trap":   {"sh", "-c", "trap '' INT QUIT USR1 PIPE TSTP TERM CHLD; \"$@\"", "sh"},
		"python": {python, "-c", block},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(args []string) string {
				b, err := exec.Command(append(prefix[:len(prefix):len(prefix)], args...)[0], append(prefix[:len(prefix):len(prefix)], args...)[1:]...).Output()
				if err != nil {
					t.Fatal(err)
				}
				return strings.TrimSpace(string(b))
			}
			if got, want := run(command(t, show...)), run(show); got != want {
				t.Errorf("recorded:\n%s\nnative:\n%s", got, want)
			}
		})
	}
}
