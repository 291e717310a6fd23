//go:build linux && amd64

package record

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vplay/tests/need"
)

// lastSignal ends tests/guest/record/sigcount.c.
const lastSignal = syscall.Signal(64)

// someSignals are those that a supervisor or a terminal may send, and two that end
// a Go program with a traceback.
var someSignals = []syscall.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGALRM, syscall.SIGTERM, syscall.SIGCONT, syscall.SIGWINCH, 34, 40,
}

// TestSignalsToRecorder sends signals to the process that a supervisor knows, and
// wants them in the program as often as it gets them by itself.
func TestSignalsToRecorder(t *testing.T) {
	need.Recorder(t)
	prog := compile(t, "sigcount")
	all := func(send func(pid int, sig syscall.Signal)) func(int, *os.File) {
		return func(pid int, _ *os.File) {
			for _, sig := range someSignals {
				send(pid, sig)
				time.Sleep(20 * time.Millisecond) // one after the other
			}
		}
	}
	for _, c := range []struct {
		name string
		args []string
		send func(pid int, tty *os.File)
		by   []string // what starts it, natively or recorded
	}{
		{"to the process", nil, all(func(pid int, sig syscall.Signal) { _ = syscall.Kill(pid, sig) }), nil},
		{"to the process, which is started with all blocked", nil, all(func(pid int, sig syscall.Signal) { _ = syscall.Kill(pid, sig) }), []string{"env", "--block-signal"}},
		{"to the group", nil, all(func(pid int, sig syscall.Signal) { _ = syscall.Kill(-pid, sig) }), nil},
		{"SIGABRT by the program to its group", []string{"6"}, func(int, *os.File) {}, nil},
		{"SIGTRAP by the program to its group", []string{"5"}, func(int, *os.File) {}, nil},
		{"by the terminal", nil, func(_ int, tty *os.File) {
			for _, b := range []byte{3, 28} { // Ctrl-C and Ctrl-\
				_, _ = tty.Write([]byte{b})
				time.Sleep(20 * time.Millisecond)
			}
			_ = unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 90})
			time.Sleep(20 * time.Millisecond)
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{prog}, c.args...)
			want := onTerminal(t, slices.Concat(c.by, args), c.send)
			got := onTerminal(t, slices.Concat(c.by, []string{self, recordVerb, filepath.Join(t.TempDir(), "x.vplay"), "50ms"}, args), c.send)
			if got != want || !strings.Contains(want, ":") {
				t.Errorf("recorded: %s\nnative:   %s", got, want)
			}
		})
	}
}

// onTerminal runs a program as the leader of a session on a terminal of its own. When
// it says ready, send is called with its process and the terminal's other end, and then it
// gets the last signal. It returns the program's second line.
func onTerminal(t *testing.T, args []string, send func(pid int, tty *os.File)) string {
	t.Helper()
	tty, name := terminal(t)
	slave, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, w, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	w.Close()
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	lines := bufio.NewScanner(r)
	if !lines.Scan() {
		t.Fatalf("%q said nothing: %v", args, cmd.Wait())
	}
	time.Sleep(20 * time.Millisecond) // from its line to its sigsuspend
	send(cmd.Process.Pid, tty)
	time.Sleep(100 * time.Millisecond)
	_ = cmd.Process.Signal(lastSignal)
	lines.Scan()
	text := lines.Text()
	return fmt.Sprintf("%s(%v)", text, cmd.Wait())
}

// terminal returns one end of a pseudoterminal and the name of the other (man 4 pts).
func terminal(t *testing.T) (master *os.File, slave string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	return master, fmt.Sprintf("/dev/pts/%d", n)
}
