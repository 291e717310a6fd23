//go:build linux && amd64

package record

import (
	"fmt"
	"strings"
	"testing"

	"vplay/tests/need"
)

// TestNumberAgain: a process with the number of one that has ended runs as natively, and the
// recording says that it lacks it.
func TestNumberAgain(t *testing.T) {
	r := run{args: []string{compile(t, "samepid")}}
	want := r.native(t)
	need.Machine(t, "a user who may number processes (set_tid of clone3(2))", want.code == 0)
	if !strings.Contains(want.out, "the same") {
		t.Fatalf("natively: %s", want.out)
	}
	got, res := r.recorded(t)
	same(t, got, want)
	if !res.Recorded || res.Reason != "" {
		t.Fatalf("recorded: %t: %s", res.Recorded, res.Reason)
	}
	rec := openRecording(t, res.Path)
	checkProcesses(t, res.Path, 2)
	notes := strings.Join(rec.Manifest().Notes, "\n")
	var children []int32
	for _, p := range rec.Processes() {
		if p.Parent == rec.Manifest().PID {
			children = append(children, p.PID)
		}
	}
	if len(children) != 1 {
		t.Fatalf("children %d, want one", children)
	}
	if note := fmt.Sprintf("process %d runs on unrecorded: an earlier process of the recording had this number", children[0]); !strings.Contains(notes, note) {
		t.Errorf("no note %q in:\n%s", note, notes)
	}
	t.Log(verify(t, res.Path))
}
