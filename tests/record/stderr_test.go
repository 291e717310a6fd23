//go:build linux && amd64

package record

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
)

// fired is a line on standard error that asked for a snapshot.
type fired struct {
	line, path string
	err        error
}

// onStderr returns a trigger for lines that match, and what gives, once all is written, those that did.
func onStderr(t *testing.T, pattern string) (*recorder.StderrTrigger, func() []*fired) {
	var list []*fired
	var wait sync.WaitGroup
	dir := t.TempDir()
	return &recorder.StderrTrigger{Pattern: regexp.MustCompile(pattern), Fires: func(line []byte) (string, func(error)) {
		f := &fired{line: string(line), path: filepath.Join(dir, fmt.Sprint(len(list), ".vplay"))}
		list = append(list, f)
		wait.Add(1)
		return f.path, func(err error) { f.err = err; wait.Done() }
	}}, func() []*fired { wait.Wait(); return list }
}

// lastEvent returns the last event of a process's log.
func lastEvent(t *testing.T, path string) checkpoint.Event {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	list := rec.Intervals()
	iv, err := rec.Interval(list[len(list)-1].ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(iv.Events) == 0 {
		t.Fatalf("the last interval of %s has no event", path)
	}
	return iv.Events[len(iv.Events)-1]
}

// TestStderrTrigger has lines on standard error ask for snapshots. Each is of the moment at which
// the line had been written, and replays exactly; the program writes what it does by itself.
func TestStderrTrigger(t *testing.T) {
	prog := compile(t, "stderrlines")
	want := (&run{args: []string{prog}}).native(t)
	lines := []string{
		"fault at once", "fault in parts", "not yet: fault by blocks", "fault that is long", "fault of a child", "fault around a child", "fault of a thread", "fault by a copy",
	}
	for _, c := range []struct {
		name string
		opt  recorder.Options
	}{{"by stops", recorder.Options{}}, {"agent", recorder.Options{Agent: true}}} {
		t.Run(c.name, func(t *testing.T) {
			trigger, all := onStderr(t, "fault")
			c.opt.Stderr, c.opt.Keep = trigger, recorder.KeepCrash
			got, res := (&run{args: []string{prog}, opt: c.opt}).recorded(t)
			same(t, got, want)
			if res.Recorded {
				t.Errorf("a recording at the end: %+v", res)
			}
			var seen []string
			for _, f := range all() {
				if f.err != nil {
					t.Errorf("%.40q: %v", f.line, f.err)
					continue
				}
				if strings.Contains(f.line, "never") || len(f.line) > 64<<10 {
					t.Errorf("a line of %d bytes, %.40q", len(f.line), f.line)
				}
				f.line, _, _ = strings.Cut(f.line, "x")
				seen = append(seen, f.line)
				if e := lastEvent(t, f.path); f.line != "fault of a child" && (e.Kind != checkpoint.EventExit || e.NR != unix.SYS_WRITE && e.NR != unix.SYS_WRITEV) {
					t.Errorf("%.40q: the recording ends with %v of call %d", f.line, e.Kind, e.NR)
				}
				t.Logf("%.40q: %v", f.line, verify(t, f.path))
			}
			if !slices.Equal(seen, lines) {
				t.Errorf("lines %q, want %q", seen, lines)
			}
		})
	}
}
