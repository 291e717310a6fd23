package main

import (
	"slices"
	"strings"
)

// Which instructions have which case of the run loop, by handler: an instruction of a row
// with the handler of a claim, whose operands are as the claim says, is bound to the
// claim's form. The forms of vector.go that are called like a handler are claims
// themselves.

// claims are all but those of vector operations.
var claims = slices.Concat(
	arithmetic("intAdd", "Add", allSizes, "RR RI RM MR MI"),
	arithmetic("intSub", "Sub", allSizes, "RR RI RM MR MI"),
	arithmetic("intAnd", "And", allSizes, "RR RI RM MR MI"),
	arithmetic("intOr", "Or", allSizes, "RR RI RM MR MI"),
	arithmetic("intXor", "Xor", allSizes, "RR RI RM MR MI"),
	arithmetic("intAdc", "Adc", allSizes, "RR RI RM"),
	arithmetic("intSbb", "Sbb", allSizes, "RR RI RM"),
	arithmetic("intCmp", "Cmp", allSizes, "RR RI RM MR MI"),
	arithmetic("intTest", "Test", allSizes, "RR RI MR MI"),
	[]claim{
		{handlers: "intAnd", place: inHighByte, shapes: []string{"formRMImm"}, sizes: []int{1}, form: sized("AndHI")},
		{handlers: "intTest", place: inHighByte, shapes: []string{"formRMImm"}, sizes: []int{1}, form: sized("TestHI")},
		{handlers: "intSub", place: inThread, shapes: []string{"formRegRM"}, sizes: []int{8}, form: threaded("SubRM")},
		{handlers: "intNeg", place: inRegister, sizes: allSizes, form: sized("Neg")},
		{handlers: "intNot", place: inRegister, sizes: wide, form: sized("Not")},
		{handlers: "intInc", place: inRegister, sizes: wide, form: sized("Inc")},
		{handlers: "intDec", place: inRegister, sizes: wide, form: sized("Dec")},

		{handlers: "intMovStore intMovLoad", place: inRegister, sizes: allSizes, form: sized("MovRR"), rmFirst: true},
		{handlers: "intMovStore", place: inMemory, sizes: allSizes, form: sized("Store")},
		{handlers: "intMovLoad", place: inMemory, sizes: []int{1, 2}, form: sized("LoadM")}, // the rest of the register stays
		{handlers: "intMovLoad", place: inMemory, sizes: wide, form: sized("Load")},
		{handlers: "intMovLoad", place: inThread, sizes: []int{8}, form: threaded("Load")},
		{handlers: "intMovImm intMovRegImm", place: inRegister, sizes: allSizes, form: sized("MovRI")},
		{handlers: "intMovImm", place: inMemory, sizes: allSizes, form: sized("StoreI")},
		{handlers: "intMovzx", place: inRegister, sizes: wide, by: bySource, form: func(v *variant) form { return form{op: "Movzx", from: v.from()} }},
		{handlers: "intMovzx", place: inMemory, sizes: wide, by: bySource, form: func(v *variant) form { return form{op: "Load", size: v.from()} }},
		{handlers: "intMovsx", place: inRegister, sizes: wide, by: bySource, form: sourced("Movsx")},
		{handlers: "intMovsx", place: inMemory, sizes: wide, by: bySource, form: sourced("LoadS")},
		{handlers: "intMovsxd", place: inRegister, sizes: []int{8}, form: func(*variant) form { return form{op: "Movsx", from: 4, size: 8} }},
		{handlers: "intMovsxd", place: inMemory, sizes: []int{8}, form: func(*variant) form { return form{op: "LoadS", from: 4, size: 8} }},
		{handlers: "intLea", place: inMemory, sizes: wide, form: sized("Lea")},
		{handlers: "intCbw", place: inRegister, sizes: wide, form: sized("Cbw")},
		{handlers: "intCwd", place: inRegister, sizes: wide, form: sized("Cwd")},
		{handlers: "intCmov", place: inRegister, sizes: wide, by: byCondition, form: func(v *variant) form { return form{op: "Cmov", cond: v.cond(), size: v.size} }},
		{handlers: "intSetcc", place: inRegister, by: byCondition, form: conditional("Set")},

		{handlers: "intShiftImm intShift1", place: inRegister, sizes: []int{2, 4, 8}, by: byGroup, values: []int{0}, form: sized("RolRI")},
		{handlers: "intShiftImm intShift1", place: inRegister, sizes: []int{2, 4, 8}, by: byGroup, values: []int{1}, form: sized("RorRI")},
		{handlers: "intShiftImm intShift1", place: inRegister, sizes: allSizes, by: byGroup, values: []int{4, 6}, form: sized("ShlRI")},
		{handlers: "intShiftImm intShift1", place: inRegister, sizes: allSizes, by: byGroup, values: []int{5}, form: sized("ShrRI")},
		{handlers: "intShiftImm intShift1", place: inRegister, sizes: allSizes, by: byGroup, values: []int{7}, form: sized("SarRI")},
		{handlers: "intShiftCL", place: inRegister, sizes: wide, by: byGroup, values: []int{4, 6}, form: sized("VShl")},
		{handlers: "intShiftCL", place: inRegister, sizes: wide, by: byGroup, values: []int{5}, form: sized("VShr")},
		{handlers: "intShiftCL", place: inRegister, sizes: wide, by: byGroup, values: []int{7}, form: sized("VSar")},
		{handlers: "intImul2", place: inRegister, sizes: wide, form: sized("ImulRR")},
		{handlers: "intImul2", place: inMemory, sizes: wide, form: sized("ImulRM")},
		{handlers: "intImul3", place: inRegister, sizes: wide, form: sized("ImulRI")},

		{handlers: "intNop", place: inRegister, form: unsized("Nop")},
		{handlers: "intNop", place: inMemory, form: unsized("Nop")},
		{handlers: "intXchgAcc", place: inRegister, by: byRegister, values: []int{0}, form: unsized("Nop")}, // with itself
		{handlers: "intPush", place: inRegister, sizes: []int{8}, form: sized("Push")},
		{handlers: "intPushImm", place: inRegister, sizes: []int{8}, form: sized("PushI")},
		{handlers: "intPop", place: inRegister, sizes: []int{8}, form: sized("Pop")},
		{handlers: "intCall", place: inRegister, form: unsized("Call")},
		{handlers: "intCallRM", place: inRegister, form: unsized("CallR")},
		{handlers: "intCallRM", place: inMemory, form: unsized("CallM")},
		{handlers: "intJmp", place: inRegister, form: unsized("Jmp")},
		{handlers: "intJmpRM", place: inRegister, form: unsized("JmpR")},
		{handlers: "intJmpRM", place: inMemory, form: unsized("JmpM")},
		{handlers: "intRet", place: inRegister, by: byOpcode, values: []int{0xc3}, form: unsized("Ret")}, // not RET imm16
		{handlers: "intJcc", place: inRegister, by: byCondition, form: conditional("J")},

		{handlers: "movups", place: inMemory, form: unsized("LoadU")},
		{handlers: "movaps", place: inMemory, form: unsized("LoadA")},
		{handlers: "movups movaps", place: inRegister, form: unsized("MovXL")},
		{handlers: "movupsStore", place: inMemory, form: unsized("StoreU")},
		{handlers: "movapsStore", place: inMemory, form: unsized("StoreA")},
		{handlers: "movupsStore movapsStore", place: inRegister, form: unsized("MovXS")},
		{handlers: "pxor", place: inRegister, form: unsized("Pxor")},
		{handlers: "vmovups vmovaps", place: inRegister, vex: []width{vex128}, form: vector("vmov", vex128, regs, 0)},
		{handlers: "vmovups vmovaps", place: inRegister, vex: []width{vex256}, form: vector("vmov", vex256, regs, 0)},
		{handlers: "movdX", place: inRegister, vex: []width{legacy}, by: byW, values: []int{0}, form: vector("movd", legacy, regs, 4)},
		{handlers: "movdX", place: inRegister, vex: []width{legacy}, by: byW, values: []int{1}, form: vector("movd", legacy, regs, 8)},
		{handlers: "movdX", place: inMemory, vex: []width{legacy}, by: byW, values: []int{0}, form: vector("movss", legacy, memory, 0)},
		{handlers: "movdX", place: inMemory, vex: []width{legacy}, by: byW, values: []int{1}, form: vector("movqX", legacy, memory, 0)},
		{handlers: "movdXStore", place: inRegister, vex: []width{legacy}, by: byW, values: []int{0}, form: vector("movdStore", legacy, regs, 4)},
		{handlers: "movdXStore", place: inRegister, vex: []width{legacy}, by: byW, values: []int{1}, form: vector("movdStore", legacy, regs, 8)},
		{handlers: "movdXStore", place: inMemory, by: byW, values: []int{0}, form: vector("movssStore", legacy, memory, 0)},
		{handlers: "movdXStore", place: inMemory, by: byW, values: []int{1}, form: vector("movqXStore", legacy, memory, 0)},
		{handlers: "movsdXStore", place: inMemory, form: vector("movsdXStore", legacy, memory, 0)}, // VEX too: a store has no upper half
	},
)

// arithmetic claims the two-operand forms of a handler: R register, I immediate, M
// memory, the destination first.
func arithmetic(handler, op string, sizes []int, shapes string) []claim {
	var l []claim
	for _, s := range strings.Fields(shapes) {
		c := claim{handlers: handler, place: inRegister, sizes: sizes, form: sized(op + s), rmFirst: true}
		if strings.Contains(s, "M") {
			c.place = inMemory
		}
		c.shapes = map[string][]string{
			"RR": {"formRMReg", "formRegRM"}, "RM": {"formRegRM"}, "MR": {"formRMReg"}, "RI": {"formRMImm"}, "MI": {"formRMImm"},
		}[s]
		l = append(l, c)
	}
	return l
}

// threaded is the form of op with the size of the operands, relative to FS.
func threaded(op string) func(*variant) form {
	return func(v *variant) form { return form{op: op, size: v.size, thread: true} }
}

// conditional is the form of op for each condition.
func conditional(op string) func(*variant) form {
	return func(v *variant) form { return form{op: op, cond: v.cond()} }
}

// Counts of shifts that are 0 after masking change nothing at all, and those that shift
// everything out have flags of their own: both are left to the handler.
var counted = map[string]string{"intShiftImm": "countImm", "intShift1": "countOne"}

var (
	allSizes = []int{1, 2, 4, 8}
	wide     = []int{4, 8}
)

// sized is the form of op with the size of the operands.
func sized(op string) func(*variant) form {
	return func(v *variant) form { return form{op: op, size: v.size} }
}

// unsized is the form of op without a size.
func unsized(op string) func(*variant) form {
	return func(*variant) form { return form{op: op} }
}

// sourced is the form of op with the size of the source.
func sourced(op string) func(*variant) form {
	return func(v *variant) form { return form{op: op, from: v.from(), size: v.size} }
}

// vector is the form of a vector operation.
func vector(op string, w width, o operands, size int) func(*variant) form {
	return func(*variant) form { return form{op: op, vex: w, operands: o, size: size} }
}
