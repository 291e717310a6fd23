package x86

// Handler executes one instruction. It returns ExitNone to go on: the core
// then advances RIP by in.Len and retires the instruction. For ExitFault the
// handler has set CPU.Fault by one of the helpers and changed nothing
// architectural: it checks all memory first, then commits. While it runs,
// CPU.RIP is the address of the instruction.
//
// A handler whose row has the attribute "end" sets RIP itself (see
// CPU.next) and ends its block.
type Handler func(c *CPU, in *Inst) Exit

// Inst is one decoded instruction, bound to the address it was decoded at: what
// its bytes say, and nothing of how it is executed. Once decoded it does not
// change; what the interpreter makes of it is an op of its block.
type Inst struct {
	Flags InstFlags // prefixes and shape
	Row   uint16    // index of the table row in Rows, 0 = none
	Reg   uint8     // ModRM.reg extended by REX.R, or the register in the opcode (+r); 0..31 of EVEX
	RM    uint8     // ModRM.rm extended by REX.B, when there is no memory operand; 0..31 of EVEX
	VVVV  uint8     // VEX.vvvv register; 0..31 of EVEX
	Base  uint8     // 0..15, NoReg, or RIPReg: Disp is then the absolute address
	Index uint8     // 0..15 or NoReg; 0..31 of a vector of indexes
	Scale uint8     // shift 0..3
	Seg   uint8     // FS or GS when overridden (the others have base 0), else NoSeg
	Size  uint8     // operand size in bytes: 1, 2, 4, 8 (integer forms)
	Len   uint8     // bytes
	Imm2  uint8     // second immediate of ENTER
	Opc   uint8     // last opcode byte: condition codes, shift groups
	form  uint8     // operand shape of two-operand integer forms
	EVEX  EVEX      // the fields of an EVEX prefix that others do not have
	Imm   uint64    // immediate, sign-extended to 64 bits
	Disp  int64     // displacement, sign-extended; the absolute address for moffs and RIP-relative operands
}

// NoReg in Base and Index, and NoSeg in Seg, say that there is none. RIPReg in
// Base marks a RIP-relative operand.
const (
	NoReg  = 16
	RIPReg = 17
	NoSeg  = 255
)

// InstFlags describe prefixes and shape of an instruction.
type InstFlags uint32

// The instruction flags.
const (
	InstMem    InstFlags = 1 << iota // the ModRM operand is memory (or there is a moffs)
	InstLock                         // F0
	InstRep                          // F3 was the last of F2 and F3
	InstRepne                        // F2 was the last of F2 and F3
	InstAddr32                       // 67
	InstREX                          // a REX prefix is there: spl, bpl, sil, dil instead of ah, ch, dh, bh
	InstOp16                         // 66
	InstL                            // VEX.L = 1
	InstW                            // REX.W or VEX.W
	InstVEX                          // VEX-encoded
	InstEnd                          // ends its block and sets RIP

	instStop       // ends its block
	instLockable   // row: LOCK is allowed with a memory destination
	instDefault64  // row: operand size 64 unless 66 is there
	instForce64    // row: operand size 64
	instModReg     // row: ModRM.mod is ignored, r/m is a register
	instAMD16      // row: near branch, 16-bit with 66 on AMD
	instIntelModRM // row: ModRM and what it asks for on Intel, nothing on AMD
	instAMDImm     // row: no immediate on Intel, where it is #UD
	instNo66       // row: operand size 32 or 64
	instVSIB       // row: the index register is a vector

	InstEVEX   // EVEX-encoded
	instUnsure // the recording does not tell whether the CPU has the instruction
)

// Operand shapes of integer forms: which operand is the destination and which the source.
const (
	formNone  = iota
	formRMReg // r/m, reg
	formRegRM // reg, r/m
	formRMImm // r/m, imm (also accumulator, imm: RM = 0)
	formRM    // r/m alone
	formReg   // the register in the opcode
)
