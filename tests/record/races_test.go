//go:build linux && amd64

package record

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
)

var (
	nativeRuns = flag.Int("nativeruns", 40, "how often TestRaces runs each program by itself")
	plainRuns  = flag.Int("plainruns", 5, "how often TestRaces records each program under the fair schedule")
)

// chaosTries is how many random schedules TestRaces tries at most. About 25 find each race on an EPYC of family 25,
// 20 to 520 on one of family 26, whose threads are through the moment sooner.
const chaosTries = 2500

// TestRaces has races that show neither natively nor under the fair schedule, and do under a
// random one: each run that crashes replays exactly.
func TestRaces(t *testing.T) {
	prog := compile(t, "races")
	for _, c := range []struct{ name, says string }{{"list", "all taken\n"}, {"free", "done\n"}} {
		t.Run(c.name, func(t *testing.T) {
			r := run{args: []string{prog, c.name}, opt: recorder.Options{Keep: recorder.KeepCrash}}
			want := outcome{out: c.says}
			runAtOnce(t, &r, *nativeRuns, want)
			for range *plainRuns {
				got, res := r.recorded(t)
				if same(t, got, want); t.Failed() {
					t.Fatalf("it fails under the fair schedule: %+v", res)
				}
			}
			for seed := uint64(1); ; seed++ {
				if seed > chaosTries {
					t.Fatalf("%d random schedules have not provoked it", chaosTries)
				}
				r.opt.Chaos, r.opt.ChaosSeed = true, seed
				got, res := r.recorded(t)
				if got == want {
					continue
				}
				if res.Signal == 0 || !res.Recorded {
					t.Fatalf("seed %d: %+v, %+v", seed, got, res)
				}
				t.Logf("%v in try %d", got.sig, seed)
				checkChaosNote(t, res.Path, seed)
				t.Log(verify(t, res.Path))
				break
			}
		})
	}
}

// runAtOnce runs a program natively, four runs at a time.
func runAtOnce(t *testing.T, r *run, runs int, want outcome) {
	t.Helper()
	var wg sync.WaitGroup
	slots := make(chan bool, 4)
	for range runs {
		slots <- true
		wg.Go(func() {
			defer func() { <-slots }()
			if got := r.native(t); got != want {
				t.Errorf("natively: %+v", got)
			}
		})
	}
	wg.Wait()
}

// checkChaosNote: a recording says under which seed it was made.
func checkChaosNote(t *testing.T, path string, seed uint64) {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if notes := strings.Join(rec.Manifest().Notes, "\n"); !strings.Contains(notes, fmt.Sprintf("chaos, seed %d", seed)) {
		t.Errorf("notes: %q", notes)
	}
}
