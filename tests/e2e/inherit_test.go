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

// TestInheritedDescriptors compares the descriptors that a program is started with, by
// itself and recorded.
func TestInheritedDescriptors(t *testing.T) {
	need.Recorder(t)
	t.Parallel()
	need.Program(t, "bash")
	show := []string{"bash", "-c", "for f in 3 4 5 6 7 8; do if [ -e /proc/$$/fd/$f ]; then read -r line </proc/$$/fd/$f; echo $f $line; fi; done"}
	record := append([]string{vplayd, "record", "-q", "--"}, show...)
	for _, open := range []string{":", "exec 3</etc/passwd", "exec 4</etc/passwd", "exec 3</etc/passwd 4</etc/group", "exec 3</etc/passwd 5</etc/group 8</dev/null"} {
		run := func(args []string) string {
			out, err := exec.Command("bash", append([]string{"-c", open + `; exec "$@"`, "bash"}, args...)...).Output()
			if err != nil {
				t.Errorf("%q: %v", args, err)
			}
			return string(out)
		}
		if want, got := run(show), run(record); got != want {
			t.Errorf("%q: recorded\n%snative\n%s", open, got, want)
		}
	}
}
