package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestAddressSpaceLimit runs vplayd where Go's runtime cannot start.
func TestAddressSpaceLimit(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "vplayd")
	if b, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, b)
	}
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
