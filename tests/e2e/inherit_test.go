package e2e

import (
	"os/exec"
	"testing"

	"vplay/tests/need"
)

// TestInheritedSignals compares the signals that a program finds ignored and blocked,
// by itself and recorded.
func TestInheritedSignals(t *testing.T) {
	need.Recorder(t)
	t.Parallel()
	show := []string{"grep", "-E", "Sig(Ign|Blk):", "/proc/self/status"}
	record := append([]string{vplayd, "record", "-q", "--"}, show...)
	need.Program(t, show[0], "bash", "nohup")
	block := "import os, signal, sys\n" +
		"signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR2, signal.SIGINT, 40})\nos.execvp(sys.argv[1], sys.argv[1:])"
	for _, by := range [][]string{
		{"bash", "-c", `exec "$@"`, "bash"},
		{"nohup"},
		{"bash", "-c", `trap '' HUP INT QUIT USR1 PIPE TERM TSTP XFSZ; exec "$@"`, "bash"},
		{need.Python(t), "-c", block},
	} {
		run := func(args []string) string {
			out, err := exec.Command(by[0], append(by[1:len(by):len(by)], args...)...).Output()
			if err != nil {
				t.Errorf("%q: %v", args, err)
			}
			return string(out)
		}
		if want, got := run(show), run(record); got != want {
			t.Errorf("%q: recorded\n%snative\n%s", by, got, want)
		}
	}
}
