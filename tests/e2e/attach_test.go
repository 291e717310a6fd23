package e2e

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"vplay/tests/need"
)

// TestAttach attaches to a program that runs, which then crashes: the recording leads back to what
// has spoilt the pointer. The command ends with the shell's exit code for the signal.
func TestAttach(t *testing.T) {
	t.Parallel()
	g := compile(t, "record/attachcrash", "-O0", "-pthread")
	prog := exec.CommandContext(limited(t, 5*time.Minute), g.bin)
	stdin, err := prog.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := prog.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := prog.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = prog.Process.Kill(); _ = prog.Wait() }()
	if l, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", l, err)
	}
	rec := filepath.Join(g.dir, "rec.vplay")
	cmd, lines := startAttach(t, prog, "--until-crash", "--slim", "now", "-o", rec)
	if _, err := io.WriteString(stdin, "crash\n"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	const crashed = 128 + 11 // SIGSEGV
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != crashed || !strings.Contains(string(rest), "rec.vplay: ") {
		t.Fatalf("attach ends with %v\n%s", err, rest)
	}
	if info := vplaydOutput(t, "info", rec); !strings.Contains(info, "\ncpu  ") || strings.Contains(info, "presented as") {
		t.Errorf("info tells of a CPU of which the program was not shown all:\n%s", info)
	}
	addr := serve(t, rec, "--symbols", g.dir)
	out := gdb(t, addr, "bt", "info threads", "print n", "watch -l nodes[41].next", "reverse-continue", "bt", "print n == &nodes[41]")
	expect(t, out, places(t, g, "attachcrash", []string{
		`#0 .*main \(\) at .*LINE:CRASH`, `\* \d +Thread .*"attachcrash"`, `= .*0x1230`, `hit Hardware watchpoint 1`, `Old value = .*0x1230`,
		`spoils \(n=.*\) at .*LINE:CAUSE`, `#1 .*meddles`, `= 1`,
	})...)
}

// startAttach attaches to a program, with flags, and returns when it is recorded, with what the command says behind that.
func startAttach(t *testing.T, prog *exec.Cmd, flags ...string) (cmd *exec.Cmd, lines *bufio.Reader) {
	t.Helper()
	args := append([]string{"attach", strconv.Itoa(prog.Process.Pid)}, flags...)
	cmd = exec.CommandContext(limited(t, 5*time.Minute), vplayd, args...)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines = bufio.NewReader(said)
	if l, err := lines.ReadString('\n'); err != nil || !strings.Contains(l, "recording process") {
		t.Fatalf("attach says %q, %v", l, err)
	}
	return cmd, lines
}

// TestAttachEnded attaches to a program that ends by itself: attach says that there is no recording, and why, and ends as the
// program has; --keep always keeps one.
func TestAttachEnded(t *testing.T) {
	need.Recorder(t)
	for _, c := range []struct {
		name, says string
		flags      []string
		kept       bool
	}{
		{"by default", "exit code 3, without a crash: there is no recording (--keep always", nil, false},
		{"kept", "rec.vplay: ", []string{"--keep", "always", "--slim", "never"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			prog := exec.CommandContext(limited(t, 5*time.Minute), "sh", "-c", "read x; exit 3")
			stdin, err := prog.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := prog.Start(); err != nil {
				t.Fatal(err)
			}
			rec := filepath.Join(t.TempDir(), "rec.vplay")
			cmd, lines := startAttach(t, prog, append(c.flags, "-o", rec)...)
			if err := stdin.Close(); err != nil {
				t.Fatal(err)
			}
			_ = prog.Wait() // attach tells how it has ended
			rest, err := io.ReadAll(lines)
			if err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(string(rest), c.says) {
				t.Errorf("attach ends with %v\n%s", err, rest)
			}
			if _, err := os.Stat(rec); (err == nil) != c.kept {
				t.Errorf("recording: %v, kept %v", err, c.kept)
			}
		})
	}
}
