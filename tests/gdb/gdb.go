// Package gdb drives a real gdb from a test: a batch of commands, or a
// conversation in gdb/MI, as front-ends have it. Any test of the repository may
// import it. The gdb it starts reads no configuration, stands in an empty folder
// that is its home, too, and is ended after a minute.
package gdb

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
	"time"

	"vplay/tests/need"
)

// limit bounds one gdb. It hangs when a server does not answer.
const limit = 60 * time.Second

// Flags keep gdb from reading its configuration and the machine's debug files, so
// that it prints the same everywhere. A later -iex sets another folder.
var Flags = []string{"-nx", "-iex", "set debuginfod enabled off", "-iex", "set debug-file-directory /nonexistent"}

func command(ctx context.Context, t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	args = append(slices.Clone(Flags), args...)
	cmd := exec.CommandContext(ctx, need.Program(t, "gdb"), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "LC_ALL=C")
	return cmd
}

// Batch runs commands and returns what gdb printed. A command that fails does
// not fail the test: gdb's exit code says nothing of use.
func Batch(t testing.TB, commands ...string) string {
	t.Helper()
	return BatchWith(t, nil, commands...)
}

// BatchWith is Batch with flags for gdb.
func BatchWith(t testing.TB, flags []string, commands ...string) string {
	t.Helper()
	args := append([]string{"-batch", "-iex", "set confirm off", "-iex", "set width 0", "-iex", "set style enabled off"}, flags...)
	for _, c := range commands {
		args = append(args, "-ex", c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, err := command(ctx, t, args...).CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("gdb hangs; output so far:\n%s", out)
	}
	if err != nil {
		t.Logf("gdb: %v", err)
	}
	return string(out)
}

// Expect checks that the patterns occur in gdb's output in this order. ^ and $
// are a line's.
func Expect(t testing.TB, out string, patterns ...string) {
	t.Helper()
	rest := out
	for _, p := range patterns {
		loc := regexp.MustCompile("(?m)" + p).FindStringIndex(rest)
		if loc == nil {
			t.Fatalf("gdb did not print %q after what came before. It printed:\n%s", p, out)
		}
		rest = rest[loc[1]:]
	}
}

// Line returns the first line of gdb's output that matches, "" if none does.
func Line(out, pattern string) string { return regexp.MustCompile("(?m)" + pattern).FindString(out) }

// MI is a conversation in gdb/MI (gdb manual, "The GDB/MI Interface").
type MI struct {
	t      testing.TB
	in     io.Writer
	out    io.Reader
	buf    bytes.Buffer
	cancel func()
	cmd    *exec.Cmd
}

// StartMI starts gdb; it is killed at the end of the test.
func StartMI(t testing.TB) *MI {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	m := &MI{t: t, cancel: cancel, cmd: command(ctx, t, "-q", "-i=mi")}
	var err error
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if m.out, err = m.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	m.cmd.Stderr = m.cmd.Stdout
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Kill)
	return m
}

// Kill ends gdb as a crash of it would. Once is enough.
func (m *MI) Kill() {
	m.cancel()
	_ = m.cmd.Wait() // it was killed, perhaps before
}

// Send sends a line whose answer is read later.
func (m *MI) Send(line string) {
	_, _ = fmt.Fprintln(m.in, line) // a line that does not arrive shows in the answer
}

// Signal sends gdb a signal, as a terminal does.
func (m *MI) Signal(sig os.Signal) { _ = m.cmd.Process.Signal(sig) } // gdb's end shows elsewhere

// Say sends a line, and reads until the pattern has come. A line "" is not
// sent. A line that does not arrive shows in the answer.
func (m *MI) Say(line, pattern string) {
	m.t.Helper()
	if line != "" {
		_, _ = fmt.Fprintln(m.in, line)
	}
	re := regexp.MustCompile(pattern)
	b := make([]byte, 4096)
	for {
		if loc := re.FindIndex(m.buf.Bytes()); loc != nil {
			m.buf.Next(loc[1])
			return
		}
		n, err := m.out.Read(b)
		m.buf.Write(b[:n])
		if err != nil {
			m.t.Fatalf("gdb ended before %q: %v\n%s", pattern, err, m.buf.Bytes())
		}
	}
}

// Interrupt sends gdb what Ctrl-C does.
func (m *MI) Interrupt() {
	_ = m.cmd.Process.Signal(os.Interrupt) // if it is gone, the next Say shows it
}
