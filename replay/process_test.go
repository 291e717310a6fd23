package replay

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"vplay/checkpoint"
)

// Programs of the intervals below: each adds to rax and makes a system call.
const processCode = 0x401000

// writeProcesses writes a recording of two processes whose intervals alternate, the
// second one with an execve. Each interval is "add $1, %eax; syscall" with the number
// of its interval in rbx.
func writeProcesses(t *testing.T, pid int32) *checkpoint.Recording {
	t.Helper()
	path := filepath.Join(t.TempDir(), "two.vplay")
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	code := make([]byte, checkpoint.PageSize)
	copy(code, []byte{0x83, 0xc0, 0x01, 0x0f, 0x05})
	for id, of := range []struct {
		pid   int32
		image uint32
	}{{10, 0}, {20, 0}, {10, 0}, {20, 1}, {10, 0}, {20, 1}} {
		code[0x100] = byte(of.pid) // memory of its own
		ref, err := w.AddPage(code)
		if err != nil {
			t.Fatal(err)
		}
		c := checkpoint.Context{TID: of.pid, XState: make([]byte, 576)}
		c.Regs.RIP, c.Regs.RFLAGS, c.Regs.R[3] = processCode, 0x202, uint64(id)
		after := c.Regs
		after.RIP, after.R[0], after.R[1], after.RFLAGS = processCode+5, 1, processCode+5, 0x202
		after.R[11] = after.RFLAGS
		iv := &checkpoint.Interval{
			ID: uint32(id), PID: of.pid, Image: of.image, Start: []checkpoint.Context{c},
			Maps:   []checkpoint.Mapping{{Start: processCode, End: processCode + checkpoint.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtExec}},
			Pages:  []checkpoint.PageEntry{{Addr: processCode, Ref: ref}},
			Events: []checkpoint.Event{{Kind: checkpoint.EventEnter, TID: of.pid, NR: 1, RegHash: checkpoint.HashRegs(&after)}},
			End:    checkpoint.End{Kind: checkpoint.EndSync, Contexts: []checkpoint.Context{{TID: of.pid, Regs: after, XState: c.XState}}},
		}
		if err := w.AddInterval(iv); err != nil {
			t.Fatal(err)
		}
	}
	return finished(t, w, path, checkpoint.Manifest{PID: pid, CPU: checkpoint.Identity{Vendor: "GenuineIntel", XCR0: 3}})
}

// finished ends the recording that w writes to path, and opens it for the length of the test.
func finished(t *testing.T, w *checkpoint.Writer, path string, m checkpoint.Manifest) *checkpoint.Recording {
	t.Helper()
	if err := w.Finish(m); err != nil {
		t.Fatal(err)
	}
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}

// TestTwoProcesses walks through each process of a recording of two: the other one's
// intervals lie between and are not its own, though they are of the same image.
func TestTwoProcesses(t *testing.T) {
	for _, c := range []struct {
		pid  int32
		want []uint32
	}{{10, []uint32{0, 2, 4}}, {20, []uint32{3, 5}}, {77, []uint32{3, 5}}} {
		s, err := NewSession(writeProcesses(t, c.pid))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		tl, err := NewTimeline(s, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer tl.Close()
		cur, err := tl.NewCursor()
		if err != nil {
			t.Fatal(err)
		}
		defer cur.Close()
		if !slices.Equal(tl.Intervals(), c.want) {
			t.Errorf("process %d has the intervals %v, want %v", c.pid, tl.Intervals(), c.want)
		}
		if n := tl.EventCount(^uint32(0)); n != len(c.want) {
			t.Errorf("process %d has %d events, want %d", c.pid, n, len(c.want))
		}
		forward := visited(t, cur, cur.StepForward)
		if !slices.Equal(forward, c.want) {
			t.Errorf("process %d goes through %v, want %v", c.pid, forward, c.want)
		}
		back := visited(t, cur, cur.StepBack)
		slices.Reverse(back)
		if !slices.Equal(back, c.want) {
			t.Errorf("process %d goes back through %v, want %v", c.pid, back, c.want)
		}
	}
}

// visited steps to the end and lists the intervals on the way, by what the program
// itself has of them, and checks whose memory it is.
func visited(t *testing.T, tl *Cursor, step func(context.Context) (Stop, error)) (out []uint32) {
	t.Helper()
	for range 100 {
		m := tl.Machine()
		var b [1]byte
		if n, _ := m.Mem.Peek(processCode+0x100, b[:]); n != 1 || int32(b[0]) != m.TID() {
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
