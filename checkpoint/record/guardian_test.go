//go:build linux && amd64

package record

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWardIsLeft: a process that the guardian has stopped, and may not trace, goes on.
func TestWardIsLeft(t *testing.T) {
	cmd := exec.Command("/bin/sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	}()
	pid := cmd.Process.Pid
	await := func(stopped bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); (stateOf(pid) == 'T') != stopped; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("its state is %c", stateOf(pid))
			}
		}
	}
	if err := unix.Tgkill(pid, pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(true)
	w := ward{tid: pid, pid: pid, undo: &undo{}}
	w.leave()
	await(false)
}
