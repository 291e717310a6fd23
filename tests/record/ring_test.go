//go:build linux && amd64

package record

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
)

// TestRing crashes a program that has had forced ends: what their hashes need is read
// at the crash only, from shadows that write their pages to the recorder themselves, or
// that must not be asked to.
func TestRing(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		windows bool
		scans   bool
	}{
		{"shadows scan", nil, true, true},
		{"shadows write", []string{"full"}, true, false},
		{"under a filter", []string{"filter"}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run{
				args: append([]string{compile(t, "ringcrash")}, c.args...),
				opt:  recorder.Options{Keep: recorder.KeepCrash, ForceEvery: 2 * time.Millisecond, Interval: time.Minute},
			}
			want := r.native(t)
			got, res := r.recorded(t)
			same(t, got, want)
			if got.sig != int(syscall.SIGSEGV) || !res.Recorded {
				t.Fatalf("killed by %d, recorded: %t %s", got.sig, res.Recorded, res.Reason)
			}
			if res.Stats.ForcedEnds < 2 || res.Stats.Windows > 0 != c.windows {
				t.Errorf("%d forced ends, %d windows", res.Stats.ForcedEnds, res.Stats.Windows)
			}
			if res.Stats.Scans > 0 != c.scans {
				t.Errorf("%d scans", res.Stats.Scans)
			}
			t.Log(verify(t, res.Path))
			allPages(t, res.Path)
		})
	}
}

// allPages checks that the first interval has the pages that the program may not read.
func allPages(t *testing.T, path string) {
	t.Helper()
	rec, iv := lastInterval(t, path)
	table, err := rec.PageTable(iv.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range iv.Maps {
		if m.Prot != 0 || m.Object != 0 || m.End-m.Start != 200*checkpoint.PageSize {
			continue
		}
		for a := m.Start; a < m.End; a += checkpoint.PageSize {
			var page [checkpoint.PageSize]byte
			ref, ok := table.Find(a)
			if _, err := rec.Page(ref, &page); !ok || err != nil || page[0] != byte(100+(a-m.Start)/checkpoint.PageSize) {
				t.Fatalf("page %#x: %t, %v, %d", a, ok, err, page[0])
			}
		}
		return
	}
	t.Error("the mapping that cannot be read is not there")
}

// TestMappedAgain crashes a program that maps a file which the program before it, until
// its execve, has mapped as well.
func TestMappedAgain(t *testing.T) {
	r := run{args: []string{compile(t, "execmap"), filepath.Join(t.TempDir(), "file")}, opt: recorder.Options{Keep: recorder.KeepCrash}}
	want := r.native(t)
	got, res := r.recorded(t)
	same(t, got, want)
	if !res.Recorded {
		t.Fatalf("nothing recorded: %s", res.Reason)
	}
	verify(t, res.Path)
}
