package tool

import (
	"testing"

	"vplay/checkpoint"
	"vplay/replay"
)

// A recording opened for a test that moves about in it: session, timeline and cursor
// together, closed when the test ends.

// Timeline is a timeline with a cursor on it.
type Timeline struct {
	*replay.Cursor
	*replay.Timeline
	Session *replay.Session
}

// OpenTimeline opens a recording for the length of a test; memory bounds what the
// timeline's snapshots keep, in bytes.
func OpenTimeline(t testing.TB, path string, memory int64) *Timeline {
	t.Helper()
	s := OpenSession(t, path)
	tl, err := replay.NewTimeline(s, memory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tl.Close)
	c, err := tl.NewCursor()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &Timeline{c, tl, s}
}

// OpenSession opens a recording for the length of a test.
func OpenSession(t testing.TB, path string) *replay.Session {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	s, err := replay.NewSession(rec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if s.Engine, err = chosen(t.Errorf); err != nil {
		t.Fatal(err)
	}
	return s
}
