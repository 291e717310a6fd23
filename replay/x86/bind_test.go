package x86

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestInstsStayAsDecoded executes random programs and every kind of the loop in
// blocks. The instructions of each block must then be what decoding its bytes
// gives: binding, fusion and execution leave them alone.
func TestInstsStayAsDecoded(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	rows := blockRows()
	fused, swapped, compared := 0, 0, 0
	check := func(code []byte, vendor Vendor) {
		c, _ := machine(rng.Uint64(), code, vendor)
		c.Run(200)
		for _, page := range c.code.pages {
			for _, b := range page.blocks {
				pc := b.pc
				for i := range b.insts {
					var want Inst
					if s := decodeInst(code[pc-testText:], pc, c.ID, &want); s != decodeOK {
						t.Fatalf("% x: decoding at %#x: status %d", code, pc, s)
					}
					if got := b.insts[i].Inst; got != want {
						t.Fatalf("% x at %#x:\n%+v\ndecoded:\n%+v", code, pc, got, want)
					}
					pc += uint64(want.Len)
					compared++
				}
				for o := firstOp(b); o.kind != kEnd; o = nextOp(o) {
					if o.flags&opFused != 0 {
						fused++
					}
					if o.reg != b.insts[o.idx].Reg {
						swapped++
					}
				}
			}
		}
	}
	for i := range 300 {
		check(randomProgram(rng, rows, 30), Vendor(i&1))
	}
	for _, name := range kindNames {
		if code, ok := chainProgram(rng, kindSamples(), name, false); ok {
			check(code, VendorIntel)
		}
	}
	if fused == 0 || swapped == 0 || compared < 1000 {
		t.Errorf("%d fused pairs, %d exchanged operands, %d instructions", fused, swapped, compared)
	}
}

// TestBinding binds instructions as the decoder makes them, of every row, and
// holds the list of what has no case of the loop, generic.txt: handlers, and of those
// that have cases the operands without. isagen compares the same list with what it
// makes of the tables, so the two agree about what the decoder makes.
func TestBinding(t *testing.T) {
	bound := map[string]map[string]bool{} // by handler and operands
	all := Rows()
	for i := range all {
		r := &all[i]
		if i == 0 || r.Attr("refuse") || r.Encoding.EVEX || r.File == "opmask" {
			continue
		}
		if bound[r.Handler] == nil {
			bound[r.Handler] = map[string]bool{}
		}
		for _, in := range formsOf(r) {
			what := operandsOf(r, &in)
			bound[r.Handler][what] = bound[r.Handler][what] || bind(&in).kind != kGeneric
		}
	}
	got := map[string]bool{}
	for h, forms := range bound {
		if !slices.Contains(slices.Collect(maps.Values(forms)), true) {
			got[h] = true
			continue
		}
		for f, has := range forms {
			if !has {
				got[h+" "+f] = true
			}
		}
	}
	const file = "internal/isagen/generic.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	listed := lineSet(string(text))
	for l := range got {
		if !listed[l] {
			t.Errorf("%s: no case, and not listed in %s", l, file)
		}
	}
	for l := range listed {
		if !got[l] {
			t.Errorf("%s: listed in %s, but has a case or does not exist", l, file)
		}
	}
}

// lineSet returns the lines of s that are no comments.
func lineSet(s string) map[string]bool {
	m := map[string]bool{}
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
			m[l] = true
		}
	}
	return m
}

// formsOf returns instructions of r as the decoder makes them, one for each
// operand size, register or memory, low and high byte registers, VEX.L, REX.W and
// count of a shift that a case might ask for.
func formsOf(r *Row) []Inst {
	e := &r.Encoding
	var mems []InstFlags
	if e.Mod != ModMem || !e.ModRM {
		mems = append(mems, 0)
	}
	if e.ModRM && e.Mod != ModReg && e.Second < 0 && r.flags&instModReg == 0 || e.Imm == ImmMoffs {
		mems = append(mems, InstMem)
	}
	widths := []InstFlags{0, InstW}
	if e.W >= 0 {
		widths = []InstFlags{InstW * InstFlags(e.W)}
	}
	lengths := []InstFlags{0}
	if e.VEX {
		lengths = []InstFlags{InstVEX, InstVEX | InstL}
		if e.L >= 0 {
			lengths = []InstFlags{InstVEX | InstL*InstFlags(e.L)}
		}
	}
	regs := []uint8{0, 4}
	if e.Digit >= 0 {
		regs = []uint8{uint8(e.Digit)}
	}
	var l []Inst
	for _, mem := range mems {
		for _, w := range widths {
			for _, length := range lengths {
				for _, reg := range regs {
					for _, rm := range []uint8{1, 4} {
						for _, imm := range []uint64{0, 1} {
							in := Inst{Row: r.index, Flags: r.flags | mem | w | length, Reg: reg, RM: rm, Base: RBX, Index: NoReg,
								Seg: NoSeg, Opc: e.Opcode, Imm: imm, form: r.form}
							if e.PlusR {
								in.RM = in.Reg
							}
							l = append(l, sizesOf(r, in)...)
						}
					}
				}
			}
		}
	}
	return l
}

// sizesOf returns in with each operand size that it can have.
func sizesOf(r *Row, in Inst) []Inst {
	var l []Inst
	sizes := []uint8{2, 4, 8}
	switch {
	case r.size != 0:
		sizes = []uint8{r.size}
	case in.Flags&InstW != 0 || r.flags&instForce64 != 0:
		sizes = []uint8{8}
	case r.flags&instNo66 != 0:
		sizes = []uint8{4}
	case r.flags&instDefault64 != 0:
		sizes = []uint8{2, 8}
	default:
		sizes = []uint8{2, 4}
	}
	for _, n := range sizes {
		in.Size = n
		l = append(l, in)
	}
	return l
}

// operandsOf describes the operands of in: memory or register (of two M, R, I, the
// destination first), size, ah to dh.
func operandsOf(r *Row, in *Inst) string {
	s := "reg"
	if in.Flags&InstMem != 0 {
		s = "mem"
	}
	if in.Flags&InstVEX != 0 {
		return s + map[bool]string{false: " 128", true: " 256"}[in.Flags&InstL != 0]
	}
	if r.File != "int" {
		return s
	}
	shapes := map[uint8]string{formRMReg: "RR MR", formRegRM: "RR RM", formRMImm: "RI MI"}
	if two := strings.Fields(shapes[in.form]); len(two) > 0 {
		s = two[in.Flags&InstMem/InstMem]
	}
	s += fmt.Sprintf(" %d", 8*in.Size)
	if e := &r.Encoding; e.Digit >= 0 && (r.Handler == "intShiftImm" || r.Handler == "intShift1" || r.Handler == "intShiftCL") {
		s += fmt.Sprintf(" /%d", e.Digit)
	}
	if in.place(r) == inHighByte {
		s += " high"
	}
	return s
}

// TestBound: the table of bindings has those of the list, and no others.
func TestBound(t *testing.T) {
	if len(bindings) == 0 || len(bindings) > boundSize/2 {
		t.Errorf("%d bindings in a table of %d", len(bindings), boundSize)
	}
	getTables() // fills it
	all := map[bindKey]binding{}
	for _, c := range bindings {
		all[c.bindKey] = c.binding
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for k, want := range all {
		if b, ok := bound.find(k); !ok || b != want {
			t.Errorf("%+v: %+v, %t", k, b, ok)
		}
		k.value, k.size = uint8(rng.IntN(16)), uint8(rng.IntN(9))
		want, has := all[k]
		if b, ok := bound.find(k); ok != has || b != want {
			t.Errorf("%+v: %+v, %t", k, b, ok)
		}
	}
}
