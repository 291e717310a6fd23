package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vplay/tests/need"
)

// TestSanitizerHints follows what record says of programs that were built with
// AddressSanitizer: how their errors become crashes, and how one that another program
// executes keeps its exit code.
func TestSanitizerHints(t *testing.T) {
	need.Recorder(t)
	t.Parallel()
	dir := t.TempDir()
	prog := filepath.Join(dir, "asan")
	source := filepath.Join("..", "guest", "record", "asan.c")
	if out, err := exec.Command(need.Program(t, "gcc"), "-g", "-w", "-fsanitize=address", "-o", prog, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	const (
		aborts = "ASAN_OPTIONS=abort_on_error=1"
		leaks  = "LSAN_OPTIONS=detect_leaks=0"
	)
	for _, c := range []struct {
		name  string
		env   string
		args  []string
		code  int // -1: killed by SIGABRT
		hints string
	}{
		{"an error", "", []string{prog, "overflow"}, 1, aborts},
		{"an error is a crash", aborts, []string{prog, "overflow"}, -1, ""},
		{"executed by another", "", []string{need.Program(t, "bash"), "-c", `exec "$@"`, "bash", prog, "fine"}, 1, leaks},
		{"executed by another, told", leaks, []string{need.Program(t, "bash"), "-c", `exec "$@"`, "bash", prog, "fine"}, 5, ""},
	} {
		path := filepath.Join(dir, "x.vplay")
		cmd := exec.Command(vplayd, append([]string{"record", "--slim", "never", "-o", path, "--"}, c.args...)...)
		cmd.Env = os.Environ()
		if c.env != "" {
			cmd.Env = append(cmd.Env, c.env)
		}
		var said bytes.Buffer
		cmd.Stderr = &said
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != c.code {
			t.Errorf("%s: %v, want code %d\n%s", c.name, err, c.code, said.String())
		}
		for _, hint := range []string{aborts, leaks} {
			says := strings.Contains(said.String(), "vplayd: ") && strings.Contains(said.String(), hint)
			if hint == c.hints && !says || hint == leaks && c.hints != leaks && says {
				t.Errorf("%s: %q said: %t\n%s", c.name, hint, says, said.String())
			}
		}
		if _, err := os.Stat(path); (err == nil) != (c.code == -1) {
			t.Errorf("%s: a recording: %v", c.name, err)
		}
		_ = os.Remove(path)
	}
}
