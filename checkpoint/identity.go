package checkpoint

import (
	"fmt"
	"strings"
)

// The CPU of a recording, as the program saw it. What the recorder hides of a CPU is in
// package record, what the emulator answers in package replay.

// CPUIDLeaf is one answer of the CPUID instruction, as the guest saw it.
type CPUIDLeaf struct {
	Leaf    uint32 `json:"leaf"`
	Subleaf uint32 `json:"subleaf"`
	EAX     uint32 `json:"eax"`
	EBX     uint32 `json:"ebx"`
	ECX     uint32 `json:"ecx"`
	EDX     uint32 `json:"edx"`
}

// XSAVEComponent is one state component of the standard XSAVE format.
type XSAVEComponent struct {
	Index  uint32 `json:"index"`  // bit number in XCR0
	Offset uint32 `json:"offset"` // bytes from the start of the XSAVE area
	Size   uint32 `json:"size"`   // bytes
}

// Identity describes the CPU as presented to the guest.
type Identity struct {
	Vendor   string      `json:"vendor"` // "GenuineIntel", "AuthenticAMD"
	Family   uint32      `json:"family"` // display values
	Model    uint32      `json:"model"`
	Stepping uint32      `json:"stepping"`
	Brand    string      `json:"brand"`
	CPUID    []CPUIDLeaf `json:"cpuid,omitempty"`
	Faulting bool        `json:"faulting"` // CPUID was trapped, so the answers may be edited
	// CPUIDReal has the CPU's own answers where those in CPUID are edited:
	// programs may execute what they are not shown.
	CPUIDReal []CPUIDLeaf `json:"cpuid_real,omitempty"`
	// TSCAux is what RDPID reads on the CPU that the program was kept on: its
	// number, and its node's shifted by 12. Nil when it is not known.
	TSCAux *uint32 `json:"tsc_aux,omitempty"`
	XCR0   uint64  `json:"xcr0"`
	// XSAVE is the layout of Context.XState, sorted by Index.
	XSAVE []XSAVEComponent `json:"xsave,omitempty"`
	Level string           `json:"level"` // that the program was told: "x86-64-v3"; "" if nothing was hidden
}

// Name returns the CPU's brand with vendor, family and model in decimal:
// "AMD EPYC (AuthenticAMD, family 25, model 1)".
func (id *Identity) Name() string {
	return strings.TrimSpace(fmt.Sprintf("%s (%s, family %d, model %d)", strings.TrimSpace(id.Brand), id.Vendor, id.Family, id.Model))
}
