package replay

import (
	"fmt"

	"vplay/checkpoint"
)

// The errors by which replay stops: it differs from the recording, lacks a byte, or meets an
// instruction that is not emulated. Where replay and recording are compared is in event.go and
// end.go.

// DivergenceError says that replay and recording differ: the first position at
// which they do, and in what. States before At are good.
type DivergenceError struct {
	At        checkpoint.Position
	TID       checkpoint.TID
	RIP       uint64
	What      string // "rax at the exit of read", "unexpected fault", ...
	Want, Got string
	// Because says what the divergence may come from: something that no recording
	// holds; "" where nothing is known.
	Because string
}

func (e *DivergenceError) Error() string {
	s := fmt.Sprintf("replay: diverged at %s (rip %#x): %s", e.At, e.RIP, e.What)
	if e.Want != "" || e.Got != "" {
		s += fmt.Sprintf(": recorded %s, replayed %s", e.Want, e.Got)
	}
	if e.Because != "" {
		s += "; " + e.Because
	}
	return s
}

// NotCapturedError says that replay needs a byte that the recording lacks.
type NotCapturedError struct {
	At   checkpoint.Position
	RIP  uint64
	Addr uint64
}

func (e *NotCapturedError) Error() string {
	return fmt.Sprintf("replay: at %s (rip %#x): the byte at %#x was not captured", e.At, e.RIP, e.Addr)
}

// notCaptured is the error where replay needs a byte that is not there: not that the recording
// lacks it, where a page of the file could not be read.
func (m *Machine) notCaptured(addr uint64) error {
	e := &NotCapturedError{At: m.Position(), RIP: m.CPU.RIP, Addr: addr}
	if err := m.s.Rec.Unreadable(); err != nil {
		return fmt.Errorf("replay: at %s (rip %#x): the byte at %#x is not there: %w", e.At, e.RIP, e.Addr, err)
	}
	return e
}

// UnsupportedError says that the program executed an instruction, or a call
// through the vsyscall page, outside the emulated set.
type UnsupportedError struct {
	At    checkpoint.Position
	RIP   uint64
	Bytes []byte // none for a call through the vsyscall page
	Name  string // "" when unknown
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("replay: at %s (rip %#x): %s", e.At, e.RIP, e.what())
}

func (e *UnsupportedError) what() string {
	name := e.Name
	if name == "" {
		name = "instruction"
	}
	if len(e.Bytes) > 0 {
		name += fmt.Sprintf(" [% x]", e.Bytes)
	}
	return name + " is not emulated"
}

func (m *Machine) diverged(what, want, got string) error {
	e := &DivergenceError{At: m.Position(), TID: m.tid, RIP: m.CPU.RIP, What: what, Want: want, Got: got}
	if m.asked > 0 && !m.guess && m.solver == nil {
		e.Because = m.iv.answers.why()
	}
	return e
}

// compareRegs returns the first register in which two files differ.
func compareRegs(want, got *checkpoint.Regs) (name, w, g string, same bool) {
	hex := func(v uint64) string { return fmt.Sprintf("%#x", v) }
	if want.RIP != got.RIP {
		return "rip", hex(want.RIP), hex(got.RIP), false
	}
	for i := range want.R {
		if want.R[i] != got.R[i] {
			return checkpoint.RegNames[i], hex(want.R[i]), hex(got.R[i]), false
		}
	}
	if a, b := want.RFLAGS&checkpoint.FlagsMask, got.RFLAGS&checkpoint.FlagsMask; a != b {
		return "rflags", hex(a), hex(b), false
	}
	if want.FSBase != got.FSBase {
		return "fs_base", hex(want.FSBase), hex(got.FSBase), false
	}
	if want.GSBase != got.GSBase {
		return "gs_base", hex(want.GSBase), hex(got.GSBase), false
	}
	return "", "", "", true
}
