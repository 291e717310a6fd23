//go:build linux && amd64

package record

import (
	"strings"
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
		"readjoined", "vectorjoined", "splicejoined", "vmsplicejoined", "readmeanwhile",
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
// written and cut, and looked at by children, by chance.
func TestFileMemory(t *testing.T) {
	prog := compile(t, "filemem")
	c := guestCase{name: "filemem"}
	for _, args := range [][]string{{"shared"}, {"private"}, {"quiet"}, {"shared", "memory"}, {"private", "memory"}} {
		for name, opt := range map[string]recorder.Options{"plain": {}, "forced": {ForceEvery: 3 * time.Millisecond}} {
			t.Run(strings.Join(append(args, name), " "), func(t *testing.T) {
				r := run{args: append([]string{prog}, args...), dir: t.TempDir(), opt: opt}
				c.check(t, &r, r.native(t))
			})
		}
	}
}

// TestViewMoves: pages of a file that are mapped privately are moved by a call that waits for its turn while another process writes
// to the file. What that wrote was looked for where the pages had been, and not logged.
func TestViewMoves(t *testing.T) {
	prog := compile(t, "viewmoves")
	c := guestCase{name: "viewmoves"}
	for name, opt := range map[string]recorder.Options{
		"stops":         {},
		"stops, forced": {ForceEvery: 3 * time.Millisecond},
		"agent":         {Agent: true},
		"agent, forced": {Agent: true, ForceEvery: 3 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			r := run{args: []string{prog, "300"}, dir: t.TempDir(), opt: opt}
			c.check(t, &r, outcome{out: "end\n"})
		})
	}
}

// TestDropped: forced ends at stores to private pages of a file that the interval has given up, which are the
// file's again by then: in the page fault of the store, and behind it where each store keeps the hash of memory.
func TestDropped(t *testing.T) {
	prog := compile(t, "dropped")
	for _, name := range []string{"faults", "marks"} {
		t.Run(name, func(t *testing.T) {
			c := guestCase{name: name}
			r := run{args: []string{prog, name}, dir: t.TempDir(), opt: recorder.Options{ForceEvery: 3 * time.Millisecond}}
			c.check(t, &r, r.native(t))
		})
	}
}
