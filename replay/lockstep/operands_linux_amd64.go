package lockstep

import (
	"fmt"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
	"vplay/replay/x86"
)

// operands collects the values an instruction had to work with.
type operands struct {
	r    *runner
	s    *x86.State // before the instruction
	list []Value
	have map[string]bool
}

func (o *operands) add(name, value string) {
	if !o.have[name] {
		o.have[name] = true
		o.list = append(o.list, Value{name, value})
	}
}

func (o *operands) reg(n uint8) { o.add(checkpoint.RegNames[n&15], hex(o.s.R[n&15])) }

// part adds register n as an operand of size bytes: without REX, 4 to 7 are ah,
// ch, dh and bh.
func (o *operands) part(n, size uint8, in *x86.Inst) {
	if size == 1 && n >= 4 && n < 8 && in.Flags&x86.InstREX == 0 {
		n -= 4
	}
	o.reg(n)
}

func (o *operands) vec(n uint8) {
	o.add(fmt.Sprintf("ymm%d", n&15), vecText(o.s.V[n&15]))
}

func (o *operands) st(i int) {
	f := &o.s.FPU
	o.add(fmt.Sprintf("st(%d)", i&7), f80Text(f.R[(i+int(f.Top))&7]))
}

// implied are the registers of operands that the encoding does not name.
var implied = map[string]uint8{
	"al": x86.RAX, "ax": x86.RAX, "eax": x86.RAX, "rax": x86.RAX, "rax_v": x86.RAX, "cl": x86.RCX,
}

// before lists the operands of d, then the flags, then what either side
// changed.
func (r *runner) operands(d *decoded, theirs *ptrace.Regs) []Value {
	o := &operands{r: r, s: &r.before, have: map[string]bool{}}
	if d != nil {
		for _, name := range d.row().Operands {
			o.operand(name, d)
		}
		if d.class&isRep != 0 {
			for _, n := range []uint8{x86.RSI, x86.RDI, x86.RCX, x86.RAX} {
				o.reg(n)
			}
		}
		if d.row().Attr("xmm0") {
			o.vec(0)
		}
	}
	o.add("rflags", flagText(o.s.Flags()))
	now := &r.m.CPU.State
	for i, p := range regFile(theirs) {
		if o.s.R[i] != now.R[i] || o.s.R[i] != *p {
			o.reg(uint8(i))
		}
	}
	if d != nil && d.class&isVector != 0 {
		for i := range o.s.V {
			if o.s.V[i] != now.V[i] {
				o.vec(uint8(i))
			}
		}
		o.add("mxcsr", hex(uint64(o.s.MXCSR)))
	}
	return o.list
}

// operand adds one operand of the row; internal/isagen has the names.
func (o *operands) operand(name string, d *decoded) {
	in, enc := &d.inst, &d.row().Encoding
	isMem := in.Flags&x86.InstMem != 0
	reg, known := implied[name]
	switch {
	case known:
		o.reg(reg)
	case name == "st0" || name == "sti":
		o.st(0)
		if name == "sti" {
			o.st(int(in.RM))
		}
	case strings.Contains(name, "mm") && name != "imm8" && !strings.HasPrefix(name, "imm"):
		o.vectors(name, in, enc, isMem)
	case strings.HasPrefix(name, "rm") || strings.HasPrefix(name, "r32m"):
		if isMem {
			o.memory(name, in)
		} else {
			o.part(in.RM, in.Size, in)
		}
	case strings.HasPrefix(name, "rel") || strings.HasPrefix(name, "imm") || name == "one":
	case strings.HasPrefix(name, "r"):
		o.part(in.Reg, in.Size, in)
		if enc.VVVV {
			o.reg(in.VVVV)
		}
	case isMem && (strings.HasPrefix(name, "m") || strings.HasPrefix(name, "vm")):
		o.memory(name, in)
	}
}

// vectors adds the registers of an operand of MMX, SSE or AVX kind; which of
// the three fields it stands in is not worth telling apart.
func (o *operands) vectors(name string, in *x86.Inst, enc *x86.Encoding, isMem bool) {
	if isMem && strings.Contains(name, "mmm") {
		o.memory(name, in)
		return
	}
	one := o.vec
	if strings.HasPrefix(name, "mm") { // MMX registers are x87 registers
		one = func(n uint8) { o.add(fmt.Sprintf("mm%d", n&7), hex(o.s.FPU.R[n&7].M)) }
	}
	one(in.Reg)
	if enc.VVVV {
		one(in.VVVV)
	}
	if !isMem {
		one(in.RM)
	}
}

// memory adds the registers of a memory operand, and what it held.
func (o *operands) memory(name string, in *x86.Inst) {
	a := uint64(in.Disp)
	if in.Base != x86.NoReg && in.Base != x86.RIPReg {
		o.reg(in.Base)
		a += o.s.R[in.Base]
	}
	if strings.HasPrefix(name, "vm") {
		o.vec(in.Index)
		return
	}
	if in.Index != x86.NoReg {
		o.reg(in.Index)
		a += o.s.R[in.Index&15] << in.Scale
	}
	if in.Flags&x86.InstAddr32 != 0 {
		a = uint64(uint32(a))
	}
	switch in.Seg {
	case x86.FS:
		a += o.s.FSBase
	case x86.GS:
		a += o.s.GSBase
	}
	n := int(in.Size)
	if i := strings.LastIndexByte(name, 'm'); i >= 0 {
		var bits int
		if _, err := fmt.Sscanf(name[i+1:], "%d", &bits); err == nil && bits >= 8 {
			n = bits / 8
		}
	}
	if b := o.r.was(a, n); b != nil {
		o.add(fmt.Sprintf("[%#x]", a), fmt.Sprintf("% x", b))
	}
}

// was returns the n bytes at a before the instruction, fewer where they are not
// known.
func (r *runner) was(a uint64, n int) []byte {
	b := make([]byte, n)
	got, _ := r.m.Mem.Peek(a, b)
	b = b[:got]
	for i := len(r.spy.stores) - 1; i >= 0; i-- {
		st := r.spy.stores[i]
		for j := range st.n {
			if at := st.addr + uint64(j) - a; at < uint64(got) {
				b[at] = r.spy.bytes[st.old+j]
			}
		}
	}
	return b
}
