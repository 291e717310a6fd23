//go:build linux && amd64

package record

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vplay/checkpoint"
)

// TestStorers: what a process that is not recorded stores to a file that the program has mapped
// is in the log where it had the file mapped before the program; where it came later, a note says
// who it was.
func TestStorers(t *testing.T) {
	t.Parallel()
	prog := compile(t, "storedto")
	for _, first := range []bool{true, false} {
		t.Run(map[bool]string{true: "before", false: "after"}[first], func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "shared")
			if err := os.WriteFile(file, make([]byte, 4096), 0o600); err != nil {
				t.Fatal(err)
			}
			other := exec.Command(prog, "store", file)
			t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
			r := run{args: []string{prog, "ask", file}}
			if first {
				start(t, other, file)
			} else {
				r.kick = func(int) {
					await(t, file, asked)
					start(t, other, file)
				}
			}
			got, res := r.recorded(t)
			same(t, got, outcome{out: "385\n"})
			rec, err := checkpoint.Open(res.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer rec.Close()
			notes := strings.Join(rec.Manifest().Notes, "\n")
			want := fmt.Sprintf("%s is shared with process %d, which is not recorded", file, other.Process.Pid)
			if first {
				verify(t, res.Path)
			} else {
				want = fmt.Sprintf("process %d, which is not recorded, has %s mapped, too", other.Process.Pid, file)
			}
			if !strings.Contains(notes, want) {
				t.Errorf("notes: %s", notes)
			}
		})
	}
}

// Bytes of the file: the other process has it mapped; the program has asked.
const (
	ready = 0
	asked = 4
)

// start starts the other process and waits until it has mapped the file.
func start(t *testing.T, other *exec.Cmd, file string) {
	if err := other.Start(); err != nil {
		t.Error(err)
		return
	}
	await(t, file, ready)
}

// await waits until a byte of the file is 1.
func await(t *testing.T, file string, at int) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if b, _ := os.ReadFile(file); len(b) > at && b[at] == 1 {
			return
		}
	}
	t.Errorf("byte %d of the file is not 1", at)
}
