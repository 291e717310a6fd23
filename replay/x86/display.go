package x86

import (
	"errors"
	"fmt"
)

// Decoding for people and tests, who have bytes and no CPU. Decoding for one CPU, as it
// executes, is in decode_api.go.

// ErrTruncated says that the bytes end inside the instruction.
var ErrTruncated = errors.New("x86: instruction is cut off")

// UndefinedError says that bytes are no instruction of 64-bit mode.
type UndefinedError struct {
	Bytes []byte // up to 15, from the first prefix
}

func (e *UndefinedError) Error() string {
	return fmt.Sprintf("x86: not an instruction: % x", e.Bytes)
}

// Decoded describes an instruction for display and for tests.
type Decoded struct {
	Len      int    // bytes
	Mnemonic string // upper case, as in the tables
	Row      int    // index in Rows
	Size     int    // operand size in bytes: 1, 2, 4 or 8
	Imm      uint64 // immediate, sign-extended
	Lock     bool
	Rep      bool // F3 is there
	Repne    bool // F2 is there
	// HasMem says that there is a ModRM or moffs memory operand: Mem.
	HasMem bool
	Mem    MemOperand
}

// MemOperand is base + index * scale + disp in a segment.
type MemOperand struct {
	Base  uint8 // register 0..15, NoReg or RIPReg
	Index uint8 // register 0..15 or NoReg
	Scale uint8 // 1, 2, 4 or 8
	Seg   uint8 // FS, GS or NoSeg
	// Disp is the displacement; with Base RIPReg it is relative to the end of
	// the instruction.
	Disp   int64
	Addr32 bool // the sum is cut to 32 bits
}

// Decode decodes the instruction at the start of b. The error is ErrTruncated
// or an *UndefinedError; more than 15 bytes are an UndefinedError too.
func Decode(b []byte) (Decoded, error) {
	var in Inst
	switch decodeInst(b, 0, nil, &in) {
	case decodeOK:
	case decodeShort:
		return Decoded{}, ErrTruncated
	default:
		return Decoded{}, &UndefinedError{Bytes: b[:min(len(b), maxInst)]}
	}
	r := &getTables().rows[in.Row]
	d := Decoded{
		Len: int(in.Len), Mnemonic: r.Mnemonic, Row: int(in.Row), Size: int(in.Size), Imm: in.Imm,
		Lock: in.Flags&InstLock != 0, Rep: in.Flags&InstRep != 0, Repne: in.Flags&InstRepne != 0,
	}
	if r.Handler == "intXchgAcc" && in.Reg == RAX {
		d.Mnemonic = "NOP"
		if d.Rep {
			d.Mnemonic = "PAUSE"
		}
	}
	if in.Flags&InstMem != 0 {
		d.HasMem = true
		d.Mem = MemOperand{Base: in.Base, Index: in.Index, Scale: 1 << in.Scale, Seg: in.Seg, Disp: in.Disp, Addr32: in.Flags&InstAddr32 != 0}
		if in.Base == RIPReg {
			d.Mem.Disp -= int64(in.Len)
		}
	}
	return d, nil
}
