// Package gdbsuite runs GDB's own tests against vplayd: all of them by run.sh, a part
// of them with the other tests.
package gdbsuite

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"vplay/tests/need"
)

// part are files of gdb.reverse and others that take seconds.
var part = []string{
	"break-reverse", "consecutive-reverse", "finish-reverse", "machinestate", "step-reverse", "until-reverse", "watch-reverse",
	"gdb.base/hbreak", "gdb.base/recurse", "gdb.python/py-frame", "gdb.threads/tls-shared", "gdb.threads/threadapply",
}

// TestPart wants of each file what run.sh wants: no failure but those in
// expected.txt, and these.
func TestPart(t *testing.T) {
	need.Recorder(t)
	need.Program(t, "gdb", "gcc", "bash")
	src := source(t)
	_, err := exec.LookPath("runtest")
	need.Machine(t, "dejagnu, which tests/run.sh installs where Debian's archive is", err == nil)
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "./run.sh", part...)
	cmd.Env = append(os.Environ(), "VPLAY_GDBSUITE="+t.TempDir(), "VPLAY_GDBSUITE_SRC="+src)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
