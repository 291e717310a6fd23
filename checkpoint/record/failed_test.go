//go:build linux && amd64

package record

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/tests/need"
)

// failingSource is ptrace, of which one look at the mappings of a process fails.
type failingSource struct {
	ptraceSource
	looks, at int
}

var errFails = errors.New("a test has the recorder fail")

func (f *failingSource) open(pid int) (memory, mmInfo, error) {
	mem, mm, err := f.ptraceSource.open(pid)
	return mem, failingMM{mm, f}, err
}

type failingMM struct {
	mmInfo
	source *failingSource
}

func (m failingMM) mappings(tid int, objects *objectTable) ([]mapping, error) {
	if m.source.looks++; m.source.looks == m.source.at {
		return nil, errFails
	}
	return m.mmInfo.mappings(tid, objects)
}

// TestRecorderFails has the recorder fail at moments of a run: the program ends as it would, and of a recording that is written all along
// everything up to the last image is left, and is exact.
func TestRecorderFails(t *testing.T) {
	need.Recorder(t)
	programs := []struct {
		name string
		args []string
	}{
		{"one", []string{"/bin/sh", "-c", `i=0; while [ $i -lt 8000 ]; do [ -e /etc/passwd ]; i=$((i+1)); done; echo $i; exit 3`}},
		{"tree", []string{"/bin/sh", "-c", `i=0; while [ $i -lt 8 ]; do (exit 0); /bin/true | cat; i=$((i+1)); done; echo $i; exit 3`}},
	}
	for _, p := range programs {
		for _, agent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s agent %t", p.name, agent), func(t *testing.T) {
				o := Options{Args: p.args, Keep: KeepAlways, Interval: 2 * time.Millisecond, ForceEvery: 3 * time.Millisecond, Agent: agent}
				count := &failingSource{}
				o.source = count
				want, _ := recorded(t, o, nil)
				for _, share := range []int{20, 40, 60, 80, 99} {
					// The first two looks are before there is anything to keep.
					failing := &failingSource{at: max(count.looks*share/100, 3)}
					o.source = failing
					got, res, _ := recordedOr(t, o, nil)
					if got != want {
						t.Errorf("failed at look %d of %d: the program ended with %+v, else %+v", failing.at, count.looks, got, want)
					}
					if failing.looks < failing.at {
						continue // a run with fewer
					}
					if !res.Recorded {
						t.Errorf("failed at look %d of %d: nothing is left", failing.at, count.looks)
						continue
					}
					exactTo(t, res.Path, errFails.Error())
				}
			})
		}
	}
}

// exactTo checks that a recording ends for a reason, and that all that it has is replayed exactly.
func exactTo(t *testing.T, path, reason string) {
	t.Helper()
	rec := check(t, path)
	if notes := strings.Join(rec.Manifest().Notes, "; "); !strings.Contains(notes, reason) {
		t.Errorf("notes: %s", notes)
	}
	last := map[int32]checkpoint.EndKind{}
	for _, info := range rec.Intervals() {
		last[info.PID] = info.End
	}
	for pid, end := range last {
		if end != checkpoint.EndStop && end != checkpoint.EndExit && end != checkpoint.EndExec {
			t.Errorf("process %d ends with %d", pid, end)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	session, err := replay.NewSession(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	results, err := replay.Verify(ctx, session, replay.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("interval %d of %d: %v", r.Interval, len(results), r.Err)
		}
	}
}
