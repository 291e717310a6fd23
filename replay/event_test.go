package replay

import (
	"path/filepath"
	"strings"
	"testing"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// TestFaultWithOtherRegisters: where the fault comes that was recorded, and registers are others, these are what differs.
func TestFaultWithOtherRegisters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "divides.vplay")
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ref := codePage(t, w, 0x31, 0xc9, 0xf7, 0xf1) // xor %ecx, %ecx; div %ecx
	start := checkpoint.Context{TID: 10, XState: make([]byte, 576)}
	start.Regs.RIP, start.Regs.RFLAGS = forcedCode, 0x202
	end := start
	end.Regs.RIP, end.Regs.RFLAGS, end.Regs.R[8] = forcedCode+2, 0x246, 5 // R8 is 0 in replay
	if err := w.AddInterval(&checkpoint.Interval{
		PID: 10, Start: []checkpoint.Context{start}, Pages: []checkpoint.PageEntry{{Addr: forcedCode, Ref: ref}},
		Maps:   []checkpoint.Mapping{{Start: forcedCode, End: forcedCode + checkpoint.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtExec}},
		Events: []checkpoint.Event{{Kind: checkpoint.EventFault, TID: 10, Signo: int32(abi.SIGFPE), Addr: forcedCode + 2, RegHash: checkpoint.HashRegs(&end.Regs), Regs: &end.Regs}},
		End:    checkpoint.End{Kind: checkpoint.EndCrash, Signo: int32(abi.SIGFPE), Contexts: []checkpoint.Context{end}},
	}); err != nil {
		t.Fatal(err)
	}
	m, err := onAMD(t, w, path).Machine(0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err = m.Run(Never, true); err == nil || !strings.Contains(err.Error(), "r8 at event 0, a fault with signal 8") {
		t.Errorf("got %v", err)
	}
}
