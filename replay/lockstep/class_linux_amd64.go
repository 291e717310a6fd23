package lockstep

import (
	"strings"

	"vplay/replay/x86"
)

// Which instructions are compared, and how closely: by the rows of the emulator's
// tables, and by what this CPU does in its own way (SDM, vol. 2 and 3A). The comparison
// itself is in compare_linux_amd64.go.

// class says how an instruction is compared.
type class uint8

const (
	// isAlone: only the emulator executes it, since its result is the log's
	// or the machine's.
	isAlone class = 1 << iota
	// isVector: it may touch extended state.
	isVector
	isApprox
	isRep
	isPushf
)

// aloneHandlers are those whose result the program does not compute.
var aloneHandlers = map[string]bool{
	"intSyscall": true, "intCPUID": true, "intRDTSC": true, "intRDTSCP": true, "intRandom": true,
}

// integerFiles are the tables of instructions that leave extended state alone.
var integerFiles = map[string]bool{"int": true, "bmi": true}

// classes are those of the rows of the emulator's table.
var classes = func() []class {
	rows := x86.Rows()
	l := make([]class, len(rows))
	for i := range rows {
		r := &rows[i]
		if aloneHandlers[r.Handler] {
			l[i] |= isAlone
		}
		if !integerFiles[r.File] {
			l[i] |= isVector
		}
		if r.Attr("approx") {
			l[i] |= isApprox
		}
		if r.Attr("rep") {
			l[i] |= isRep
		}
		if r.Handler == "intPushf" {
			l[i] |= isPushf
		}
	}
	return l
}

// decoded is an instruction and how to compare it.
type decoded struct {
	pc    uint64
	n     int
	bytes [15]byte
	inst  x86.Inst
	class class
}

// decoder remembers instructions by address: decoding costs more than a
// comparison of bytes.
type decoder struct {
	id      *x86.CPUIdentity
	classes []class
	cache   [1 << 12]decoded
}

// fit lets the emulator alone execute what this machine does in its own way:
// instructions that show XCR0 or save what it enables, when XCR0 is not the
// recorded one, and the makers' approximations on another maker's CPU.
func (d *decoder) fit(sameXCR0, sameMaker bool) {
	for i, r := range x86.Rows() {
		xcr0 := r.File == "xsave" && r.CPUID != "FXSR"
		approx := strings.Contains(r.Mnemonic, "RCPPS") || strings.Contains(r.Mnemonic, "RCPSS") || strings.Contains(r.Mnemonic, "RSQRT")
		if xcr0 && !sameXCR0 || approx && !sameMaker {
			d.classes[i] |= isAlone
		}
	}
}

// at decodes the bytes b at pc; nil when they are no instruction.
func (d *decoder) at(pc uint64, b []byte) *decoded {
	e := &d.cache[(pc^pc>>12)%uint64(len(d.cache))]
	if e.n > 0 && e.pc == pc && e.n <= len(b) && string(e.bytes[:e.n]) == string(b[:e.n]) {
		return e
	}
	in, err := x86.DecodeInst(b, pc, d.id)
	if err != nil {
		return nil
	}
	*e = decoded{pc: pc, n: int(in.Len), inst: in, class: d.classes[in.Row]}
	copy(e.bytes[:], b[:e.n])
	// The instruction behind a load of SS is executed in the same step of the
	// CPU (SDM vol. 3A, 6.8.3).
	if x86.Rows()[in.Row].Handler == "intMovToSeg" && in.Reg&7 == x86.SS {
		e.class |= isAlone
	}
	return e
}

// undefined are the flags that the manuals leave undefined after d. The table
// has none for rotations: OF is so but for a count of one (SDM vol. 2B, RCL).
func (d *decoded) undefined() uint64 {
	r := d.row()
	if (r.Handler == "intShiftImm" || r.Handler == "intShiftCL") && r.Mnemonic[0] == 'R' {
		return r.Undef | x86.FlagOF
	}
	return r.Undef
}

// row returns the table's row of d.
func (d *decoded) row() *x86.Row { return &x86.Rows()[d.inst.Row] }

// name is the row's mnemonic and encoding.
func (d *decoded) name() string { return d.row().Mnemonic + ", " + d.row().Encoding.Text }
