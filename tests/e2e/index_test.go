package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestIndexKept serves a recording with --index until all of it is known, and again.
func TestIndexKept(t *testing.T) {
	t.Parallel()
	g := compile(t, "tour", "-O0")
	rec := g.record(t, "--keep", "always", "--slim", "never")
	index := rec + ".index"
	serveOnce := func(want string) {
		t.Helper()
		log := filepath.Join(t.TempDir(), "log")
		out, err := os.Create(log)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		cmd := exec.CommandContext(limited(t, 60*time.Second), vplayd, "serve", "--listen", "unix:"+filepath.Join(t.TempDir(), "s"), "--index", rec)
		cmd.Stderr = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			text, _ := os.ReadFile(log)
			kept, _ := os.ReadFile(index)
			if strings.HasPrefix(string(kept), "VPLAYIX") && strings.Contains(string(text), "serving on") {
				break
			}
		}
		_ = cmd.Process.Signal(os.Interrupt)
		err = cmd.Wait()
		if text, _ := os.ReadFile(log); err != nil || !strings.Contains(string(text), want) {
			t.Fatalf("%v, %q is not in\n%s", err, want, text)
		}
		st, err := os.Stat(index)
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Fatalf("%v, mode %v", err, st)
		}
	}
	serveOnce("serving on")
	serveOnce(": 1 of 1 interval known")
	if out, err := exec.Command(vplayd, "slim", rec).CombinedOutput(); err != nil || !strings.Contains(string(out), "1 interval slimmed") {
		t.Fatalf("%v: %s", err, out)
	}
	serveOnce(": 1 of 1 interval known")
	if err := os.WriteFile(index, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	serveOnce("is not used and will be written anew")
	serveOnce(": 1 of 1 interval known")
	expect(t, gdb(t, serve(t, rec, "--index", "--symbols", g.dir+"/symbols"), loadCommands, "vplay last-write total"), `on_signal`)
}
