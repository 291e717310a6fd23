//go:build linux && amd64

package record

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/tests/internal/tool"
)

// The guests here ask the CPU which state components are in use while none need be
// (XINUSE). What it says is not recorded, so replay finds it out.

// TestInUseEverywhere replays such a recording in the ways there are: fat and slim,
// with ends at any instruction, and with a cursor that goes back and forth.
func TestInUseEverywhere(t *testing.T) {
	for _, name := range []string{"xsaveloop", "xsaveread"} {
		for _, mode := range []struct {
			name string
			opt  recorder.Options
		}{
			{"plain", recorder.Options{}},
			{"forced", recorder.Options{Interval: 5 * time.Millisecond, ForceEvery: 3 * time.Millisecond}},
		} {
			t.Run(name+"/"+mode.name, func(t *testing.T) {
				r := run{args: []string{compile(t, name, "-static")}, opt: mode.opt}
				want := r.native(t)
				got, res := r.recorded(t)
				same(t, got, want)
				if !res.Recorded {
					t.Fatal(res.Reason)
				}
				t.Logf("%d forced ends; fat: %v", res.Stats.ForcedEnds, verify(t, res.Path))
				backAndForth(t, res.Path)
				slim, err := replay.Slim(context.Background(), res.Path, replay.SlimOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if slim.Left != 0 || len(slim.Failed) != 0 {
					t.Errorf("slimming: %+v", slim)
				}
				t.Logf("slim: %v", verify(t, res.Path))
				backAndForth(t, res.Path)
				if name != "xsaveread" { // which is short
					return
				}
				slim, err = replay.Slim(context.Background(), res.Path, replay.SlimOptions{FirstLoads: true})
				if err != nil || slim.Slimmed == 0 || slim.Left != 0 {
					t.Fatalf("slimming to first loads: %+v, %v", slim, err)
				}
				t.Logf("first loads: %v", verify(t, res.Path))
				backAndForth(t, res.Path)
			})
		}
	}
}

// TestInUseOnBusyPage replays a program that works on a page with bytes that depend on
// XINUSE and never become known: the answers that replay assumes there must hold or
// be taken back, and it must not be slow for long.
func TestInUseOnBusyPage(t *testing.T) {
	for _, args := range [][]string{nil, {"look"}} {
		for _, mode := range []struct {
			name string
			opt  recorder.Options
		}{
			{"plain", recorder.Options{}},
			{"forced", recorder.Options{Interval: 20 * time.Millisecond, ForceEvery: 20 * time.Millisecond}},
		} {
			t.Run(strings.Join(append(args, mode.name), "/"), func(t *testing.T) {
				r := run{args: append([]string{compile(t, "xsavepage", "-static")}, args...), opt: mode.opt}
				want := r.native(t)
				got, res := r.recorded(t)
				same(t, got, want)
				if !res.Recorded {
					t.Fatal(res.Reason)
				}
				t.Logf("%d forced ends: %v", res.Stats.ForcedEnds, verify(t, res.Path))
			})
		}
	}
}

// backAndForth looks at memory at some moments, come to from before and, in a
// session of its own, from behind: it must be the same.
func backAndForth(t *testing.T, path string) {
	t.Helper()
	const moments = 12
	ctx := context.Background()
	var at []checkpoint.Position
	var sums []uint64
	tl := tool.OpenTimeline(t, path, 1<<30)
	for i := range moments {
		if err := tl.SeekFraction(ctx, float64(i)/moments); err != nil {
			t.Fatal(err)
		}
		at, sums = append(at, tl.Position()), append(sums, memorySum(tl.Machine().Mem))
	}
	tl = tool.OpenTimeline(t, path, 1<<30)
	if err := tl.BuildIndex(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := tl.ToEnd(ctx); err != nil {
		t.Fatal(err)
	}
	for i, p := range slices.Backward(at) {
		if err := tl.Seek(ctx, p); err != nil {
			t.Fatal(err)
		}
		if got := memorySum(tl.Machine().Mem); got != sums[i] {
			t.Errorf("at %v memory is not what it was on the way there", p)
		}
	}
}

// memorySum is a hash of all that can be written and is known.
func memorySum(s *mem.Space) uint64 {
	var sum uint64
	var page mem.Page
	for _, r := range s.Regions() {
		if r.Prot&mem.ProtWrite == 0 {
			continue
		}
		for a := r.Start; a < r.End; a += mem.PageSize {
			if n, _ := s.Peek(a, page[:]); n == len(page) {
				sum += checkpoint.HashPage(a, page[:])
			}
		}
	}
	return sum
}

// TestInUseNamed records a program that tells only once what it has read many
// times. No search can find that out, and the error says where it was read; where
// the CPU does as its state says, it replays.
func TestInUseNamed(t *testing.T) {
	r := run{args: []string{compile(t, "xsaveread", "-static"), "once"}}
	want := r.native(t)
	got, res := r.recorded(t)
	same(t, got, want)
	rec, err := checkpoint.Open(res.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	results, err := tool.Verify(context.Background(), rec, replay.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err == nil {
			continue
		}
		t.Log(r.Err)
		for _, part := range []string{"diverged at", "XINUSE", "the instruction at rip 0x"} {
			if !strings.Contains(r.Err.Error(), part) {
				t.Errorf("the error does not say %q", part)
			}
		}
	}
}
