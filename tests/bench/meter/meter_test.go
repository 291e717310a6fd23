package meter

import (
	"os"
	"strings"
	"testing"
	"time"

	"vplay/tests/need"
)

func TestMain(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

// TestOrphans counts what an orphan does after the command itself has ended, and waits for it.
func TestOrphans(t *testing.T) {
	need.LinuxAMD64(t)
	need.Program(t, "sh")
	const busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
	alone, err := Run(nil, Command{Args: []string{"sh", "-c", busy}})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	u, err := Run(nil, Command{Args: []string{"sh", "-c", "(" + busy + ") & exit 3"}, Pinned: true})
	if err != nil {
		t.Fatal(err)
	}
	if u.Code != 3 || u.CPU() < alone.CPU()/3 || u.Wall > time.Since(start) {
		t.Errorf("%+v, alone %+v", u, alone)
	}
}

// TestKill ends a tree with an orphan in it.
func TestKill(t *testing.T) {
	need.LinuxAMD64(t)
	need.Program(t, "sh")
	tree, err := Start(Command{Args: []string{"sh", "-c", "(sleep 100; true) & sleep 100; true"}})
	if err != nil {
		t.Fatal(err)
	}
	for len(Below(tree.PID())) < 4 {
		time.Sleep(time.Millisecond)
	}
	if p, ok := tree.Oldest("/bin/sh"); !ok || p.Name != "sh" {
		t.Errorf("the oldest is %+v", p)
	}
	if n, err := PSS(tree.PID()); err != nil || n < 1<<12 {
		t.Errorf("memory of the runner: %d, %v", n, err)
	}
	tree.Kill()
	start := time.Now()
	u, err := tree.Wait()
	if err != nil || u.Code != 128+9 || time.Since(start) > 30*time.Second {
		t.Errorf("%+v, %v", u, err)
	}
	for _, p := range Below(os.Getpid()) {
		t.Errorf("left behind: %+v", p)
	}
}

// TestCPU reads what a tree has taken while it runs.
func TestCPU(t *testing.T) {
	need.LinuxAMD64(t)
	need.Program(t, "sh")
	tree, err := Start(Command{Args: []string{"sh", "-c", "while :; do :; done"}})
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); tree.CPU() < 50*time.Millisecond; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a loop takes no processor time")
		}
	}
	before := tree.CPU()
	tree.Kill()
	if u, err := tree.Wait(); err != nil || u.CPU() < before {
		t.Errorf("%v at the end, %v before: %v", u.CPU(), before, err)
	}
}

// TestNoProgram is a command that cannot be executed.
func TestNoProgram(t *testing.T) {
	need.LinuxAMD64(t)
	if _, err := Run(nil, Command{Args: []string{"vplay-no-such-program"}}); err == nil || !strings.Contains(err.Error(), "vplay-no-such-program") {
		t.Errorf("%v", err)
	}
}

// TestPercentile is the arithmetic.
func TestPercentile(t *testing.T) {
	v := []int{5, 1, 4, 2, 3}
	for share, want := range map[float64]int{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := Percentile(v, share); got != want {
			t.Errorf("%v: %d, want %d", share, got, want)
		}
	}
}
