package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vplay/tests/need"
)

// built returns the executable, with its own entry point, which test executables have not.
func built(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "vplayd")
	if b, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, b)
	}
	return bin
}

// TestAddressSpaceLimit runs vplayd where Go's runtime cannot start.
func TestAddressSpaceLimit(t *testing.T) {
	bin := built(t)
	for args, code := range map[string]int{
		"record -- true": 125, "verify x.vplay": 1, "info x.vplay": 1, "": 1, "recorder": 1, "rec": 1,
	} {
		b, err := exec.Command("sh", "-c", "ulimit -v 300000; exec "+bin+" "+args).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != code || !oneError.Match(b) {
			t.Errorf("vplayd %s: %v, want exit code %d, and said\n%s", args, err, code, b)
		}
	}
	if b, err := exec.Command("sh", "-c", "ulimit -v 2097152; exec "+bin+" version").CombinedOutput(); err != nil {
		t.Errorf("with 2 GiB: %v\n%s", err, b)
	}
}

// TestTimerSlack: a recorder has a timer slack of its own, and what it starts has what vplayd was started with.
func TestTimerSlack(t *testing.T) {
	need.Recorder(t)
	bin := built(t)
	const cat = "cat /proc/self/timerslack_ns"
	said := func(args ...string) string {
		t.Helper()
		b, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", args, err, b)
		}
		return strings.TrimSpace(string(b))
	}
	alone := said("sh", "-c", cat)
	for _, before := range [][]string{{"record"}, {"--log", "off", "record", "-q"}} {
		if got := said(append(append([]string{bin}, before...), "--", "sh", "-c", cat)...); got != alone {
			t.Errorf("%s: the program has %s ns, and %s alone", before, got, alone)
		}
	}
	need.Machine(t, "root, to read another process's timer slack", os.Getuid() == 0)
	if got := said(bin, "record", "--", "sh", "-c", "cat /proc/$PPID/timerslack_ns"); got != "1000000" {
		t.Errorf("the recorder has %s ns", got)
	}
}
