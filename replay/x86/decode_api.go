package x86

import "errors"

// Decoding for callers that do not execute: disassemblers, tests, and whoever asks what bytes
// are. decode.go has the work.

// What DecodeInst returns for bytes that are no instruction of the emulated CPU.
var (
	// ErrShort: the bytes end before the instruction does.
	ErrShort = errors.New("x86: instruction is cut off")
	// ErrTooLong: more than 15 bytes, #GP on the CPU.
	ErrTooLong = errors.New("x86: instruction longer than 15 bytes")
	// ErrUndefined: #UD on the CPU.
	ErrUndefined = errors.New("x86: undefined instruction")
)

// DecodeInst decodes the instruction at the start of b as the CPU id would at
// address pc. The error is one of ErrShort, ErrTooLong and ErrUndefined.
// Instructions that are known but not emulated have rows with the attribute
// "refuse".
func DecodeInst(b []byte, pc uint64, id *CPUIdentity) (Inst, error) {
	var in Inst
	switch decodeInst(b, pc, id, &in) {
	case decodeShort:
		return in, ErrShort
	case decodeTooLong:
		return in, ErrTooLong
	case decodeUD:
		return in, ErrUndefined
	case decodeOK:
	}
	return in, nil
}
