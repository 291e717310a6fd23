package replay

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"vplay/checkpoint"
	"vplay/tests/processes"
)

// family opens a recording of several processes for replay.
func family(t *testing.T, o processes.Options) *Session {
	t.Helper()
	s, err := NewSession(processes.Open(t, o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestProcesses walks through each process of a recording of several: the other ones'
// intervals lie between and are not its own, though they are of the same image.
func TestProcesses(t *testing.T) {
	for _, about := range []int32{processes.Parent, processes.Crashed, 77} {
		s := family(t, processes.Options{About: about})
		for _, pid := range []int32{0, processes.Parent, processes.Crashed, processes.Exited} {
			tl, of, err := (*Timeline)(nil), pid, error(nil)
			if pid == 0 { // that which the recording is about
				if of = about; about == 77 { // no interval is its: that of the last one
					of = processes.Crashed
				}
				tl, err = NewTimeline(s, 1<<20)
			} else {
				tl, err = NewProcessTimeline(s, pid, 1<<20)
			}
			if err != nil {
				t.Fatal(err)
			}
			images := processes.Of(of)
			walk(t, tl, of, images[len(images)-1])
			tl.Close()
		}
		if _, err := NewProcessTimeline(s, 5, 1<<20); !errors.Is(err, checkpoint.ErrNoProcess) {
			t.Errorf("a process that is not there: %v", err)
		}
	}
}

// walk goes through a timeline, which has the intervals want of a process.
func walk(t *testing.T, tl *Timeline, pid int32, want []uint32) {
	t.Helper()
	cur, err := tl.NewCursor()
	if err != nil {
		t.Fatal(err)
	}
	defer cur.Close()
	if !slices.Equal(tl.Intervals(), want) || tl.PID() != pid {
		t.Errorf("process %d is %d with the intervals %v, want %v", pid, tl.PID(), tl.Intervals(), want)
	}
	if n := tl.EventCount(^uint32(0)); n != len(want) {
		t.Errorf("process %d has %d events, want %d", pid, n, len(want))
	}
	forward := visited(t, cur, cur.StepForward)
	if !slices.Equal(forward, want) {
		t.Errorf("process %d goes through %v, want %v", pid, forward, want)
	}
	back := visited(t, cur, cur.StepBack)
	slices.Reverse(back)
	if !slices.Equal(back, want) {
		t.Errorf("process %d goes back through %v, want %v", pid, back, want)
	}
}

// visited steps to the end and lists the intervals on the way, by what the program
// itself has of them, and checks whose memory it is.
func visited(t *testing.T, tl *Cursor, step func(context.Context) (Stop, error)) (out []uint32) {
	t.Helper()
	for range 100 {
		m := tl.Machine()
		var b [1]byte
		if n, _ := m.Mem.Peek(processes.PIDAt, b[:]); n != 1 || checkpoint.TID(b[0]) != m.TID() {
			t.Errorf("at %s the memory of %d, the thread is %d", tl.Position(), b[0], m.TID())
		}
		if id := uint32(m.CPU.R[3]); len(out) == 0 || out[len(out)-1] != id {
			out = append(out, id)
		}
		stop, err := step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if stop.Edge {
			break
		}
	}
	return out
}

// TestFinalOfProcesses opens the image at the end of each process, its own one.
func TestFinalOfProcesses(t *testing.T) {
	s := family(t, processes.Options{})
	for _, c := range []struct {
		pid, signo int32
		rip        uint64
		threads    int
	}{
		{processes.Parent, 0, processes.End, 1},
		{processes.Crashed, 11, processes.Fault, 1},
		{processes.Exited, 0, processes.End, 2},
	} {
		f, err := s.FinalOf(c.pid)
		if err != nil {
			t.Fatal(err)
		}
		checkFinal(t, f, c.pid)
		if f.PID != c.pid || f.Signo != c.signo || f.Current().State.RIP != c.rip || len(f.Threads) != c.threads {
			t.Errorf("process %d ends as %d at %#x with signal %d and %d threads", c.pid, f.PID, f.Current().State.RIP, f.Signo, len(f.Threads))
		}
		d := s.Divert(f)
		images := processes.Of(c.pid)
		last := images[len(images)-1]
		if d.pid != c.pid || d.from.Interval != last[len(last)-1] {
			t.Errorf("a diversion of process %d is one of %d, from %s", c.pid, d.pid, d.from)
		}
		d.Close()
		f.Mem.Close()
	}
	if f, err := s.Final(); err != nil || f.PID != processes.Crashed {
		t.Errorf("the recording ends with %+v, %v", f, err)
	} else {
		f.Mem.Close()
	}
	if _, err := s.FinalOf(5); !errors.Is(err, checkpoint.ErrNoFinal) {
		t.Errorf("a process that is not there: %v", err)
	}
}

// checkFinal checks whose memory a final image shows: code and stack of the last
// interval's start, and data of the end.
func checkFinal(t *testing.T, f *FinalImage, pid int32) {
	t.Helper()
	var code [1]byte
	var data, stack [8]byte
	f.Mem.Peek(processes.PIDAt, code[:])
	f.Mem.Peek(processes.Data, data[:])
	f.Mem.Peek(processes.Stack, stack[:])
	if got := int64(binary.LittleEndian.Uint64(data[:])); int32(code[0]) != pid || got != -int64(pid) {
		t.Errorf("process %d ends with the code of %d and data %d", pid, code[0], got)
	}
	if got := binary.LittleEndian.Uint64(stack[:]); got != 1000*uint64(pid) {
		t.Errorf("process %d ends with %d on its stack", pid, got)
	}
}

// TestVerifyProcesses replays all processes, and finds the one that differs.
func TestVerifyProcesses(t *testing.T) {
	for _, wrong := range []int32{0, processes.Parent, processes.Crashed, processes.Exited} {
		s := family(t, processes.Options{Diverges: wrong})
		results, err := Verify(t.Context(), s, VerifyOptions{})
		if err != nil || len(results) != len(s.Rec.Intervals()) {
			t.Fatalf("%d results, %v", len(results), err)
		}
		images := processes.Of(wrong)
		for _, r := range results {
			of := slices.IndexFunc(images, func(ids []uint32) bool { return slices.Contains(ids, r.Interval) })
			if r.PID == 0 || (r.PID == wrong) != (of >= 0) {
				t.Errorf("interval %d is said to be of process %d", r.Interval, r.PID)
			}
			last := len(images) > 0 && r.Interval == images[len(images)-1][len(images[len(images)-1])-1]
			if (r.Err != nil) != last || r.Err != nil && !Unmatched(r.Err) {
				t.Errorf("process %d is wrong: interval %d: %v", wrong, r.Interval, r.Err)
			}
		}
	}
}

// TestSlimProcesses slims a recording and finds in it what each process needs: it
// replays, and ends with the memory that it ended with.
func TestSlimProcesses(t *testing.T) {
	t.Parallel()
	path := processes.Write(t, processes.Options{})
	before := open(t, path)
	res, err := Slim(t.Context(), path, SlimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Slimmed != 7 || res.Left != 0 || len(res.Failed) != 0 || res.After >= res.Before {
		t.Errorf("slimming says %+v", res)
	}
	rec := open(t, path)
	s, err := NewSession(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if rec.RunDigest() != before.RunDigest() || len(rec.Processes()) != 3 {
		t.Error("it is another run")
	}
	results, err := Verify(t.Context(), s, VerifyOptions{})
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	if err != nil {
		t.Error(err)
	}
	for _, p := range rec.Processes() {
		if want, _ := before.Process(p.PID); p.Program != want.Program {
			t.Errorf("process %d executes %s", p.PID, p.Program)
		}
		f, err := s.FinalOf(p.PID)
		if err != nil {
			t.Fatal(err)
		}
		checkFinal(t, f, p.PID)
		var b [1]byte
		if n, _ := f.Mem.Peek(processes.Junk, b[:]); n != 0 {
			t.Errorf("process %d keeps what it did not use", p.PID)
		}
		f.Mem.Close()
	}
}

// TestIndexOfProcesses gives each process the index of another one.
func TestIndexOfProcesses(t *testing.T) {
	s := family(t, processes.Options{})
	all := []int32{processes.Parent, processes.Crashed, processes.Exited}
	files := map[int32][]byte{}
	for _, pid := range all {
		tl := processTimeline(t, s, pid)
		var b bytes.Buffer
		if err := tl.BuildIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := tl.WriteIndex(&b); err != nil || n != len(tl.Intervals()) {
			t.Fatalf("%d intervals written, %v", n, err)
		}
		files[pid] = b.Bytes()
	}
	for _, of := range all {
		for _, pid := range all {
			tl := processTimeline(t, s, pid)
			n, err := tl.ReadIndex(bytes.NewReader(files[of]))
			if of == pid && (err != nil || n != len(tl.Intervals())) || of != pid && !errors.Is(err, ErrOtherIndex) {
				t.Errorf("process %d reads the index of %d: %d intervals, %v", pid, of, n, err)
			}
		}
	}
}

func processTimeline(t *testing.T, s *Session, pid int32) *Timeline {
	t.Helper()
	tl, err := NewProcessTimeline(s, pid, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tl.Close)
	return tl
}
