package debug

import (
	"fmt"
	"strings"
	"testing"

	"vplay/checkpoint"
	"vplay/replay/debug/api"
	"vplay/tests/processes"
)

// TestHistory looks at the history of a process that became another program, and at where
// the cursor is in it.
func TestHistory(t *testing.T) {
	g := cursorOf(t, processes.Options{}, processes.Crashed)
	h, err := g.History(t.Context(), 0, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Intervals) != 3 || h.Intervals[0].From != 0 || h.Intervals[2].To != 1 {
		t.Fatalf("the intervals are %+v", h.Intervals)
	}
	if len(h.Threads) != 1 || h.Threads[0].TID != processes.Crashed {
		t.Errorf("the threads are %+v", h.Threads)
	}
	last := h.Marks[len(h.Marks)-1]
	if last.Kind != "fault" && last.Kind != "signal" {
		t.Errorf("the last mark is %+v", last)
	}
	for i := 1; i < len(h.Marks); i++ {
		if h.Marks[i].At < h.Marks[i-1].At || h.Marks[i].Event <= h.Marks[i-1].Event {
			t.Errorf("marks out of order: %+v, %+v", h.Marks[i-1], h.Marks[i])
		}
	}
	if now := g.Moment(); now.At != 1 || now.Position != "end" || now.Event <= last.Event {
		t.Errorf("at the end the moment is %+v", now)
	}
	// A mark of the program before is reached through its interval.
	if h.Marks[0].Seek != "1:0" {
		t.Errorf("the first mark is %+v", h.Marks[0])
	}
	m := h.Marks[len(h.Marks)-2]
	if err := g.Monitor(t.Context(), "seek "+m.Seek, discard{}); err != nil {
		t.Fatalf("seek %s: %v", m.Seek, err)
	}
	if now := g.Moment(); now.Event != m.Event || now.At > m.At+1e-9 || now.At < m.At-0.2 {
		t.Errorf("at %+v the moment is %+v", m, now)
	}
	for _, bad := range [][2]float64{{0.5, 0.5}, {-1, 1}, {0, 1.5}} {
		if _, err := g.History(t.Context(), bad[0], bad[1], 10); err == nil {
			t.Errorf("there is a history of %v", bad)
		}
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// TestMarks: marks and turns that are too close to be told apart are one.
func TestMarks(t *testing.T) {
	h := newHistorian(0, 1, 10)
	for i, m := range []struct {
		at   float64
		tid  int
		kind string
	}{
		{0, 1, "enter"}, {0.01, 1, "instr"}, {0.02, 1, "thread"}, {0.05, 1, "enter"}, {0.06, 2, "enter"}, {0.07, 1, "signal"}, {0.075, 1, "signal"},
		{0.08, 1, "enter"}, {0.085, 1, "instr"}, {0.09, 1, "thread"}, {0.5, 1, "enter"}, {0.5, 1, "fault"},
	} {
		h.mark(api.HistoryMark{At: m.at, TID: m.tid, Kind: m.kind, Count: 1, Event: i})
	}
	h.thinSignals(10)
	var got []string
	for _, m := range h.out.Marks {
		got = append(got, fmt.Sprintf("%d:%s*%d", m.TID, m.Kind, m.Count))
	}
	if text := strings.Join(got, " "); text != "1:enter*3 1:instr*2 1:thread*2 2:enter*1 1:signal*1 1:signal*1 1:enter*1 1:fault*1" {
		t.Errorf("the marks are %s", text)
	}
	for _, x := range []struct {
		tid      checkpoint.TID
		from, to float64
	}{{1, 0, 0.3}, {2, 0.3, 0.35}, {1, 0.35, 0.6}, {3, 0.6, 1}} {
		h.turn(x.tid, x.from, x.to)
	}
	if len(h.out.Turns) != 2 || h.out.Turns[0].To != 0.6 || h.out.Turns[1].TID != 3 {
		t.Errorf("the turns are %+v", h.out.Turns)
	}
}

// TestManySignals: of thousands of signals those that are alike and close are one mark, but for the
// newest, and the others stay.
func TestManySignals(t *testing.T) {
	h := newHistorian(0, 1, 10)
	for i := range 5000 {
		h.mark(api.HistoryMark{At: float64(i) / 5000, TID: 1, Kind: "signal", Text: fmt.Sprintf("--- SIGPROF {si_value=%d} ---", i), Count: 1, Event: i})
	}
	h.mark(api.HistoryMark{At: 0.99, TID: 1, Kind: "enter", Count: 1, Event: 5000})
	h.mark(api.HistoryMark{At: 0.99, TID: 1, Kind: "signal", Text: "--- SIGTERM {} ---", Count: 1, Event: 5001})
	h.mark(api.HistoryMark{At: 1, TID: 1, Kind: "signal", Text: "--- SIGPROF {} ---", Count: 1, Event: 5002})
	h.thinSignals(10)
	all := 0
	for _, m := range h.out.Marks {
		all += m.Count
	}
	n := len(h.out.Marks)
	if all != 5003 || n < 13 || n > 14 {
		t.Fatalf("%d marks stand for %d events", n, all)
	}
	if last := h.out.Marks[n-1]; last.Event != 5002 || last.Count != 1 || h.out.Marks[n-2].Event != 5001 {
		t.Errorf("the last marks are %+v, %+v", h.out.Marks[n-2], last)
	}
}
