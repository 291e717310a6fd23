package debug

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"vplay/dwarf"
)

// TestNoGoroutines asks for goroutines of a program that is none of Go. Those of Go programs
// are compared with Delve's in tests/e2e (TestGoroutinesAgainstDelve).
func TestNoGoroutines(t *testing.T) {
	g := openDemo(t)
	if list, more, err := g.Goroutines(t.Context(), true); !errors.Is(err, dwarf.ErrNoGoroutines) || len(list) != 0 || more != 0 {
		t.Errorf("%d goroutines, %d more, %v", len(list), more, err)
	}
	for line, want := range map[string]string{"goroutines": "no Go runtime", "goroutines 1": "no Go runtime", "goroutines x": "monitor goroutines [stacks|ID]"} {
		var out bytes.Buffer
		err := g.Monitor(t.Context(), line, &out)
		if err != nil {
			out.WriteString(err.Error())
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %q", line, out.String())
		}
	}
}
