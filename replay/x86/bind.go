package x86

import (
	"slices"
	"strconv"
	"strings"
)

// Binding of instructions to the cases of the hot loop (see internal/isagen,
// loop.go), fusion of comparisons with the branch behind them, and removal of
// flags nobody reads. All three work on ops; the instructions stay as they were
// decoded, for the handlers, which are all that Step uses.

// shapeName is the part of a kind's name for the operand shape: R register, I
// immediate, M memory; destination first.
func shapeName(in *Inst) string {
	mem := in.Flags&InstMem != 0
	switch in.form {
	case formRMReg:
		if mem {
			return "MR"
		}
		return "RR"
	case formRegRM:
		if mem {
			return "RM"
		}
		return "RR"
	case formRMImm:
		if mem {
			return "MI"
		}
		return "RI"
	}
	return ""
}

// plainMem reports whether the memory operand is one the hot loop computes: no
// segment, no 32-bit address.
func (in *Inst) plainMem() bool { return in.Seg == NoSeg && in.Flags&InstAddr32 == 0 }

// threadMem reports whether the memory operand is relative to FS and has no register.
func (in *Inst) threadMem() bool {
	return in.Flags&(InstMem|InstAddr32) == InstMem && in.Seg == FS && in.Base == NoReg && in.Index == NoReg
}

// highByte reports whether byte register n of in is ah, ch, dh or bh.
func (in *Inst) highByte(n uint8) bool { return n&^3 == 4 && !in.rex() }

// bind returns the op of in: its kind is the case that the loop has for it, if any.
func bind(in *Inst) op {
	o := op{reg: in.Reg, rm: in.RM, vvvv: in.VVVV, base: in.Base, index: in.Index, scale: in.Scale, imm: in.Imm, disp: in.Disp}
	if in.Flags&InstEnd != 0 {
		o.flags = opEnd
	}
	name := kindName(in)
	k, ok := kindByName[name]
	if !ok {
		return o
	}
	o.kind = k
	// A register-register form has its destination in rm.
	if in.form == formRegRM && in.Flags&InstMem == 0 && hotSwaps[name] {
		o.reg, o.rm = in.RM, in.Reg
	}
	if in.row().Handler == "intShift1" {
		o.imm = 1
	}
	return o
}

// kindName returns the name of the case for in, or "" when it has operands or
// prefixes of which no case knows.
func kindName(in *Inst) string {
	thread := in.threadMem()
	if in.Flags&InstMem != 0 && !in.plainMem() && !thread || in.Flags&InstLock != 0 {
		return ""
	}
	if in.Flags&instAMD16 != 0 && in.Size == 2 {
		return ""
	}
	name := hotName(in)
	if thread && name != "" {
		return "F" + name
	}
	return name
}

// hotSwaps are the kinds that take the destination from RM although the
// encoding "reg, r/m" exists.
var hotSwaps = func() map[string]bool {
	m := map[string]bool{"MovRR1": true, "MovRR2": true, "MovRR4": true, "MovRR8": true}
	for _, op := range []string{"Add", "Sub", "And", "Or", "Xor", "Adc", "Sbb", "Cmp", "Test"} {
		for _, n := range []string{"1", "2", "4", "8"} {
			m[op+"RR"+n] = true
		}
	}
	return m
}()

// hotNamers give the kind's name for a handler.
var hotNamers = map[string]func(in *Inst) string{
	"intAdd": aluName("Add"), "intSub": aluName("Sub"), "intAnd": aluName("And"), "intOr": aluName("Or"), "intXor": aluName("Xor"),
	"intAdc": aluName("Adc"), "intSbb": aluName("Sbb"), "intCmp": aluName("Cmp"), "intTest": aluName("Test"),
	"intInc": unaryName("Inc"), "intDec": unaryName("Dec"), "intNeg": unaryName("Neg"), "intNot": unaryName("Not"),
	"intMovStore": func(in *Inst) string { return movName(in, "Store") },
	"intMovLoad":  func(in *Inst) string { return movName(in, "Load") },
	"intMovImm": func(in *Inst) string {
		if in.Flags&InstMem != 0 {
			return "StoreI" + sizeName(in.Size)
		}
		return regImmName(in)
	},
	"intMovRegImm": regImmName,
	"intMovzx":     movzxName,
	"intMovsx":     func(in *Inst) string { return movsxName(in, narrowSize(in)) },
	"intMovsxd":    func(in *Inst) string { return movsxName(in, 4) },
	"intLea":       func(in *Inst) string { return "Lea" + sizeName(in.Size) },
	"intShiftImm":  func(in *Inst) string { return shiftName(in, uint(in.Imm)) },
	"intShift1":    func(in *Inst) string { return shiftName(in, 1) },
	"intImul2": func(in *Inst) string {
		if in.Flags&InstMem != 0 {
			return "ImulRM" + sizeName(in.Size)
		}
		return regOnly(in, "ImulRR")
	},
	"intImul3": func(in *Inst) string { return regOnly(in, "ImulRI") },
	"intCmov":  func(in *Inst) string { return regOnly(in, "Cmov"+condNames[in.Opc&15]) },
	"intSetcc": func(in *Inst) string {
		if in.Flags&InstMem != 0 || in.highByte(in.RM) {
			return ""
		}
		return "Set" + condNames[in.Opc&15]
	},
	"movups": xmmName("LoadU", "MovXL"), "movupsStore": xmmName("StoreU", "MovXS"),
	"movaps": xmmName("LoadA", "MovXL"), "movapsStore": xmmName("StoreA", "MovXS"),
	"pxor":       xmmName("Vmpxor", "Pxor"),
	"intShiftCL": shiftCLName,
	"intCbw":     func(in *Inst) string { return "Cbw" + sizeName(in.Size) },
	"intCwd":     func(in *Inst) string { return "Cwd" + sizeName(in.Size) },
	"intXchgAcc": func(in *Inst) string {
		if in.Reg == RAX {
			return "Nop"
		}
		return ""
	},
	"intNop":     func(*Inst) string { return "Nop" },
	"intPush":    func(in *Inst) string { return "Push" + sizeName(in.Size) },
	"intPushImm": func(in *Inst) string { return "PushI" + sizeName(in.Size) },
	"intPop":     func(in *Inst) string { return "Pop" + sizeName(in.Size) },
	"intCall":    func(*Inst) string { return "Call" },
	"intJmp":     func(*Inst) string { return "Jmp" },
	"intRet": func(in *Inst) string {
		if in.Opc == 0xc3 {
			return "Ret"
		}
		return ""
	},
	"intJmpRM": func(in *Inst) string {
		if in.Flags&InstMem == 0 {
			return "JmpR"
		}
		return "JmpM"
	},
	"intCallRM": func(in *Inst) string {
		if in.Flags&InstMem == 0 {
			return "CallR"
		}
		return "CallM"
	},
	"intJcc": func(in *Inst) string { return "J" + condNames[in.Opc&15] },
}

var condNames = [16]string{"O", "NO", "B", "AE", "E", "NE", "BE", "A", "S", "NS", "P", "NP", "L", "GE", "LE", "G"}

// hotName returns the name of in's kind, or "".
func hotName(in *Inst) string {
	h := in.row().Handler
	if f := hotNamers[h]; f != nil {
		return f(in)
	}
	return vectorName(in, h)
}

func sizeName(n uint8) string { return strconv.Itoa(int(n)) }

// byteRegs reports whether the byte registers of in are all low ones.
func byteRegs(in *Inst) bool {
	if in.Size != 1 {
		return true
	}
	if in.form != formRMImm && in.highByte(in.Reg) {
		return false
	}
	return in.Flags&InstMem != 0 || !in.highByte(in.RM)
}

func aluName(op string) func(in *Inst) string {
	return func(in *Inst) string {
		if !byteRegs(in) {
			if in.form == formRMImm {
				return op + "HI1" // of a high byte, which has a case for some
			}
			return ""
		}
		return op + shapeName(in) + sizeName(in.Size)
	}
}

func unaryName(op string) func(in *Inst) string {
	return func(in *Inst) string {
		if !byteRegs(in) {
			return ""
		}
		return regOnly(in, op)
	}
}

func regOnly(in *Inst, name string) string {
	if in.Flags&InstMem != 0 {
		return ""
	}
	return name + sizeName(in.Size)
}

func movName(in *Inst, dir string) string {
	switch {
	case in.Size == 1 && (in.highByte(in.Reg) || in.Flags&InstMem == 0 && in.highByte(in.RM)):
		return ""
	case in.Flags&InstMem == 0:
		return "MovRR" + sizeName(in.Size)
	case dir == "Load" && in.Size < 4:
		return "LoadM" + sizeName(in.Size) // merges into the register
	}
	return dir + sizeName(in.Size)
}

func regImmName(in *Inst) string {
	if in.Size == 1 && in.highByte(in.RM) {
		return ""
	}
	return "MovRI" + sizeName(in.Size)
}

func movzxName(in *Inst) string {
	n := narrowSize(in)
	switch {
	case in.Size < 4:
		return ""
	case in.Flags&InstMem != 0:
		return "Load" + sizeName(n)
	case n == 1 && in.highByte(in.RM):
		return ""
	}
	return "Movzx" + sizeName(n)
}

func movsxName(in *Inst, n uint8) string {
	switch {
	case in.Size < 4 || n == in.Size:
		return ""
	case in.Flags&InstMem != 0:
		return "LoadS" + sizeName(n) + sizeName(in.Size)
	case n == 1 && in.highByte(in.RM):
		return ""
	}
	return "Movsx" + sizeName(n) + sizeName(in.Size)
}

// shiftName: counts that are zero after masking change nothing at all, and those
// that shift everything out have flags of their own: both are left to the handler.
func shiftName(in *Inst, n uint) string {
	if n&countMask(in.Size) == 0 || n&countMask(in.Size) >= 8*uint(in.Size) || in.Flags&InstMem != 0 ||
		in.Size == 1 && in.highByte(in.RM) {
		return ""
	}
	switch in.Reg & 7 {
	case 0:
		return "RolRI" + sizeName(in.Size)
	case 1:
		return "RorRI" + sizeName(in.Size)
	case 4, 6:
		return "ShlRI" + sizeName(in.Size)
	case 5:
		return "ShrRI" + sizeName(in.Size)
	case 7:
		return "SarRI" + sizeName(in.Size)
	}
	return ""
}

// shiftCLName is shiftName for counts in cl.
func shiftCLName(in *Inst) string {
	if in.Flags&InstMem != 0 {
		return ""
	}
	switch in.Reg & 7 {
	case 4, 6:
		return "VShl" + sizeName(in.Size)
	case 5:
		return "VShr" + sizeName(in.Size)
	case 7:
		return "VSar" + sizeName(in.Size)
	}
	return ""
}

// xmmName gives the kinds of a move of 128 bits: with memory, and between registers.
func xmmName(mem, regs string) func(in *Inst) string {
	return func(in *Inst) string {
		if in.Flags&InstMem != 0 {
			return mem
		}
		return regs
	}
}

// Facts about kinds, filled from their names.
var (
	kindNames  [kindCount]string
	kindNoFlag [kindCount]uint16 // the variant that leaves the flags alone, or 0
	kindPure   [kindCount]bool   // cannot leave the block: no memory, no handler
	kindFused  [kindCount][16]uint16
	kindBase   [kindCount]uint16 // the variant for a base register and a displacement alone, or 0
	// kindChain leads from a kind, or the beginning of a chain, and the kind behind
	// it to the longer beginning: the chain's own kind where it is one, else a
	// number from kindCount on.
	kindChain = map[[2]uint16]uint16{}
)

func init() {
	for name, k := range kindByName {
		kindNames[k] = name
		if !isVectorKind(name) { // pand is not a variant of pandn
			kindNoFlag[k] = kindByName[name+"n"]
		}
		kindBase[k] = kindByName[name+"b"]
		addChain(name)
		for cc, cn := range condNames {
			kindFused[k][cc] = kindByName[name+"J"+cn]
		}
	}
	for _, p := range pureKinds {
		for k, name := range kindNames {
			if strings.HasPrefix(name, p) && k != kGeneric && !strings.HasPrefix(name, "ImulRM") {
				kindPure[k] = true
			}
		}
	}
}

// addChain enters the chain called name, and its beginnings, in kindChain.
func addChain(name string) {
	members := strings.Split(name, "_")
	at, begin := kindByName[members[0]], members[0]
	for _, m := range members[1:] {
		begin += "_" + m
		step := [2]uint16{at, kindByName[m]}
		next, ok := kindChain[step]
		if !ok {
			if next, ok = kindByName[begin]; !ok {
				next = kindCount + uint16(len(kindChain))
			}
			kindChain[step] = next
		}
		at = next
	}
}

// pureKinds are prefixes of the names of kinds that always succeed.
var pureKinds = []string{
	"MovRR", "MovRI", "Movsx", "Movzx", "Lea", "AddRR", "AddRI", "SubRR", "SubRI", "AndRR", "AndRI", "OrRR", "OrRI", "XorRR", "XorRI", "AdcRR", "AdcRI", "SbbRR", "SbbRI",
	"CmpRR", "CmpRI", "TestRR", "TestRI", "TestHI", "AndHI", "Shl", "Shr", "Sar", "Inc", "Dec", "Neg", "Not", "Cmov", "Imul", "Set", "Nop",
	"Cbw", "Cwd", "MovX", "Pxor", "Vrp", "Vrmov", "Xrvp", "Xrvmov", "Yrvp", "Yrvmov",
}

// isVectorKind reports whether vectorName gave the name.
func isVectorKind(name string) bool {
	return len(name) > 1 && strings.IndexByte("VXY", name[0]) >= 0 && (name[1] == 'r' || name[1] == 'm')
}

// vectorMoves are the kinds of moves with memory that have another name than
// their handler: without and with REX.W.
var vectorMoves = map[string][2]string{
	"movdX":       {"movss", "movqX"},
	"movdXStore":  {"movssStore", "movqXStore"},
	"movsdXStore": {"movsdXStore", "movsdXStore"}, // shared with VEX
}

// vectorName gives the kind of a vector instruction from its handler: see
// internal/isagen, vector.go.
func vectorName(in *Inst, handler string) string {
	width := "V"
	switch {
	case in.Flags&InstVEX != 0 && in.Flags&InstL != 0:
		width = "Y"
	case in.Flags&InstVEX != 0:
		width = "X"
	}
	if in.Flags&InstMem != 0 {
		if m, ok := vectorMoves[handler]; ok {
			return "Vm" + m[in.Flags&InstW/InstW]
		}
		return width + "m" + handler
	}
	switch handler {
	case "vmovups", "vmovaps":
		return width + "rvmov"
	case "movdX", "movdXStore":
		if in.Flags&InstW != 0 {
			return width + "r" + strings.Replace(handler, "X", "", 1) + "8"
		}
		return width + "r" + strings.Replace(handler, "X", "", 1) + "4"
	}
	return width + "r" + handler
}

// fuse joins comparisons with the conditional branches behind them, in place.
func fuse(ops []op, insts []decoded) []op {
	out := ops[:0]
	for i := 0; i < len(ops); i++ {
		o := ops[i]
		if i+1 < len(ops) {
			if j, branch := &ops[i+1], &insts[i+1].Inst; j.exit != 0 && branch.isJcc() {
				cond := branch.Opc & 15
				if k := kindFused[o.kind][cond]; k != 0 {
					o.kind, o.cond, o.exit = k, cond, j.exit
					o.flags |= opFused
					i++
				}
			}
		}
		out = append(out, o)
	}
	return out
}

// dropDeadFlags replaces kinds whose flags are overwritten before anything
// can see them: a reader, the end of the block, or an instruction that may
// leave the block in the middle.
func dropDeadFlags(ops []op, insts []decoded) {
	live := uint64(flagsArith)
	for i := len(ops) - 1; i >= 0; i-- {
		o := &ops[i]
		r := insts[o.idx].row()
		w, rd := r.Writes, r.Reads
		name := kindNames[o.kind]
		if len(name) > 2 && name[0] == 'S' && (name[:3] == "Shl" || name[:3] == "Shr" || name[:3] == "Sar") {
			w, rd = flagsArith, 0 // the count is not zero
		}
		if nf := kindNoFlag[o.kind]; nf != 0 && (w|r.Undef)&live == 0 {
			o.kind = nf
			w, rd = 0, 0
		}
		live = live&^w | rd
		if !kindPure[o.kind] {
			live = flagsArith // a branch may be taken, too
		}
	}
}

// specialise chooses the cases for operands without an index register, then
// chains: cases that execute several instructions from the first one on. It
// marks those that the case before compares with.
func specialise(ops []op) {
	for i := range ops {
		o := &ops[i]
		if k := kindBase[o.kind]; k != 0 && o.base < 16 && o.index >= 16 {
			o.kind = k
		}
	}
	before := uint16(kGeneric)
	for i := 0; i < len(ops); {
		at, n := ops[i].kind, 1
		for j := i + 1; j < len(ops); j++ {
			var ok bool
			if at, ok = kindChain[[2]uint16{at, ops[j].kind}]; !ok {
				break
			}
			if at < kindCount {
				ops[i].kind, n = at, j+1-i
			}
		}
		if k := ops[i].kind; k != kGeneric && slices.Contains(successors[before][:], k) {
			ops[i].exit |= exitLikely
		}
		before = ops[i].kind
		i += n
	}
}
