package main

import (
	"fmt"
	"strings"
)

// Cases of vector instructions: what compilers make of loops over doubles and
// integers, and what libc's string functions execute. Names: V (legacy SSE), X
// (VEX, 128 bits) or Y (VEX, 256 bits), then r or m for the source, then the
// handler. A case of arithmetic does what needs the host's operation alone
// (sse_quick.go) and leaves all else to the handler.

// lanes are integer operations on quadwords x and y, by handler: the functions
// of sse_lane.go, written out (see word).
var lanes = []struct{ handler, expr string }{
	{"pxor", "x^y"},
	{"pand", "x&y"},
	{"por", "x|y"},
	{"pandn", "^x&y"},
	{"paddb", "(x&^topB+y&^topB)^(x^y)&topB"},
	{"paddd", "(x&^topD+y&^topD)^(x^y)&topD"},
	{"paddq", "x+y"},
	{"psubb", "((x|topB)-y&^topB)^^(x^y)&topB"},
	{"psubd", "((x|topD)-y&^topD)^^(x^y)&topD"},
	{"psubq", "x-y"},
	{"pcmpeqb", "(^((x^y)&^topB+^uint64(topB)|(x^y))&topB>>7)*255"},
	{"pcmpeqd", "(^((x^y)&^topD+^uint64(topD)|(x^y))&topD>>31)*(1<<32-1)"},
	{"pminub", "x^(x^y)&(((x&^y|^(x^y)&((x|topB)-y&^topB))&topB>>7)*255)"},
	{"pmuludq", "x&(1<<32-1)*(y&(1<<32-1))"},
}

// each writes n results of expr, joined by commas; x and y are formats of the
// operands by number.
func each(n int, expr, x, y string) string {
	var out []string
	for i := range n {
		out = append(out, strings.NewReplacer("x", fmt.Sprintf(x, i), "y", fmt.Sprintf(y, i)).Replace(expr))
	}
	return strings.Join(out, ", ")
}

// qwords are n quadwords of the page.
func qwords(n int) string {
	var out []string
	for i := range n {
		out = append(out, word(8, fmt.Sprint("off+", 8*i)))
	}
	return strings.Join(out, ", ")
}

// putQwords writes the n quadwords of v to the page.
func putQwords(n int) string {
	var out string
	for i := range n {
		out += fmt.Sprintf("%s = v[%d]\n", word(8, fmt.Sprint("off+", 8*i)), i)
	}
	return out
}

// inUse marks the upper halves of the registers as in use (see xinuse.go).
const inUse = "c.NotInUse &^= xfeatAVX\n"

// vexForms are the widths of VEX forms.
var vexForms = []struct {
	vex width
	n   int // quadwords
	set string
}{
	{vex128, 2, "d[2], d[3] = 0, 0\n"},
	{vex256, 4, inUse},
}

const (
	memNames = "m0, m1, m2, m3"
	legacyRR = "v, w = &c.V[in.reg&15], &c.V[in.rm&15]\n"
	vexRR    = "d, v, w = &c.V[in.reg&15], &c.V[in.vvvv&15], &c.V[in.rm&15]\n"
	vexRM    = "d, v = &c.V[in.reg&15], &c.V[in.vvvv&15]\n"
)

// loads reads n quadwords into m0, m1, ...
func loads(n int) string { return memNames[:4*n-2] + " = " + qwords(n) + "\n" }

// targets are the first n quadwords of register r.
func targets(r string, n int) string {
	return strings.Join([]string{r + "[0]", r + "[1]", r + "[2]", r + "[3]"}[:n], ", ")
}

// vectorInts adds the operations of lanes.
func (l *loop) vectorInts() {
	for _, op := range lanes {
		if op.handler != "pxor" { // has a case already
			l.add(form{op: op.handler, vex: legacy, operands: regs}, legacyRR+"v[0], v[1] = "+each(2, op.expr, "v[%d]", "w[%d]")+"\ngoto next")
		}
		l.add(form{op: op.handler, vex: legacy, operands: memory}, ea+tlb("r", 16, "if a&15 == 0 {\nv = &c.V[in.reg&15]\n"+loads(2)+
			"v[0], v[1] = "+each(2, op.expr, "v[%d]", "m%d")+"\ngoto next\n}"))
		for _, f := range vexForms {
			l.add(form{op: "v" + op.handler, vex: f.vex, operands: regs}, vexRR+targets("d", f.n)+" = "+each(f.n, op.expr, "v[%d]", "w[%d]")+"\n"+f.set+"goto next")
			l.add(form{op: "v" + op.handler, vex: f.vex, operands: memory}, ea+tlb("r", 8*f.n, vexRM+loads(f.n)+
				targets("d", f.n)+" = "+each(f.n, op.expr, "v[%d]", "m%d")+"\n"+f.set+"goto next"))
		}
	}
	for _, sh := range []struct{ handler, f string }{
		{"psllqImm", "laneShlQ"}, {"psrlqImm", "laneShrQ"}, {"pslldImm", "laneShlD"}, {"psrldImm", "laneShrD"},
	} {
		l.add(form{op: sh.handler, vex: legacy, operands: regs}, fmt.Sprintf("v, n = &c.V[in.rm&15], in.imm&0xff\nv[0], v[1] = %[1]s(v[0], n), %[1]s(v[1], n)\ngoto next", sh.f))
	}
	l.add(form{op: "pmovmskb", vex: legacy, operands: regs}, "w = &c.V[in.rm&15]\nc.R[in.reg&15] = moveMask8(w[0]) | moveMask8(w[1])<<8\ngoto next")
	l.add(form{op: "vpmovmskb", vex: vex256, operands: regs}, "w = &c.V[in.rm&15]\nc.R[in.reg&15] = moveMask8(w[0]) | moveMask8(w[1])<<8 | moveMask8(w[2])<<16 | moveMask8(w[3])<<24\ngoto next")
}

// vectorMoves adds moves beyond those of legacy 128-bit registers.
func (l *loop) vectorMoves() {
	l.add(form{op: "movsdX", vex: legacy, operands: memory}, ea+tlb("r", 8, "v = &c.V[in.reg&15]\nv[0], v[1] = "+loadExpr(8)+", 0\ngoto next"))
	l.add(form{op: "movsdX", vex: legacy, operands: regs}, "c.V[in.reg&15][0] = c.V[in.rm&15][0]\ngoto next")
	l.add(form{op: "movqX", vex: legacy, operands: memory}, ea+tlb("r", 8, "v = &c.V[in.reg&15]\nv[0], v[1] = "+loadExpr(8)+", 0\ngoto next"))
	l.add(form{op: "movsdXStore", vex: legacy, operands: memory}, ea+tlb("w", 8, storeStmt(8, "c.V[in.reg&15][0]")+"\ngoto next"))
	l.add(form{op: "movqXStore", vex: legacy, operands: memory}, ea+tlb("w", 8, storeStmt(8, "c.V[in.reg&15][0]")+"\ngoto next"))
	l.add(form{op: "movss", vex: legacy, operands: memory}, ea+tlb("r", 4, "v = &c.V[in.reg&15]\nv[0], v[1] = uint64("+loadExpr(4)+"), 0\ngoto next"))
	l.add(form{op: "movssStore", vex: legacy, operands: memory}, ea+tlb("w", 4, storeStmt(4, "c.V[in.reg&15][0]")+"\ngoto next"))
	l.add(form{op: "movhps", vex: legacy, operands: memory}, ea+tlb("r", 8, "c.V[in.reg&15][1] = "+loadExpr(8)+"\ngoto next"))
	l.add(form{op: "movlps", vex: legacy, operands: memory}, ea+tlb("r", 8, "c.V[in.reg&15][0] = "+loadExpr(8)+"\ngoto next"))
	l.add(form{op: "punpcklqdq", vex: legacy, operands: regs}, "c.V[in.reg&15][1] = c.V[in.rm&15][0]\ngoto next")
	l.add(form{op: "punpckhqdq", vex: legacy, operands: regs}, "v = &c.V[in.reg&15]\nv[0], v[1] = v[1], c.V[in.rm&15][1]\ngoto next")
	l.add(form{op: "movd", vex: legacy, operands: regs, size: 4}, "v = &c.V[in.reg&15]\nv[0], v[1] = uint64(uint32(c.R[in.rm&15])), 0\ngoto next")
	l.add(form{op: "movd", vex: legacy, operands: regs, size: 8}, "v = &c.V[in.reg&15]\nv[0], v[1] = c.R[in.rm&15], 0\ngoto next")
	l.add(form{op: "movdStore", vex: legacy, operands: regs, size: 4}, "c.R[in.rm&15] = uint64(uint32(c.V[in.reg&15][0]))\ngoto next")
	l.add(form{op: "movdStore", vex: legacy, operands: regs, size: 8}, "c.R[in.rm&15] = c.V[in.reg&15][0]\ngoto next")
	l.add(form{op: "vmovsdLoad", vex: vex128, operands: memory}, ea+tlb("r", 8, "c.V[in.reg&15] = Vec{"+loadExpr(8)+"}\ngoto next"))
	l.add(form{op: "vpbroadcastq", vex: vex256, operands: memory}, ea+tlb("r", 8, "q, v = "+loadExpr(8)+", &c.V[in.reg&15]\n"+targets("v", 4)+" = q"+strings.Repeat(", q", 3)+"\n"+inUse+"goto next"))
	for _, f := range vexForms {
		load := "d = &c.V[in.reg&15]\n" + targets("d", f.n) + " = " + qwords(f.n) + "\n" + f.set + "goto next"
		store := "v = &c.V[in.reg&15]\n" + putQwords(f.n) + "goto next"
		aligned := fmt.Sprintf("if a&%d == 0 {\n", 8*f.n-1)
		l.add(form{op: "vmovups", vex: f.vex, operands: memory}, ea+tlb("r", 8*f.n, load))
		l.add(form{op: "vmovaps", vex: f.vex, operands: memory}, ea+tlb("r", 8*f.n, aligned+load+"\n}"))
		l.add(form{op: "vmovupsStore", vex: f.vex, operands: memory}, ea+tlb("w", 8*f.n, store))
		l.add(form{op: "vmovapsStore", vex: f.vex, operands: memory}, ea+tlb("w", 8*f.n, aligned+store+"\n}"))
		l.add(form{op: "vmov", vex: f.vex, operands: regs}, "d, w = &c.V[in.reg&15], &c.V[in.rm&15]\n"+targets("d", f.n)+" = "+targets("w", f.n)+"\n"+f.set+"goto next")
	}
}

// vectorFloats adds arithmetic on doubles.
func (l *loop) vectorFloats() {
	const fast = "mxcsr(c.MXCSR)&(mxRC|mxPM|mxPE) == mxPM|mxPE"
	for _, op := range []string{"add", "sub", "mul", "div"} {
		lo := fmt.Sprintf("s, ok = %s64Quick(v[0], %%s)\nif ok && %s {\n%%s = s\ngoto next\n}", op, fast)
		l.add(form{op: op + "sd", vex: legacy, operands: regs}, legacyRR+fmt.Sprintf(lo, "w[0]", "v[0]"))
		l.add(form{op: op + "sd", vex: legacy, operands: memory}, ea+tlb("r", 8, "v = &c.V[in.reg&15]\n"+fmt.Sprintf(lo, loadExpr(8), "v[0]")))
		vex := fmt.Sprintf("s, ok = %s64Quick(v[0], %%s)\nif ok && %s {\n*d = Vec{s, v[1]}\ngoto next\n}", op, fast)
		l.add(form{op: "v" + op + "sd", vex: vex128, operands: regs}, vexRR+fmt.Sprintf(vex, "w[0]"))
		l.add(form{op: "v" + op + "sd", vex: vex128, operands: memory}, ea+tlb("r", 8, vexRM+fmt.Sprintf(vex, loadExpr(8))))

		two := fmt.Sprintf("if %s && %sPair(v, v, %%s) {\ngoto next\n}", fast, op)
		l.add(form{op: op + "pd", vex: legacy, operands: regs}, legacyRR+fmt.Sprintf(two, targets("w", 2)))
		l.add(form{op: op + "pd", vex: legacy, operands: memory}, ea+tlb("r", 16, "if a&15 == 0 {\nv = &c.V[in.reg&15]\n"+fmt.Sprintf(two, qwords(2))+"\n}"))
		for _, f := range vexForms {
			g := map[width]string{vex128: "Pair", vex256: "Quad"}[f.vex]
			all := fmt.Sprintf("if %s && %s%s(d, v, %%s) {\n%sgoto next\n}", fast, op, g, f.set)
			l.add(form{op: "v" + op + "pd", vex: f.vex, operands: regs}, vexRR+fmt.Sprintf(all, targets("w", f.n)))
			l.add(form{op: "v" + op + "pd", vex: f.vex, operands: memory}, ea+tlb("r", 8*f.n, vexRM+fmt.Sprintf(all, qwords(f.n))))
		}
	}
}
