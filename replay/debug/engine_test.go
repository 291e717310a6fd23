package debug

import (
	"strings"
	"testing"

	"vplay/tests/processes"
)

// TestMonitorEngine: the monitor says what executes, as the session has it.
func TestMonitorEngine(t *testing.T) {
	g := cursorOf(t, processes.Options{}, processes.Crashed)
	s := g.s
	for _, text := range []func() string{nil, func() string { return "generated code: 1.5 MiB" }} {
		s.EngineText = text
		want := "the interpreter\n"
		if text != nil {
			want = text() + "\n"
		}
		var out strings.Builder
		if err := g.Monitor(t.Context(), "engine", &out); err != nil || out.String() != want {
			t.Errorf("monitor engine: %q, %v, want %q", out.String(), err, want)
		}
	}
}
