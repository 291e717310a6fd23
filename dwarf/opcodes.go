package dwarf

import "github.com/go-delve/delve/pkg/dwarf/op"

// Numbers of location operations that package op of delve has no name for. There are
// only numbers here: env.go and expr.go execute operations.

// Operations that delve's package op does not name: those of DWARF 5 (table 7.9),
// and GNU's of before (binutils, include/dwarf2.def).
const (
	opImplicitPointer op.Opcode = 0xa0
	opAddrx           op.Opcode = 0xa1
	opConstx          op.Opcode = 0xa2
	opEntryValue      op.Opcode = 0xa3
	opConstType       op.Opcode = 0xa4
	opRegvalType      op.Opcode = 0xa5
	opDerefType       op.Opcode = 0xa6
	opConvert         op.Opcode = 0xa8
	opReinterpret     op.Opcode = 0xa9

	opGNUPushTLSAddress  op.Opcode = 0xe0
	opGNUImplicitPointer op.Opcode = 0xf2
	opGNUEntryValue      op.Opcode = 0xf3
	opGNUConstType       op.Opcode = 0xf4
	opGNURegvalType      op.Opcode = 0xf5
	opGNUDerefType       op.Opcode = 0xf6
	opGNUConvert         op.Opcode = 0xf7
	opGNUReinterpret     op.Opcode = 0xf9
	opGNUParameterRef    op.Opcode = 0xfa
	opGNUAddrIndex       op.Opcode = 0xfb
	opGNUConstIndex      op.Opcode = 0xfc
	opGNUVariableValue   op.Opcode = 0xfd
)
