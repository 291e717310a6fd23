package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vplay/tests/need"
)

// TestLauncher has the launcher in front of Go's runtime start programs: with the signals, descriptors, arguments and
// environment that they have alone, and with the reason where they cannot be executed. With LISTEN_PID it is the one
// in Go.
func TestLauncher(t *testing.T) {
	need.Recorder(t)
	need.Program(t, "bash", "grep")
	bin := built(t)
	run := func(before, program string) string {
		// The shell that executes vplayd, or the program, is the one whose number LISTEN_PID has.
		out, err := exec.Command("bash", "-c", fmt.Sprintf("trap '' INT HUP USR2 RTMAX; exec 3</dev/null 7>&1; export LISTEN_PID=$$; %s exec %s", before, program)).CombinedOutput()
		return fmt.Sprintf("%s%v", out, err)
	}
	const status = `bash -c 'grep -E "^Sig(Blk|Ign)" /proc/self/status; echo "$0|$1|$2" $X; [ -z "$LISTEN_PID" ] || [ $LISTEN_PID = $$ ] && echo its own; echo >&7 seventh; read -u 3; echo $?; ulimit -n' zero '' 'two words'`
	for _, before := range []string{"X=1", "unset LISTEN_PID; X=2"} {
		if want, got := run(before, status), run(before, bin+" record -- "+status); got != want {
			t.Errorf("%s: recorded:\n%s\nalone:\n%s", before, got, want)
		} else if !strings.Contains(want, "its own") || !strings.Contains(want, "seventh") {
			t.Errorf("alone:\n%s", want)
		}
		script := filepath.Join(t.TempDir(), "script")
		if got := run(before, "bash -c 'echo \"#!/no/such/interpreter\" > "+script+"; chmod +x "+script+"; "+bin+" record -- "+script+"'"); !strings.Contains(got, "cannot be executed: no such file or directory") ||
			!strings.Contains(got, "exit status 126") {
			t.Errorf("%s: %s", before, got)
		}
	}
	// Without a recorder.
	for _, args := range []string{"__launch", "__launch 9 /bin/true true", "__launch x /bin/true true", "__launch 1 /bin/true true"} {
		out, err := exec.Command("bash", "-c", bin+" "+args+" </dev/null").CombinedOutput()
		if err == nil || err.Error() != "exit status 125" {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}
