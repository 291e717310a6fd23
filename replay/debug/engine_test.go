package debug

import (
	"strings"
	"testing"

	"vplay/loader"
	"vplay/replay"
	"vplay/tests/processes"
)

// TestMonitorEngine: the monitor says what executes, as the session has it.
func TestMonitorEngine(t *testing.T) {
	s, err := replay.NewSession(processes.Open(t, processes.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := Open(s, 1<<20, loader.NewSymbols(nil, false))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	g, err := d.NewCursor()
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
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
