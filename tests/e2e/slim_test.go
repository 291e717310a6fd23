package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/mem"
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
			ctx := limited(t, patience)
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

// compareFinal replays a recording's last interval: each byte that is known there and in the final image is the same.
func compareFinal(t *testing.T, rec *checkpoint.Recording) {
	t.Helper()
	s, err := replay.NewSession(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := s.Final()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Mem.Close()
	infos := rec.LastImageOf(f.PID)
	m, err := s.Machine(infos[len(infos)-1].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.RunToEnd(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	same := 0
	for r := range f.Mem.AddressMap().From(0) {
		for a := r.Start; a < r.End && a < mem.MaxUser; a += mem.PageSize {
			var x, y mem.Page
			var kx, ky mem.Mask
			if !f.Mem.PeekRaw(a, &x, &kx) || !m.Mem.PeekRaw(a, &y, &ky) {
				continue
			}
			for i := range x {
				if !kx.Has(i) || !ky.Has(i) {
					continue
				}
				if x[i] != y[i] {
					t.Fatalf("at the end the byte at %#x is %#x, in the final image %#x", a+uint64(i), y[i], x[i])
				}
				if x[i] != 0 {
					same++
				}
			}
		}
	}
	if same < 10_000 {
		t.Errorf("only %d bytes are compared", same)
	}
}

// TestSlimToFirstLoads slims a crash, threads, and a loop with forced ends, to first loads. They replay exactly by both engines and are smaller
// than slim ones; at the crash gdb has the stack and what was used, and goes back to the cause; what
// nothing needed cannot be read, and is explained.
func TestSlimToFirstLoads(t *testing.T) {
	t.Parallel()
	ctx := limited(t, patience)
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(ctx, vplayd, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	// slimmed slims the recording at path to pages and then to first loads, which leave at most part of the file.
	slimmed := func(path string, part float64) {
		t.Helper()
		run("slim", path)
		pages := openRecording(t, path).Sizes()
		run("slim", "--first-loads", path)
		if z := openRecording(t, path).Sizes(); z.FirstLoads != pages.Slim || z.Fat != 0 || float64(z.File) > part*float64(pages.File) {
			t.Errorf("%s has %+v, slim it had %+v", path, z, pages)
		}
		run("verify", path)
		run("verify", "--no-jit", path)
	}
	for _, c := range []struct {
		program string
		options []string
		least   int // so many intervals are recorded at least, and joined to fewer
	}{
		// Each of the three processes may have one interval only. Where a thread's turn begins with the interval, it is not joined.
		{"crew", []string{"-O1", "-pthread"}, 0},
		{"long", []string{"-O1", "-DTURNS=200000"}, 2},
	} {
		recorded := compile(t, c.program, c.options...).
			record(t, "--slim", "never", "--keep", "always", "--interval", "1ms", "--force-every", "1")
		joined := filepath.Join(t.TempDir(), "joined.vplay")
		if err := os.Link(recorded, joined); err != nil {
			t.Fatal(err)
		}
		// A page that several intervals need is kept for each with other bytes: how much is left depends on where they begin.
		slimmed(recorded, 0.9)
		run("slim", "--first-loads", "--length", "1s", joined)
		run("verify", joined)
		apart, whole := openRecording(t, recorded), openRecording(t, joined)
		if n, joined := len(apart.Intervals()), len(whole.Intervals()); n < c.least || joined > n || c.least > 0 && joined == n {
			t.Errorf("%s: %d intervals, joined to %d", c.program, n, joined)
		}
		compareFinal(t, whole)
		compareFinal(t, apart)
	}
	g := compile(t, "ledger", "-O1")
	path := g.record(t, "--slim", "never")
	slimmed(path, 0.66)
	expect(t, run("info", path)+run("dump", path), `1 interval slim to first loads`, `pages \(first loads\)`)
	out := realgdb.Batch(t, "target remote "+serve(t, path, "--symbols", g.dir+"/symbols"),
		"backtrace", "print accounts[2]", "info locals", "watch accounts[2].next", "reverse-continue", "backtrace", "info locals",
		"x/8xb &_IO_wfile_jumps", "monitor why &_IO_wfile_jumps", "python import gdb", "x/2i $pc")
	realgdb.Expect(t, out, `#0 .*sum .*CRASH|#0 .*sum`, `#1 .*main`, `name = "overlong"`, `total = \d+`, `rename_account .*overlong name`, `i = \d+`)
}
