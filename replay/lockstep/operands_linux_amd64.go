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

func (o *operands) vec(n uint8) {
	o.add(fmt.Sprintf("ymm%d", n&15), vecText(o.s.V[n&15]))
}

func (o *operands) st(i int) {
	f := &o.s.FPU
	o.add(fmt.Sprintf("st(%d)", i&7), f80Text(f.R[(i+int(f.Top))&7]))
}

// operands lists what d uses, then the flags, then what either side changed.
func (r *runner) operands(d *decoded, theirs *ptrace.Regs) []Value {
	o := &operands{r: r, s: &r.before, have: map[string]bool{}}
	if d != nil {
		for _, p := range d.inst.Operands() {
			o.operand(&p, &d.inst)
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

// operand adds the registers of p, an operand of in, and what its memory held.
// State that is saved or loaded as a whole is left out.
func (o *operands) operand(p *x86.Operand, in *x86.Inst) {
	switch p.Name {
	case "vec", "st":
		return
	case "st0", "sti":
		o.st(0)
		if p.Name == "sti" {
			o.st(int(in.RM))
		}
		return
	}
	for n := range uint8(16) {
		if (p.Uses.R|p.Address.R)>>n&1 != 0 {
			o.reg(n)
		}
		if (p.Uses.V|p.Address.V)>>n&1 != 0 {
			o.vec(n)
		}
		if p.Uses.X87>>n&1 != 0 { // MMX registers are x87 registers
			o.add(fmt.Sprintf("mm%d", n), hex(o.s.FPU.R[n&7].M))
		}
	}
	if p.Uses.Parts&x86.PartMemory != 0 && p.Name != "mem" && p.Name != "vm" {
		o.memory(p.Name, in)
	}
}

// memory adds what the memory operand called name held.
func (o *operands) memory(name string, in *x86.Inst) {
	a := uint64(in.Disp)
	if in.Base < x86.NoReg {
		a += o.s.R[in.Base]
	}
	if in.Index < x86.NoReg {
		a += o.s.R[in.Index] << in.Scale
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
