package slice

import (
	"math/bits"

	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// What an instruction of a slice has made, for those who show it.

// Result says where an instruction puts its result.
type Result struct {
	IsMemory bool
	Addr     uint64 // IsMemory
	Size     int    // bytes; 0: there is nothing that can be shown as a number
	Reg      uint8  // a general register, or with IsVector a vector register
	IsVector bool
	IsFlags  bool
}

// ResultOf returns where the instruction in, at which c stands, puts its result: memory before
// registers, registers before flags.
func ResultOf(c *x86.CPU, in *x86.Inst) Result {
	k := dataflow.Compile(c.RIP, in, false)
	for i := range k.Flows {
		f := &k.Flows[i]
		switch {
		case k.Spied:
		case f.Store >= 0 && k.Repeats:
			return Result{IsMemory: true, Addr: c.R[x86.RDI], Size: int(k.Ops[1].Size)}
		case f.Store >= 0:
			o := k.Ops[f.Store]
			return Result{IsMemory: true, Addr: o.At(c, in), Size: int(o.Size)}
		}
	}
	for i := range k.Flows {
		if r := resultIn(&k.Flows[i].Dst, in); r.Size > 0 || r.IsFlags {
			return r
		}
	}
	return Result{}
}

// resultIn returns what of the registers in dst is shown.
func resultIn(dst *dataflow.RegSet, in *x86.Inst) Result {
	for r := range uint8(16) {
		if b := dst[r/8] >> (r % 8 * 8) & 0xff; b != 0 {
			n := bits.OnesCount64(b)
			if n == 8 && in.Size == 4 {
				n = 4 // the rest becomes zero
			}
			return Result{Reg: r, Size: n}
		}
	}
	for r := range uint8(32) {
		if dst[dataflow.VecWord+r/8]>>(r%8*8)&0xff != 0 {
			return Result{Reg: r, IsVector: true, Size: 16}
		}
	}
	return Result{IsFlags: dst[dataflow.MiscWord]&0xff != 0}
}

// CrashWants returns what the instruction in, at which c stands, could not cope with: the
// registers that the address of its memory operand is made of, or, when it is not the
// address (a division), all that it reads.
func CrashWants(c *x86.CPU, in *x86.Inst, isAddress bool) (out []Location) {
	k := dataflow.Compile(c.RIP, in, false)
	set := k.Address
	if k.Indirect && in.Flags&x86.InstMem != 0 {
		set.Add(k.Decides.Src) // a call through a table: what the address of its entry is made of
	}
	if !isAddress {
		for i := range k.Flows {
			set.Add(k.Flows[i].Src)
			for _, l := range k.Flows[i].Loads {
				if !k.Repeats && !k.Spied {
					out = append(out, Location{IsMemory: true, Addr: k.Ops[l].At(c, in), Len: uint64(k.Ops[l].Size)})
				}
			}
		}
	}
	set.Remove(dataflow.Ignored)
	for r := range uint8(16) {
		if set[r/8]>>(r%8*8)&0xff != 0 {
			out = append(out, Location{Reg: r, Len: 8})
		}
	}
	return out
}

// FaultWants is CrashWants, or TargetWants for a jump that was refused because of where it goes
// to, and not because of where it has that from. addr is the address that the signal tells, which
// is 0 for one that is not canonical.
func FaultWants(c *x86.CPU, in *x86.Inst, isAddress bool, addr uint64) []Location {
	want := TargetWants(c, in)
	if len(want) == 0 {
		return CrashWants(c, in, isAddress)
	}
	if w := want[0]; w.IsMemory && (addr-w.Addr < w.Len || uint64(int64(w.Addr)<<16>>16) != w.Addr) {
		return CrashWants(c, in, isAddress)
	}
	return want
}

// TargetWants returns where the instruction in, at which c stands and which goes where
// nothing can be executed, has its target from, and of an entry of a table what its address is made of.
func TargetWants(c *x86.CPU, in *x86.Inst) []Location {
	switch x86.Rows()[in.Row].Mnemonic {
	case "RET":
		return []Location{{IsMemory: true, Addr: c.R[x86.RSP], Len: 8}}
	case "CALL", "JMP":
		if in.Flags&x86.InstMem != 0 {
			return append([]Location{{IsMemory: true, Addr: c.Address(in), Len: 8}}, addressWants(c, in)...)
		}
		if ops := x86.Rows()[in.Row].Operands; len(ops) > 0 && ops[0] == "rmv" {
			return []Location{{Reg: in.RM, Len: 8}}
		}
	}
	return nil
}

// addressWants returns the general registers that the address of in's memory operand is made of.
func addressWants(c *x86.CPU, in *x86.Inst) []Location {
	out := CrashWants(c, in, true)
	for i := range out {
		out[i].IsAddress = true
	}
	return out
}

// IsSave reports whether v is a PUSH or POP of a register: most of them keep the value of a
// register for a caller. It needs nothing: who needed what it kept has an edge to what made that.
func (v *Vertex) IsSave() bool { return v.Kind == Instruction && isSave(&v.Inst) }

// isSave is Vertex.IsSave of an instruction. One that all functions of a program
// have would else join what each of them keeps.
func isSave(in *x86.Inst) bool {
	row := &x86.Rows()[in.Row]
	return (row.Mnemonic == "PUSH" || row.Mnemonic == "POP") && len(row.Operands) == 1 && row.Operands[0] == "rv"
}
