package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	realgdb "vplay/tests/gdb"
)

// core-handler, started as the kernel does, with the core file on its standard input, while the program is still in
// /proc: a program that waits is one, with a core file that gdb has written of it.

// heldProgram is a program that waits, and its core file.
type heldProgram struct {
	*guest
	pid  int
	core []byte
}

func holdProgram(t *testing.T) *heldProgram {
	t.Helper()
	g := compile(t, "core/four", "-pthread", "-DWAITS")
	cmd := exec.CommandContext(limited(t, 2*time.Minute), g.bin)
	cmd.Dir, cmd.Env = g.dir, append(os.Environ(), "VPLAY_TEST_TOKEN=abracadabra", "VPLAY_TEST_PLAIN=seen")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // it was killed
	})
	for range 200 { // until its threads wait
		if list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", cmd.Process.Pid)); len(list) == 4 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	path := filepath.Join(t.TempDir(), "gcore")
	out := realgdb.BatchWith(t, []string{"-p", fmt.Sprint(cmd.Process.Pid)}, "generate-core-file "+path)
	core, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("gdb wrote no core file:\n%s", out)
	}
	return &heldProgram{g, cmd.Process.Pid, core}
}

// crash calls core-handler. It returns the folder's files and the log.
func (p *heldProgram) crash(t *testing.T, dir string, core []byte, at int, flags ...string) (names []string, log string) {
	t.Helper()
	logFile := filepath.Join(t.TempDir(), "log")
	args := append([]string{"core-handler", "--dir", dir, "--log-file", logFile}, flags...)
	args = append(args, "--", fmt.Sprint(p.pid), fmt.Sprint(os.Getuid()), fmt.Sprint(os.Getgid()), "11", fmt.Sprint(at), "1", "web1")
	cmd := exec.CommandContext(limited(t, patience), vplayd, args...)
	cmd.Stdin, cmd.Dir, cmd.Env = bytes.NewReader(core), "/", []string{} // as the kernel does
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("core-handler is loud: %v, %s", err, out)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Name() != ".lock" {
			names = append(names, e.Name())
		}
	}
	b, _ := os.ReadFile(logFile) // nothing was said
	return names, string(b)
}

// TestCoreHandler: a recording of a crash has what /proc had, and gdb needs none of the program's files.
func TestCoreHandler(t *testing.T) {
	t.Parallel()
	p := holdProgram(t)
	dir := filepath.Join(t.TempDir(), "store")
	isRoot := os.Geteuid() == 0
	if isRoot { // who may look at a deleted file that is mapped
		if err := os.Remove(p.bin); err != nil {
			t.Fatal(err)
		}
	}
	names, log := p.crash(t, dir, p.core, 1_700_000_000)
	want := fmt.Sprintf("four-%d-20231114T221320Z.vplay", p.pid)
	if len(names) != 1 || names[0] != want || !strings.Contains(log, want) || strings.Count(log, "\n") != 1 {
		t.Fatalf("the folder holds %q, want %s; the log:\n%s", names, want, log)
	}
	rec := filepath.Join(dir, want)
	if st, err := os.Stat(rec); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	out, err := exec.Command(vplayd, "info", "--no-local-files", rec).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	expect(t, string(out), `^program +`+p.bin, `^recorded +.* on web1, Linux \d`, `one moment of 4 threads, with no past`, `masked there, .*VPLAY_TEST_TOKEN`, `^note +user \d+, group \d+`)
	if strings.Contains(string(out), "abracadabra") {
		t.Errorf("info shows a secret:\n%s", out)
	}
	if !isRoot {
		if err := os.Remove(p.bin); err != nil {
			t.Fatal(err)
		}
	}
	at := func(mark string) string { return fmt.Sprintf(`four\.c:%d\b`, p.line(t, mark)) }
	out = []byte(gdb(t, serve(t, rec), "info threads", "thread apply all bt", "reverse-continue"))
	expect(t, string(out), `"four"`, `"holder"`)
	for _, mark := range []string{"JOIN", "WAIT", "READ", "HOLD"} {
		expect(t, string(out), at(mark))
	}
}

// TestCoreHandlerFails: what goes wrong is a line in the log, and leaves nothing.
func TestCoreHandlerFails(t *testing.T) {
	t.Parallel()
	p := holdProgram(t)
	dir := filepath.Join(t.TempDir(), "store")
	for _, c := range []struct {
		name string
		core []byte
		want string
		args []string
	}{
		{"nothing", nil, "not a core file", nil},
		{"no core file", []byte(strings.Repeat("no core file\n", 1000)), "not a core file", nil},
		{"cut off in its header", p.core[:200], "behind its end", nil},
		{"too much", p.core, "limit", []string{"--limit", "1M"}},
		{"too long", p.core, "deadline", []string{"--time", "1ns"}},
	} {
		names, log := p.crash(t, dir, c.core, 1_700_000_000, c.args...)
		if len(names) != 0 || !strings.Contains(log, c.want) || !strings.Contains(log, "nothing kept") || strings.Count(log, "\n") != 1 {
			t.Errorf("%s: the folder holds %q, the log %q", c.name, names, log)
		}
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil { // whatever the umask
		t.Fatal(err)
	}
	if names, log := p.crash(t, open, p.core, 1); len(names) != 0 || !strings.Contains(log, "may be written by others") {
		t.Errorf("a folder that all may write to: %q, %q", names, log)
	}
	for at := range 5 {
		names, log := p.crash(t, dir, p.core, 1_700_000_000+at, "--keep", "2")
		if len(names) != min(at+1, 2) || at >= 2 != strings.Contains(log, "removed four-") {
			t.Errorf("crash %d: the folder holds %q, the log %q", at, names, log)
		}
	}
	// gdb writes the notes last, the kernel first.
	if _, log := p.crash(t, dir, p.core, 1_800_000_000, "--max-core", "100K"); !strings.Contains(log, "no thread") {
		t.Errorf("a core file without its end: %q", log)
	}
}
