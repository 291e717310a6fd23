//go:build linux && amd64

package record

import (
	"context"
	"errors"
	"strings"
	"testing"

	"vplay/checkpoint"
	"vplay/replay"
)

// TestVsyscallRefused: recorded without Options.Vsyscall, replay stops at the
// first call through the vsyscall page and names it.
func TestVsyscallRefused(t *testing.T) {
	needPage(t, "[vsyscall]")
	r := run{args: []string{compile(t, "vsyscall")}}
	want := r.native(t)
	got, res := r.recorded(t)
	same(t, got, want)
	rec, err := checkpoint.Open(res.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	s, err := replay.NewSession(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := s.Machine(rec.Intervals()[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	err = m.RunToEnd(context.Background(), nil)
	var refused *replay.UnsupportedError
	if !errors.As(err, &refused) || !strings.HasPrefix(refused.Name, "time through the vsyscall page") {
		t.Errorf("replay ends with %v", err)
	}
}
