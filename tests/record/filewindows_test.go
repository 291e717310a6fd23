//go:build linux && amd64

package record

import (
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
)

// TestFileWindows has one process change, by a call of each kind, what another has mapped shared
// and reads meanwhile without a call: what that one sees must be in its log by then.
func TestFileWindows(t *testing.T) {
	prog := compile(t, "filewindows")
	for _, name := range []string{
		"removes", "punches", "copies", "sends", "writes", "splices", "splicewaits", "readwaits", "vectorwaits", "vmsplicewaits", "splicesignals", "mapmeanwhile",
	} {
		t.Run(name, func(t *testing.T) {
			c := guestCase{name: name}
			r := run{args: []string{prog, name}}
			want := outcome{out: "end\n"}
			for _, m := range []struct {
				name string
				opt  recorder.Options
			}{
				{"plain", recorder.Options{}},
				{"forced", recorder.Options{ForceEvery: 3 * time.Millisecond}},
			} {
				r.opt = m.opt
				t.Run(m.name, func(t *testing.T) { c.check(t, &r, want) })
			}
		})
	}
}

// TestFileMemory: mappings of a file that are stored to, given up, moved, protected and unmapped while the file is
// written and cut, by chance. RATIONALE.md of checkpoint/record says which of such programs do not replay.
func TestFileMemory(t *testing.T) {
	prog := compile(t, "filemem")
	c := guestCase{name: "filemem"}
	for name, args := range map[string][]string{"shared": {"shared"}, "private": {"private"}, "memory": {"shared", "memory"}} {
		t.Run(name, func(t *testing.T) {
			r := run{args: append([]string{prog}, args...), dir: t.TempDir()}
			c.check(t, &r, r.native(t))
		})
	}
}
