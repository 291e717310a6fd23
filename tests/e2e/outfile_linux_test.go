package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOutputInPlace: what is no regular file is written, or refused, and never replaced by a file. `export -o /dev/stdout` and
// `record --force -o /dev/null` by root have put files where the devices were.
func TestOutputInPlace(t *testing.T) {
	t.Parallel()
	g := compile(t, "nullptr", "-O0", "-static")
	rec := g.record(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	isPipe := func(by string) {
		if st, err := os.Lstat(pipe); err != nil || st.Mode()&os.ModeNamedPipe == 0 {
			t.Fatalf("%s has put a file in a pipe's place: %v, %v", by, st.Mode(), err)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"export", "--to", "folded", "-o", pipe, rec}, "fun_"},
		{[]string{"report", "-o", pipe, rec}, "</html>"},
	} {
		type read struct {
			b   []byte
			err error
		}
		done := make(chan read, 1)
		go func() {
			b, err := os.ReadFile(pipe)
			done <- read{b, err}
		}()
		vplaydOutput(t, c.args...)
		isPipe(c.args[0])
		select {
		case r := <-done:
			if r.err != nil || !strings.Contains(string(r.b), c.want) {
				t.Errorf("%s: %v\n%.1000s", c.args[0], r.err, r.b)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s has written nothing", c.args[0])
		}
	}
	out, err := exec.CommandContext(limited(t, patience), vplayd, "record", "--force", "--keep", "always", "-o", pipe, "--", g.bin).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is a device, a pipe or a socket") || !strings.Contains(string(out), "hint: ") {
		t.Errorf("record: %v\n%s", err, out)
	}
	isPipe("record")
}
