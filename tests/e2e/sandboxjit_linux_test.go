package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestWindowsInSandbox: generated code has the guest's pages where it finds them without a check when the command has given up its
// rights, as all do that read a recording.
func TestWindowsInSandbox(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOARCH != "amd64" || !strings.Contains(string(text), " bmi2 ") {
		return // there each access is checked
	}
	rec := compile(t, "slimmed", "-O1").record(t)
	cmd := exec.CommandContext(limited(t, patience), vplayd, "verify", "--log", "jit=debug", "--log-format", "json", rec)
	cmd.Env = append(os.Environ(), "VPLAY_JIT=all")
	var errors bytes.Buffer
	cmd.Stderr = &errors
	if out, err := cmd.Output(); err != nil {
		t.Fatalf("%v\n%s%s", err, out, errors.String())
	}
	var direct, refused int
	for line := range strings.Lines(errors.String()) {
		var x struct {
			Message string
			Counts  struct{ Direct, Refused int }
		}
		if json.Unmarshal([]byte(line), &x) == nil && x.Message == "generated code" {
			direct += x.Counts.Direct
			refused += x.Counts.Refused
		}
	}
	if direct == 0 || refused > direct/4 {
		t.Errorf("%d accesses came to a page that was not in its window, and %d of those pages could not be mapped", direct, refused)
	}
}
