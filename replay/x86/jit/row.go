//go:build linux && amd64

package jit

import (
	"slices"
	"strings"
	"sync"

	"vplay/replay/x86"
)

// What is emitted for a row of the tables, found out once. A row that no rule here
// names goes to its handler, so new rows are never emitted by accident.

// emitter emits the instruction t.in of fact t.f. It returns false, with nothing
// emitted, for an instruction that the handler must execute.
type emitter func(t *translator) bool

// fact is what the translator knows of a row.
type fact struct {
	emit    emitter // nil: the handler
	op      opcode  // without the prefixes that are an instruction's own
	digit   uint8   // ModRM.reg where it is no operand
	reg, rm operand // of ModRM
	imm     x86.Imm

	reads     bool // arithmetic flags
	writes    bool // some of them
	partly    bool // but not all six
	undefined bool // and leaves some to the vendor
	ends      bool // ends a unit

	recipe        recipeKind // of its flags
	quiet         bool       // is emitted and cannot leave, with registers as operands
	address       bool       // LEA: its memory operand is not accessed
	plusR         bool       // its operand is the register in the opcode
	indirect      bool       // an indirect branch
	moves         bool       // moves the stack pointer by moveStack
	stack         stackUse   // what it does to the stack beside its operands
	implied       uint16     // guest registers that it writes without naming them
	wReg, wRM, wV bool       // and of those that it names

	vector    bool    // uses vector registers
	raises    bool    // may raise floating-point exceptions: it uses MXCSR
	isVectors bool    // is emitted by vectors
	align     uint8   // of the memory operand, 0 any
	rmGeneral bool    // of vector rows: ModRM.rm is a general register or memory
	general   x86.Dir // and VEX.vvvv is one
}

// operand is an operand in ModRM.
type operand struct {
	dir  x86.Dir // 0: it has none there
	byte bool
	size uint8 // of memory; 0: the instruction's
}

// arithmetic is all arithmetic flags.
const arithmetic = x86.FlagCF | x86.FlagPF | x86.FlagAF | x86.FlagZF | x86.FlagSF | x86.FlagOF

// emitters are the rules, by the name of the row's handler.
var emitters = map[string]emitter{}

func init() {
	for _, h := range strings.Fields(`intAdd intOr intAdc intSbb intAnd intSub intXor intCmp intTest
		intNot intNeg intInc intDec intImul2 intImul3 intShift1 intTzcnt intLzcnt intPopcnt
		intCrc32 intCrc32b intMovbeLoad intMovbeStore intAdcx intAdox intMovStore intMovLoad intMovImm
		intMovzx intMovsx intCmov intSetcc intXchg intXadd intBsf intBsr`) {
		emitters[h] = again
	}
	for h, e := range map[string]emitter{
		"intShiftImm": shiftImmediate, "intShiftCL": again, "intShld": doubleShift, "intShrd": doubleShift, "intBt": bitTest,
		"intMovsxd": extendDouble, "intBswap": byteSwap, "intMovRegImm": moveImmediate, "intLea": loadAddress, "intNop": nothing,
		"intXchgAcc": exchangeAccumulator, "intCbw": widen, "intCwd": widenInto, "intMul": multiply, "intDiv": divide, "intIdiv": divide, "intImul1": multiply,
		"intCmpxchg": compareExchange,
		"intPush":    push, "intPop": pop, "intPushImm": pushImmediate, "intLeave": leave,
		"intJcc": jumpIf, "intLoop": loop, "intPushRM": pushMemory, "intJmp": jump, "intCall": call, "intRet": ret, "intJmpRM": jumpIndirect, "intCallRM": callIndirect,
	} {
		emitters[h] = e
	}
}

// facts are those of all rows, by index.
var facts = sync.OnceValue(func() []fact {
	rows := x86.Rows()
	l := make([]fact, len(rows))
	for i := range rows {
		if i > 0 {
			l[i] = factOf(&rows[i], i)
		}
	}
	return l
})

func factOf(r *x86.Row, i int) fact {
	e := &r.Encoding
	f := fact{
		op: opcode{opmap: e.Map, op: e.Opcode}, imm: e.Imm,
		reads: r.Reads != 0, writes: r.Writes|r.Undef != 0, partly: r.Writes&arithmetic != arithmetic,
		undefined: r.Undef != 0 && !isLogic(r.Handler) || isRotate(r), ends: r.Attr("end") || r.Attr("stop"),
	}
	switch e.Prefix {
	case x86.Prefix66:
		f.op.prefix = 0x66
	case x86.PrefixF2:
		f.op.prefix = 0xf2
	case x86.PrefixF3:
		f.op.prefix = 0xf3
	case x86.PrefixAny, x86.PrefixNP:
	}
	if e.Digit >= 0 {
		f.digit = uint8(e.Digit)
	}
	if r.File != "int" {
		f.vectorFact(r, i)
	} else if hostHas(r.CPUID) || r.Handler == "intNop" {
		f.emit = emitters[r.Handler]
		f.operands(r)
		f.recipe = recipeOf[r.Handler]
		f.quiet = slices.Contains(quiet, r.Handler)
		f.address, f.plusR = r.Handler == "intLea", r.Handler == "intMovRegImm"
		f.indirect = slices.Contains(indirect, r.Handler)
		f.moves = slices.Contains(moves, r.Handler)
		f.stack = stackUses[r.Handler]
	}
	f.results(i)
	return f
}

// What rows are, by the name of their handler.
var (
	quiet = strings.Fields(`intAdd intOr intAnd intSub intXor intCmp intTest intNot intNeg intMovStore intMovLoad
		intMovRegImm intMovzx intMovsx intMovsxd intLea`)
	indirect = []string{"intRet", "intJmpRM", "intCallRM"}
	moves    = []string{"intPush", "intPushImm", "intPop", "intCall"}
)

// stackUse is what an instruction does to the stack beside its operands.
type stackUse uint8

const (
	pushes stackUse = iota + 1 // stores below the top
	pops                       // loads the top
	leaves                     // loads what rbp points to
)

var stackUses = map[string]stackUse{"intPush": pushes, "intPushImm": pushes, "intCall": pushes, "intPop": pops, "intRet": pops, "intLeave": leaves}

// results notes which registers row i writes, from an instruction whose registers are all different.
func (f *fact) results(i int) {
	const reg, rm, vvvv = 8, 9, 10
	in := x86.Inst{Row: uint16(i), Reg: reg, RM: rm, VVVV: vvvv, Base: x86.NoReg, Index: x86.NoReg, Seg: x86.NoSeg, Flags: x86.InstREX | x86.InstRep}
	w := in.Effects().Write.R
	f.wReg, f.wRM, f.wV = w>>reg&1 != 0, w>>rm&1 != 0, w>>vvvv&1 != 0
	f.implied = w &^ (1<<reg | 1<<rm | 1<<vvvv)
}

// written returns the guest registers that in may write.
func (f *fact) written(in *x86.Inst) uint16 {
	w := f.implied
	if f.wReg {
		w |= named(in, in.Reg)
	}
	if f.wRM && in.Flags&x86.InstMem == 0 {
		w |= named(in, in.RM)
	}
	if f.wV {
		w |= 1 << (in.VVVV & 15)
	}
	return w
}

// named returns the guest register, or the two, that number n of in may be.
func named(in *x86.Inst, n uint8) uint16 {
	if in.Size == 1 && in.Flags&x86.InstREX == 0 {
		return 1<<(n&15) | 1<<(n&3) // spl to dil, or ah to bh
	}
	return 1 << (n & 15)
}

// isLogic says that the only undefined flag is AF, which every vendor's CPUs and the
// handlers clear.
func isLogic(handler string) bool {
	return slices.Contains([]string{"intAnd", "intOr", "intXor", "intTest"}, handler)
}

// isRotate says that OF is undefined behind some counts, which the row does not tell.
func isRotate(r *x86.Row) bool { return r.Handler == "intShiftImm" || r.Handler == "intShiftCL" }

// operands notes which operands of r stand in ModRM.
func (f *fact) operands(r *x86.Row) {
	for i, o := range r.Operands {
		switch {
		case strings.HasPrefix(o, "rm"), o == "m", o == "mv", o == "m8":
			f.rm = operand{r.Dirs[i], o == "rm8" || o == "m8", sizeOf[o]}
		case o == "r8", o == "rv", o == "ry":
			f.reg = operand{r.Dirs[i], o == "r8", 0}
		case o == "al", o == "rax_v":
			f.accumulator(r, o == "al")
		}
	}
}

// sizeOf has the operands whose size does not follow from the instruction's.
var sizeOf = map[string]uint8{"rm8": 1, "m8": 1, "rm16": 2, "rm32": 4}

// accumulator makes the form with a ModRM byte of one of al or rax and an immediate.
func (f *fact) accumulator(r *x86.Row, isByte bool) {
	if len(r.Operands) != 2 || !strings.HasPrefix(r.Operands[1], "imm") {
		return
	}
	f.rm = operand{r.Dirs[0], isByte, 0}
	switch r.Handler {
	case "intTest":
		f.op.op, f.digit = 0xf6, 0
	default:
		f.op.op, f.digit = 0x80, f.op.op>>3
	}
	if !isByte {
		f.op.op |= 1
	}
}
