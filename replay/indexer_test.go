package replay

import (
	"path/filepath"
	"testing"

	"vplay/checkpoint"
)

// The program of a loop that ends by force, with the counter at 1.
const (
	forcedCode  = 0x401000
	forcedTurns = 10_000
)

// forcedSession is a session of two intervals, each a loop that ends by force.
func forcedSession(t *testing.T) *Session {
	t.Helper()
	path := filepath.Join(t.TempDir(), "loop.vplay")
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ref := codePage(
		t, w,
		0xb9, forcedTurns&0xff, forcedTurns>>8, 0x00, 0x00, // mov $forcedTurns, %ecx
		0xff, 0xc9, // dec %ecx
		0x75, 0xfc, // jne dec
	)
	start := checkpoint.Context{TID: 10, XState: make([]byte, 576)}
	start.Regs.RIP, start.Regs.RFLAGS = forcedCode, 0x202
	end := start
	end.Regs.RIP, end.Regs.R[1] = forcedCode+7, 1 // at the jump
	for id := range uint32(2) {
		iv := &checkpoint.Interval{
			ID: id, PID: 10, Start: []checkpoint.Context{start}, Pages: []checkpoint.PageEntry{{Addr: forcedCode, Ref: ref}},
			Maps: []checkpoint.Mapping{{Start: forcedCode, End: forcedCode + checkpoint.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtExec}},
			End:  checkpoint.End{Kind: checkpoint.EndForced, Forced: true, Contexts: []checkpoint.Context{end}},
		}
		if err := w.AddInterval(iv); err != nil {
			t.Fatal(err)
		}
	}
	return onAMD(t, w, path)
}

// codePage adds a page to what w writes that begins with code.
func codePage(t *testing.T, w *checkpoint.Writer, code ...byte) checkpoint.PageRef {
	t.Helper()
	page := make([]byte, checkpoint.PageSize)
	copy(page, code)
	ref, err := w.AddPage(page)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// onAMD ends the recording that w writes to path, of an AMD CPU, and opens a session of it for the length of the test.
func onAMD(t *testing.T, w *checkpoint.Writer, path string) *Session {
	t.Helper()
	s, err := NewSession(finished(t, w, path, checkpoint.Manifest{PID: 10, CPU: checkpoint.Identity{Vendor: "AuthenticAMD", XCR0: 7}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the test is over
	return s
}

// TestIndexRunsOnce: the indexer does not run ahead to a forced end before it runs through an
// interval, and knows the interval then.
func TestIndexRunsOnce(t *testing.T) {
	tl, err := NewTimeline(forcedSession(t), 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	defer tl.Close()
	x, err := newExplorer(tl.index, 1) // the end of the first interval is known: a timeline begins where a program can stand
	if err != nil {
		t.Fatal(err)
	}
	defer x.m.Close()
	if _, err := x.through(t.Context(), Target{Instr: forcedTurns}); err != nil || x.m.CPU.Retired != forcedTurns {
		t.Fatalf("at instruction %d: %v", x.m.CPU.Retired, err)
	}
	if x.m.iv.endPoint() != nil {
		t.Error("it has been at the end of the interval")
	}
	if err := tl.BuildIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := tl.Progress(); p.Intervals != 2 || p.Instr != 2*(2*forcedTurns-2) {
		t.Errorf("it knows %+v", p)
	}
}

// guesses are the answers to what asks which state components are in use: whether XMM was counted as in use.
var guesses = map[string]bool{"right": false, "wrong": true}

// TestIndexGuesses: an interval that asks which state components are in use is run through once where the answers
// that the state suggests are right, and what was learnt with wrong ones is dropped.
func TestIndexGuesses(t *testing.T) {
	for name, xmm := range guesses {
		t.Run(name, func(t *testing.T) { checkGuess(t, askingTimeline(t, xmm), xmm) })
	}
}

// askingTimeline is a timeline of an interval that asks.
func askingTimeline(t *testing.T, xmm bool) *Timeline {
	t.Helper()
	path := filepath.Join(t.TempDir(), "asks.vplay")
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AddInterval(askingInterval(t, w, 0, false, xmm)); err != nil {
		t.Fatal(err)
	}
	tl, err := NewTimeline(onAMD(t, w, path), 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tl.Close)
	tl.SetSpacing(askingTurn / 4)
	return tl
}

// TestFindEnd: the end of an interval is found by one run, without running ahead to a forced end, with few snapshots on the way and one
// there; a run whose guess was wrong leaves nothing.
func TestFindEnd(t *testing.T) {
	forced, err := NewTimeline(forcedSession(t), 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	defer forced.Close()
	forced.SetSpacing(forcedTurns / 50)
	if err := forced.index.findEnd(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	l := forced.index.of(1)
	if n := len(l.snapshots); l.end == nil || l.end.Instr != 2*forcedTurns-2 || n < 4 || n > 10 || l.snapshots[n-1].Pos != *l.end {
		t.Errorf("a forced end: %v, %d snapshots", l.end, n)
	}
	for name, xmm := range guesses {
		tl := askingTimeline(t, xmm)
		if err := tl.index.findEnd(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if l := tl.index.of(0); xmm == (l.end != nil) || xmm != (len(l.snapshots) == 1) {
			t.Errorf("with a guess that is %s: the end is %v, %d snapshots", name, l.end, len(l.snapshots))
		}
		if xmm {
			if err := tl.index.findEnd(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		if l := tl.index.of(0); l.end == nil || !l.snapshots[len(l.snapshots)-1].atEnd() {
			t.Errorf("with a guess that is %s: the end is %v in the end", name, l.end)
		}
	}
}

// checkGuess explores interval 0 of tl, whose guess is wrong or right.
func checkGuess(t *testing.T, tl *Timeline, wrong bool) {
	t.Helper()
	iv, err := tl.index.s.interval(0)
	if err != nil {
		t.Fatal(err)
	}
	again, err := tl.exploreOnce(t.Context(), 0)
	if again != wrong || err == nil && wrong || err != nil && !wrong {
		t.Fatalf("explored once: %v, again %t", err, again)
	}
	l := tl.index.known[0]
	if wrong {
		if iv.answers.known || !iv.answers.tried || len(l.segments) != 0 || len(l.snapshots) > 1 || l.end != nil {
			t.Errorf("a wrong guess left %d segments, %d snapshots, end %v", len(l.segments), len(l.snapshots), l.end)
		}
		if err := tl.BuildIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !l.done || len(l.segments) < 8 || len(l.snapshots) < 8 || !iv.answers.known || wrong != (len(iv.answers.bits) == 1) {
		t.Errorf("done %t, %d segments, %d snapshots, answers %v", l.done, len(l.segments), len(l.snapshots), iv.answers.bits)
	}
	for _, k := range l.snapshots[1:] {
		m := tl.index.s.machineAt(k, tl.index.s.Engine)
		var b [1]byte
		m.Mem.Peek(askingArea+512, b[:])
		m.Close()
		if k.Pos.Instr > 3 && b[0] != map[bool]byte{true: 2}[wrong] {
			t.Errorf("XSTATE_BV is %d in the snapshot at %s", b[0], k.Pos)
		}
	}
}
