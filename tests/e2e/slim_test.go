package e2e

import (
	"os/exec"
	"testing"
	"time"

	"vplay/checkpoint"
	realgdb "vplay/tests/gdb"
)

// openRecording opens a recording for the length of a test.
func openRecording(t *testing.T, path string) *checkpoint.Recording {
	t.Helper()
	r, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// TestSlimKeepsWhatWasWritten slims recordings of a program that moves, gives up
// and leaves alone what it wrote. The slim ones replay, and have every page by
// which the memory at any interval's start differs from what it was before; what
// was written can be read at the crash. Forced ends are found by the content of
// pages that replay does not touch.
func TestSlimKeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"synchronous": {"--interval", "8ms"},
		"forced":      {"--interval", "8ms", "--force-every", "4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := compile(t, "slimmed", "-O1")
			path := g.record(t, append(flags, "--slim", "never")...)
			fat := openRecording(t, path)
			ctx := limited(t, time.Minute)
			for _, args := range [][]string{{"verify", path}, {"slim", path}, {"verify", path}} {
				if out, err := exec.CommandContext(ctx, vplayd, args...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
			}
			slim := openRecording(t, path)
			if sizes := slim.Sizes(); sizes.Fat != 0 || sizes.File >= fat.Sizes().File {
				t.Errorf("the slim recording has %+v", sizes)
			}
			compareWritten(t, fat, slim)
			out := realgdb.Batch(t, "target remote "+serve(t, path, "--symbols", g.dir+"/symbols"),
				"print *config", "print/d moved[1000000]", "print/d shared[1000]")
			realgdb.Expect(t, out, `port = 8080, name = "weather`, `= 7`, `= 6`)
		})
	}
}

// compareWritten compares, at each interval's start, the pages that were written
// since the recording's beginning.
func compareWritten(t *testing.T, fat, slim *checkpoint.Recording) {
	t.Helper()
	written := map[uint64]bool{}
	var before checkpoint.PageTable
	for i, info := range fat.Intervals() {
		now, err := fat.PageTable(info.ID)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := slim.PageTable(info.ID)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			for _, e := range checkpoint.Changes(before, now) {
				written[e.Addr] = true
			}
		}
		before = now
		for a := range written {
			want, ok := now.Find(a)
			if got, found := kept.Find(a); found != ok || got != want {
				t.Fatalf("at the start of interval %d the page at %#x is %v, not %v", info.ID, a, got, want)
			}
			if ok && !slim.HasPage(want) {
				t.Fatalf("interval %d: the content of the page at %#x is not there", info.ID, a)
			}
		}
	}
	if len(written) < 100 {
		t.Errorf("only %d pages were written: not what this test needs", len(written))
	}
}
