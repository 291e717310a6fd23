package replay

import (
	"path/filepath"
	"testing"

	"vplay/checkpoint"
)

// Places in the program of askingInterval.
const (
	askingCode = 0x401000
	askingArea = 0x402000
	askingTurn = 10_000
)

// askingInterval is an interval whose program saves its vector registers, all zero,
// with XSAVEC and then runs through a loop. The recorded CPU counted XMM as in use,
// which the state does not say, or, without xmm, did not.
func askingInterval(t *testing.T, w *checkpoint.Writer, id uint32, forced, xmm bool) *checkpoint.Interval {
	t.Helper()
	code := make([]byte, checkpoint.PageSize)
	n := copy(code, []byte{
		0xb8, 0x02, 0x00, 0x00, 0x00, // mov $2, %eax
		0x31, 0xd2, // xor %edx, %edx
		0x0f, 0xc7, 0x27, // xsavec (%rdi)
		0xb9, askingTurn & 0xff, askingTurn >> 8, 0x00, 0x00, // mov $askingTurn, %ecx
		0xff, 0xc9, // dec %ecx
		0x75, 0xfc, // jne dec
	})
	copy(code[n:], []byte{0x0f, 0x05}) // syscall
	zero, area := make([]byte, checkpoint.PageSize), make([]byte, checkpoint.PageSize)
	mxcsr := []byte{0x80, 0x1f, 0, 0, 0xff, 0xff, 2, 0} // and its mask
	area[520], area[527] = 2, 0x80                      // XCOMP_BV
	if xmm {
		copy(area[24:], mxcsr)
		area[512] = 2 // XSTATE_BV
	}
	var pages []checkpoint.PageEntry
	for a, b := range map[uint64][]byte{askingCode: code, askingArea: zero} {
		ref, err := w.AddPage(b)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, checkpoint.PageEntry{Addr: a, Ref: ref})
	}
	if pages[0].Addr > pages[1].Addr {
		pages[0], pages[1] = pages[1], pages[0]
	}
	c := checkpoint.Context{TID: 10, XState: make([]byte, 576)}
	copy(c.XState[24:], mxcsr)
	c.Regs.RIP, c.Regs.RFLAGS, c.Regs.R[7] = askingCode, 0x202, askingArea
	end := c
	end.Regs.RIP, end.Regs.RFLAGS, end.Regs.R[0] = askingCode+uint64(n), 0x246, 2
	iv := &checkpoint.Interval{
		ID: id, PID: 10, Start: []checkpoint.Context{c}, Pages: pages,
		Maps: []checkpoint.Mapping{
			{Start: askingCode, End: askingCode + checkpoint.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtExec},
			{Start: askingArea, End: askingArea + checkpoint.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtWrite},
		},
		End: checkpoint.End{Kind: checkpoint.EndSync, Pages: []checkpoint.PageEntry{{Addr: askingArea, Ref: checkpoint.RefOf((*[checkpoint.PageSize]byte)(area))}}},
	}
	if forced {
		iv.End.Kind, iv.End.Forced = checkpoint.EndForced, true
		iv.End.MemHash = checkpoint.HashPage(askingArea, area) - checkpoint.HashPage(askingArea, zero)
	} else {
		end.Regs.RIP += 2
		end.Regs.R[1], end.Regs.R[11] = end.Regs.RIP, end.Regs.RFLAGS
		iv.Events = []checkpoint.Event{{Kind: checkpoint.EventEnter, TID: 10, NR: 1, RegHash: checkpoint.HashRegs(&end.Regs)}}
	}
	iv.End.Contexts = []checkpoint.Context{end}
	return iv
}

// TestVerifyReplaysOnce counts the instructions executed to verify an interval whose
// answers must be found: the run that finds them has compared all there is, so it is
// not repeated, unless the caller wants to know what replay touched. The first run goes without answers.
func TestVerifyReplaysOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "asks.vplay")
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for id, c := range []struct{ forced, xmm bool }{{true, true}, {false, true}, {true, false}, {false, false}} {
		if err := w.AddInterval(askingInterval(t, w, uint32(id), c.forced, c.xmm)); err != nil {
			t.Fatal(err)
		}
	}
	rec := finished(t, w, path, checkpoint.Manifest{PID: 10, CPU: checkpoint.Identity{Vendor: "AuthenticAMD", XCR0: 7}})
	for _, c := range []struct {
		name  string
		touch bool
		want  [4]float64 // replays of each interval
	}{
		{"verify", false, [4]float64{2, 2, 1, 1}},
		{"touch", true, [4]float64{3, 3, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := NewSession(rec)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			results, err := Verify(t.Context(), s, VerifyOptions{Touch: c.touch})
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range results {
				if r.Err != nil {
					t.Errorf("interval %d: %v", i, r.Err)
					continue
				}
				if r.Instructions < 2*askingTurn {
					t.Errorf("interval %d: %d instructions", i, r.Instructions)
				}
				got := float64(r.Executed) / float64(r.Instructions)
				if got > c.want[i] || got < c.want[i]-0.01 { // the answers are looked for from the first that is wanted
					t.Errorf("interval %d: %d instructions executed for %d, that is %.3f replays, want %g", i, r.Executed, r.Instructions, got, c.want[i])
				}
				if c.touch && len(r.Touched.Written) != 1 {
					t.Errorf("interval %d: %d pages written, want 1", i, len(r.Touched.Written))
				}
			}
		})
	}
}
