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
