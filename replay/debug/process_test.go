package debug

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/debug/api"
	"vplay/tests/processes"
)

// TestOpenProcess opens each process of a recording for debuggers, at the same time: each
// stands at its own end, with its own program, memory and threads, and goes back in its
// own past.
func TestOpenProcess(t *testing.T) {
	s, err := replay.NewSession(processes.Open(t, processes.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		pid     int32
		signo   int
		past    api.StopKind // a resume forward from the end
		threads int
		program string
		cwd     string
	}{
		{processes.Parent, 5, api.StopReplayEnd, 1, "/bin/sh", "/src"},
		{processes.Crashed, 11, api.StopReplayEnd, 1, "/usr/lib/cc1", "/src"},
		{processes.Exited, 5, api.StopExited, 2, "/bin/true", "/"},
	} {
		t.Run(fmt.Sprint(c.pid), func(t *testing.T) {
			d, err := OpenProcess(s, c.pid, 1<<20, loader.NewSymbols(nil, false))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			g, err := d.NewCursor()
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			if stop := g.Stop(); stop.Kind != api.StopSignal || stop.Signo != c.signo || stop.TID != int(c.pid) {
				t.Errorf("it stands at %+v", stop)
			}
			if p := g.Process(); p.PID != int(c.pid) || p.ExecFile != c.program || len(g.Threads()) != c.threads || d.Process().Program != c.program {
				t.Errorf("it is %+v with %d threads", p, len(g.Threads()))
			}
			if cwd, err := g.Readlink(fmt.Sprintf("/proc/%d/cwd", c.pid)); err != nil || cwd != c.cwd {
				t.Errorf("it is in %s, %v", cwd, err)
			}
			expectData(t, g, -int64(c.pid))
			if err := g.Rewind(); err != nil {
				t.Fatal(err)
			}
			expectData(t, g, int64(c.pid))
			for range 2 { // to the end, and on from there
				if g.stop, err = g.Resume(t.Context(), api.Resume{Kind: api.Continue}); err != nil {
					t.Fatal(err)
				}
			}
			if g.stop.Kind != c.past || c.past == api.StopExited && g.stop.Code != processes.ExitCode {
				t.Errorf("behind its end is %+v", g.stop)
			}
		})
	}
	if _, err := OpenProcess(s, 5, 1<<20, loader.NewSymbols(nil, false)); !errors.Is(err, checkpoint.ErrNoProcess) {
		t.Errorf("a process that is not there: %v", err)
	}
}

// TestSeekBeforeDivergence: a process whose last interval does not replay is at its final image, which cannot be come to; what
// lies before it can be gone to, and to stay is to stay there.
func TestSeekBeforeDivergence(t *testing.T) {
	g := cursorOf(t, processes.Options{Diverges: processes.Exited}, processes.Exited)
	if err := g.seek(t.Context(), where{kind: whereEnd}, true); err == nil || !replay.Unmatched(err) {
		t.Errorf("to the end: %v", err)
	}
	expectData(t, g, -processes.Exited)
	if err := g.seek(t.Context(), where{kind: whereBegin}, true); err != nil {
		t.Fatal(err)
	}
	expectData(t, g, processes.Exited)
	if err := g.seek(t.Context(), where{kind: whereEnd}, true); err == nil || !replay.Unmatched(err) {
		t.Errorf("to the end from the beginning: %v", err)
	}
	expectData(t, g, processes.Exited)
}

// cursorOf opens a process of the family, as it is made by o, for the length of a test.
func cursorOf(t *testing.T, o processes.Options, pid int32) *Cursor {
	t.Helper()
	s, err := replay.NewSession(processes.Open(t, o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	d, err := OpenProcess(s, pid, 1<<20, loader.NewSymbols(nil, false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	g, err := d.NewCursor()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// expectData wants a number at the beginning of the data of the present position.
func expectData(t *testing.T, g *Cursor, want int64) {
	t.Helper()
	var b [8]byte
	if _, err := g.ReadMemory(processes.Data, b[:]); err != nil || int64(binary.LittleEndian.Uint64(b[:])) != want {
		t.Errorf("its data are %d, want %d (%v)", int64(binary.LittleEndian.Uint64(b[:])), want, err)
	}
}
