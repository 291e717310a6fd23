package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Services: vplayd as systemd starts it, in front of a program that talks to systemd.

// service is such a program, recorded.
type service struct {
	*recorder
	notes   *net.UnixConn // what is sent to NOTIFY_SOCKET
	journal string        // the file that standard error leads to
}

// startService starts the guest as a service whose recordings go to folder state.
func startService(t *testing.T, g *guest, state string, flags ...string) *service {
	t.Helper()
	s := &service{recorder: &recorder{t: t, dir: state}, journal: filepath.Join(t.TempDir(), "journal")}
	socket := s.journal + ".notify"
	var err error
	if s.notes, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.notes.Close() })
	f, err := os.Create(s.journal)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	id := st.Sys().(*syscall.Stat_t)
	// systemd names the process that it starts.
	script := `export LISTEN_PID=$$ WATCHDOG_PID=$$ SYSTEMD_EXEC_PID=$$; exec "$@"`
	args := append([]string{"-c", script, "sh", vplayd, "record", "--service"}, flags...)
	s.cmd = exec.CommandContext(limited(t, 2*time.Minute), "/bin/sh", append(args, "--", g.bin)...)
	s.cmd.Dir, s.cmd.Stderr = "/", f
	s.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket, "STATE_DIRECTORY="+state+":/elsewhere", "LISTEN_FDS=0", "LISTEN_PIDFDID=1", "WATCHDOG_USEC=1000000",
		fmt.Sprintf("JOURNAL_STREAM=%d:%d", id.Dev, id.Ino))
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	return s
}

// note returns what the service tells next.
func (s *service) note() string {
	s.t.Helper()
	b := make([]byte, 1000)
	if err := s.notes.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	n, err := s.notes.Read(b)
	if err != nil {
		s.t.Fatalf("the service tells nothing: %v\n%s", err, s.log())
	}
	return string(b[:n])
}

// ready waits until the service is, and checks what it was told.
func (s *service) ready() {
	s.t.Helper()
	want := regexp.MustCompile(`^READY=1\nSTATUS=pid \d+, sockets 1 0, watchdog 1, main 1, pidfd none$`)
	if got := s.note(); !want.MatchString(got) {
		s.t.Errorf("the service tells %q, want %v", got, want)
	}
}

// signal sends one to the main process.
func (s *service) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// log returns what is in the journal.
func (s *service) log() string {
	s.t.Helper()
	b, err := os.ReadFile(s.journal)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// TestService has a service get ready, reload and stop: what it is told and tells, its signals and its exit code
// are as without vplayd, and nothing is left.
func TestService(t *testing.T) {
	g, state := compile(t, "service"), t.TempDir()
	s := startService(t, g, state)
	s.ready()
	s.signal(syscall.SIGHUP)
	if got := s.note(); got != "RELOADING=1" {
		t.Errorf("at a reload: %q", got)
	}
	s.signal(syscall.SIGTERM)
	if got := s.note(); got != "STOPPING=1" {
		t.Errorf("at its stop: %q", got)
	}
	if code := s.end(); code != 7 {
		t.Errorf("exit code %d\n%s", code, s.log())
	}
	if list, err := os.ReadDir(state); err != nil || len(list) != 0 || s.log() != "" {
		t.Errorf("left: %v, %v\n%s", list, err, s.log())
	}
}

// TestServiceCrash has a service be killed as by its watchdog, again and again: each crash gives a recording, of
// which the newest are kept, and lines for the journal.
func TestServiceCrash(t *testing.T) {
	g, state := compile(t, "service"), t.TempDir()
	touch(t, state, "own.vplay")
	var all []string
	const crashes, kept = 4, 2
	for range crashes {
		s := startService(t, g, state, "--keep-files", fmt.Sprint(kept))
		s.ready()
		before := recordings(t, state)
		s.signal(syscall.SIGABRT)
		if code := s.end(); code != 128+int(syscall.SIGABRT) {
			t.Errorf("the end is %d\n%s", code, s.log())
		}
		for line := range strings.Lines(s.log()) {
			if !regexp.MustCompile(`^<6>vplayd: `).MatchString(line) {
				t.Errorf("in the journal: %q", line)
			}
		}
		now := recordings(t, state)
		all = append(all, now[len(now)-1])
		if len(now) != min(len(before)+1, kept) {
			t.Errorf("before %q, now %q", before, now)
		}
	}
	list := recordings(t, state)
	if strings.Join(list, " ") != strings.Join(all[crashes-kept:], " ") {
		t.Errorf("kept are %q of %q", list, all)
	}
	if _, err := os.Stat(filepath.Join(state, "own.vplay")); err != nil {
		t.Error(err)
	}
	verified(t, list...)
}

// TestServiceLog has the log, with levels, lead to the journal, and not where standard error is something else.
func TestServiceLog(t *testing.T) {
	g, state := compile(t, "service"), t.TempDir()
	s := startService(t, g, state, "--log", "record=info", "--trigger", "no-such-command")
	s.ready()
	until(t, "the command's line", func() bool { return strings.Contains(s.log(), "no-such-command") })
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 7 {
		t.Errorf("exit code %d", code)
	}
	if !regexp.MustCompile(`(?m)^<4>the command of --trigger has ended component=record output=".*not found.*" status=127$`).MatchString(s.log()) {
		t.Errorf("the journal:\n%s", s.log())
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(limited(t, patience), vplayd, "record", "--service", "-o", state, "--", "sh", "-c", "kill -SEGV $$")
	cmd.Env, cmd.Stderr = append(os.Environ(), "JOURNAL_STREAM=1:1"), &out
	_ = cmd.Run() // it ends as its program
	if !strings.HasPrefix(out.String(), "vplayd: "+state+"/sh-") || strings.Contains(out.String(), "<6>") {
		t.Errorf("standard error:\n%s", &out)
	}
}
