package debug

import (
	"testing"
	"time"

	"vplay/replay"
)

func TestSearchProgress(t *testing.T) {
	for _, c := range []struct {
		done, rest, took, want time.Duration
		ok                     bool
	}{
		{0, time.Minute, time.Second, 0, false},
		{time.Second, 3 * time.Second, 2 * time.Second, 6 * time.Second, true},
		{time.Second, time.Minute, time.Second + 40*time.Millisecond, time.Minute, true},
		{time.Second, 0, time.Second, 0, true},
	} {
		if left, ok := timeLeft(c.done, c.rest, c.took); left != c.want || ok != c.ok {
			t.Errorf("%v of %v in %v: %v left, %v, want %v", c.done, c.done+c.rest, c.took, left, ok, c.want)
		}
	}
	var text string
	report := searchProgress(replay.Progress{}, func(s string) { text = s })
	report(replay.Progress{Intervals: 1, Of: 4})
	if want := "searching, 1 of 4 intervals known"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}
