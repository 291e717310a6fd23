package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"regexp"
	"strings"
)

// The run loop: one case for each of the commonest forms, specialised by
// operand shape and size, found by one switch. A case does its whole work and
// goes on with the next instruction, or, before it has changed anything, falls
// out of the switch, behind which the instruction's handler is called: on a miss of the
// translation cache, as for every instruction without a case. Which instructions
// have which case is in binding.go.

// loop collects cases.
type loop struct {
	kinds  []kind // in the order of their numbers
	byName map[string]*kind
	byForm map[form]*kind
}

// add appends a case; the body uses in, c and b. It ends by goto next, goto exit
// (to a known address) or goto indirect (to RIP), or falls through to the generic
// path.
//
// A case with a memory operand gets a second form, its name ending in b, for
// operands that are a base register and a displacement.
func (l *loop) add(f form, body string) {
	l.put(f, body)
	if rest, ok := strings.CutPrefix(body, ea); ok {
		f.base = true
		l.put(f, eaBase+rest)
	}
}

// sized is add for a body of operands of n bytes: its x, y, r and v are the
// loop's variables of that width.
func (l *loop) sized(n int, f form, body string) {
	l.add(f, operand.ReplaceAllString(body, fmt.Sprintf("${1}%d", 8*n)))
}

// operand matches the variables that the loop has in each width.
var operand = regexp.MustCompile(`\b([xyrv])\b`)

func (l *loop) put(f form, body string) { l.enter(kind{name: f.name(), form: f, body: body}) }

// enter gives a kind its number.
func (l *loop) enter(k kind) {
	l.kinds = append(l.kinds, k)
	l.byName[k.name] = &k
	if k.chain == nil {
		l.byForm[k.form] = &k
	}
}

// advance goes on to the next instruction. It is nextOp, written out: the
// compiler keeps variables and a table of positions for each call that it
// expands.
const advance = "in = (*op)(unsafe.Add(unsafe.Pointer(in), opSize))\n"

// leaves matches a body that ends by a jump, so that nothing falls through.
var leaves = regexp.MustCompile(`(^|\n)goto \w+\s*$`)

// guard is how the only test of the translation cache in a case looks.
var guard = regexp.MustCompile(`(?s)if off = a - e\.base; off <= pageSize-(\d+) \{\n(.*)\n\}$`)

// last is how a case ends that may leave its work to the handler.
var last = regexp.MustCompile(`(?s)^(.*\n)?if ([^\n;]*) \{\n([^{}]*)goto next\n\}$`)

// chain adds a case that executes instructions of several kinds, one behind
// the other, and stands in the first of them. The others keep their own kinds:
// where one of them cannot go on, it is the current instruction, and all before
// it are done.
func (l *loop) chain(names []string) error {
	var out strings.Builder
	var body string
	for i, name := range names {
		k, ok := l.byName[name]
		if !ok {
			return fmt.Errorf("chain: no kind %s", name)
		}
		body = k.body
		if i < len(names)-1 {
			body = guard.ReplaceAllString(body, "off = a - e.base\nif off > pageSize-$1 { goto generic }\n$2")
			body = last.ReplaceAllString(body, "${1}if !($2) { goto generic }\n${3}goto next")
			if body, ok = strings.CutSuffix(body, "goto next"); !ok {
				return fmt.Errorf("chain: %s does not go on", name)
			}
		}
		fmt.Fprintf(&out, "{\n%s\n}\n", body)
		if i < len(names)-1 {
			out.WriteString(advance)
		}
	}
	l.enter(kind{name: strings.Join(names, "_"), chain: names, body: out.String()})
	return nil
}

// readLines calls use with the words of each line of a file that has so many; # is for
// comments.
func readLines(file string, least int, use func(words []string) error) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) >= least {
			if err := use(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// size describes an operand size.
type size struct {
	n         int
	typ, styp string // unsigned and signed Go type
}

var sizes = map[int]size{
	1: {n: 1, typ: "uint8", styp: "int8"},
	2: {n: 2, typ: "uint16", styp: "int16"},
	4: {n: 4, typ: "uint32", styp: "int32"},
	8: {n: 8, typ: "uint64", styp: "int64"},
}

// word is the guest's word of 8n bits at off of e.page. It is not a call: the
// compiler keeps variables and a table of positions for each call that it
// expands, and this one has 900 places.
func word(n int, off string) string {
	return fmt.Sprintf("*(*uint%d)(unsafe.Add(unsafe.Pointer(e.page), %s))", 8*n, off)
}

// loadExpr reads size bytes at off of e.page.
func loadExpr(n int) string {
	if n == 1 {
		return "e.page[off]"
	}
	return word(n, "off")
}

// storeStmt writes v of size n at off of e.page.
func storeStmt(n int, v string) string {
	switch n {
	case 1:
		return "e.page[off] = uint8(" + v + ")"
	case 8:
		return word(n, "off") + " = " + v
	}
	return fmt.Sprintf("%s = uint%d(%s)", word(n, "off"), 8*n, v)
}

const ea = `a = uint64(in.disp)
if in.base < 16 { a += c.R[in.base] }
if in.index < 16 { a += c.R[in.index] << (in.scale & 63) }
`

const eaBase = "a = uint64(in.disp) + c.R[in.base&15]\n"

// tlb wraps body in the translation cache's hit condition.
func tlb(which string, n int, body string) string {
	return fmt.Sprintf("e = &c.%stlb[a>>12&tlbMask]\nif off = a - e.base; off <= pageSize-%d {\n%s\n}", which, n, body)
}

// flags returns the statements that set the flags of r = a op b.
func flags(op string, n int) string {
	s := sizes[n]
	res := "c.res = uint64(int64(" + s.styp + "(r)))\n"
	if n == 8 {
		res = "c.res = r\n"
	}
	var v string
	switch op {
	case "Add":
		v = "v = x&y | (x|y)&^r\n"
	case "Sub", "Cmp":
		v = "v = ^x&y | (^x|y)&r\n"
	default:
		return res + "c.aux = 0\n"
	}
	if n == 8 {
		return res + v + "c.aux = v & auxAll\n"
	}
	return res + v + fmt.Sprintf("c.aux = uint64(v)<<%d&auxCO | uint64(v)&auxAF\n", 64-8*n)
}

var aluOps = []struct{ name, expr string }{
	{"Add", "x + y"}, {"Sub", "x - y"}, {"And", "x & y"}, {"Or", "x | y"}, {"Xor", "x ^ y"},
}

// rm and reg are the register operands of a size.
func reg(field string, n int) string {
	if n == 8 {
		return "c.R[in." + field + "&15]"
	}
	return sizes[n].typ + "(c.R[in." + field + "&15])"
}

func imm(n int) string {
	if n == 8 {
		return "in.imm"
	}
	return sizes[n].typ + "(in.imm)"
}

// alu adds arithmetic on registers, immediates and memory.
func (l *loop) alu() {
	for _, op := range aluOps {
		for _, n := range []int{1, 2, 4, 8} {
			for _, f := range []struct{ kind, dst, x, y string }{
				{"RR", "rm", reg("rm", n), reg("reg", n)}, // r/m, reg with a register
				{"RI", "rm", reg("rm", n), imm(n)},
			} {
				body := fmt.Sprintf("x, y = %s, %s\nr = %s\n", f.x, f.y, op.expr) + setReg(f.dst, n)
				l.sized(n, form{op: op.name + f.kind, size: n}, body+flags(op.name, n)+"goto next")
				l.sized(n, form{op: op.name + f.kind, size: n, dead: true}, body+"goto next")
			}
			body := fmt.Sprintf("x, y = %s, %s\nr = %s\n", reg("reg", n), loadExpr(n), op.expr) + setReg("reg", n)
			l.sized(n, form{op: op.name + "RM", size: n}, ea+tlb("r", n, body+flags(op.name, n)+"goto next"))
			for _, src := range []struct{ kind, y string }{{"MR", reg("reg", n)}, {"MI", imm(n)}} {
				body := fmt.Sprintf("x, y = %s, %s\nr = %s\n%s\n", loadExpr(n), src.y, op.expr, storeStmt(n, "r"))
				l.sized(n, form{op: op.name + src.kind, size: n}, ea+tlb("w", n, body+flags(op.name, n)+"goto next"))
			}
		}
	}
}

// carries adds ADC and SBB.
func (l *loop) carries() {
	for _, op := range []struct{ name, expr, flags string }{{"Adc", "x + y + %s(c.aux>>63)", "Add"}, {"Sbb", "x - y - %s(c.aux>>63)", "Sub"}} {
		for _, n := range []int{1, 2, 4, 8} {
			expr := "r = " + fmt.Sprintf(op.expr, sizes[n].typ) + "\n"
			for _, f := range []struct{ kind, dst, x, y string }{
				{"RR", "rm", reg("rm", n), reg("reg", n)}, {"RI", "rm", reg("rm", n), imm(n)},
			} {
				l.sized(n, form{op: op.name + f.kind, size: n},
					fmt.Sprintf("x, y = %s, %s\n", f.x, f.y)+expr+setReg(f.dst, n)+flags(op.flags, n)+"goto next")
			}
			l.sized(n, form{op: op.name + "RM", size: n}, ea+tlb("r", n,
				fmt.Sprintf("x, y = %s, %s\n", reg("reg", n), loadExpr(n))+expr+setReg("reg", n)+flags(op.flags, n)+"goto next"))
		}
	}
}

// setReg stores r, n bytes wide, in the register of a field.
func setReg(field string, n int) string {
	if n < 4 {
		return fmt.Sprintf("c.R[in.%[1]s&15] = c.R[in.%[1]s&15]&^%#[2]x | uint64(r)\n", field, 1<<(8*n)-1)
	}
	return "c.R[in." + field + "&15] = uint64(r)\n"
}

// conds are the conditions of fused compare and branch, by code.
var conds = []struct {
	name      string
	cmp, test string // of x, y (cmp) and r (test); signed values are sx, sy, sr
}{
	2: {"B", "x < y", ""}, 3: {"AE", "x >= y", ""}, 4: {"E", "x == y", "r == 0"}, 5: {"NE", "x != y", "r != 0"},
	6: {"BE", "x <= y", ""}, 7: {"A", "x > y", ""}, 8: {"S", "%s(r) < 0", "%s(r) < 0"}, 9: {"NS", "%s(r) >= 0", "%s(r) >= 0"},
	12: {"L", "%s(x) < %[1]s(y)", "%s(r) < 0"}, 13: {"GE", "%s(x) >= %[1]s(y)", "%s(r) >= 0"},
	14: {"LE", "%s(x) <= %[1]s(y)", "%s(r) <= 0"}, 15: {"G", "%s(x) > %[1]s(y)", "%s(r) > 0"},
}

// compare adds CMP and TEST, alone and fused with a branch.
func (l *loop) compare() {
	for _, op := range []struct{ name, expr string }{{"Cmp", "x - y"}, {"Test", "x & y"}} {
		for _, n := range []int{1, 2, 4, 8} {
			for _, f := range []struct{ kind, x, y string }{
				{"RR", reg("rm", n), reg("reg", n)},
				{"RI", reg("rm", n), imm(n)},
				{"RM", reg("reg", n), loadExpr(n)},
				{"MR", loadExpr(n), reg("reg", n)},
				{"MI", loadExpr(n), imm(n)},
			} {
				isMem := strings.Contains(f.kind, "M")
				if op.name == "Test" && f.kind == "RM" {
					continue
				}
				body := fmt.Sprintf("x, y = %s, %s\nr = %s\n%s", f.x, f.y, op.expr, flags(op.name, n))
				wrap := func(s string) string {
					if isMem {
						return ea + tlb("r", n, s)
					}
					return s
				}
				l.sized(n, form{op: op.name + f.kind, size: n}, wrap(body+"goto next"))
				if f.kind == "RM" {
					continue
				}
				for _, cc := range conds {
					t := cc.cmp
					if op.name == "Test" {
						t = cc.test
					}
					if t == "" {
						continue
					}
					if strings.Contains(t, "%") {
						t = fmt.Sprintf(t, sizes[n].styp)
					}
					l.sized(n, form{op: op.name + f.kind, size: n, branch: cc.name},
						wrap(body+fmt.Sprintf("if %s { goto exit }\ngoto next", t)))
				}
			}
		}
	}
}

// The flags and conditions of State, written out like word.
const (
	isCF      = "int64(c.aux) < 0"
	isZF      = "c.res == 0"
	isSF      = "int64(c.res^c.aux<<63) < 0"
	isOF      = "int64(c.aux^c.aux<<1) < 0"
	isLess    = "int64(c.res^c.aux<<63^c.aux^c.aux<<1) < 0" // SF != OF
	canonical = "uint64(int64(t)<<16>>16) == t"
)

// condExpr are the conditions from the lazy flags, by code.
var condExpr = []string{
	isOF, "!(" + isOF + ")", isCF, "!(" + isCF + ")", isZF, "c.res != 0", isCF + " || " + isZF, "!(" + isCF + " || " + isZF + ")",
	isSF, "!(" + isSF + ")", "c.pf()", "!c.pf()", isLess, "!(" + isLess + ")",
	isZF + " || " + isLess, "!(" + isZF + " || " + isLess + ")",
}

var ccNames = []string{"O", "NO", "B", "AE", "E", "NE", "BE", "A", "S", "NS", "P", "NP", "L", "GE", "LE", "G"}

// moves adds moves, loads and stores.
func (l *loop) moves() {
	l.add(form{op: "MovRR", size: 4}, "c.R[in.rm&15] = uint64(uint32(c.R[in.reg&15]))\ngoto next")
	l.add(form{op: "MovRR", size: 8}, "c.R[in.rm&15] = c.R[in.reg&15]\ngoto next")
	l.add(form{op: "MovRI", size: 4}, "c.R[in.rm&15] = uint64(uint32(in.imm))\ngoto next")
	l.add(form{op: "MovRI", size: 8}, "c.R[in.rm&15] = in.imm\ngoto next")
	for _, n := range []int{1, 2, 4, 8} {
		l.add(form{op: "Load", size: n}, ea+tlb("r", n, "c.R[in.reg&15] = uint64("+loadExpr(n)+")\ngoto next"))
		l.add(form{op: "Store", size: n}, ea+tlb("w", n, storeStmt(n, "c.R[in.reg&15]")+"\ngoto next"))
		l.add(form{op: "StoreI", size: n}, ea+tlb("w", n, storeStmt(n, "in.imm")+"\ngoto next"))
	}
	for _, n := range []int{1, 2, 4} {
		st := sizes[n].styp
		l.add(form{op: "LoadS", from: n, size: 8}, ea+tlb("r", n, "c.R[in.reg&15] = uint64(int64("+st+"("+loadExpr(n)+")))\ngoto next"))
		l.add(form{op: "Movsx", from: n, size: 8}, "c.R[in.reg&15] = uint64(int64("+st+"(c.R[in.rm&15])))\ngoto next")
		if n < 4 {
			l.add(form{op: "LoadS", from: n, size: 4}, ea+tlb("r", n, "c.R[in.reg&15] = uint64(uint32(int32("+st+"("+loadExpr(n)+"))))\ngoto next"))
			l.add(form{op: "Movsx", from: n, size: 4}, "c.R[in.reg&15] = uint64(uint32(int32("+st+"(c.R[in.rm&15]))))\ngoto next")
			l.add(form{op: "Movzx", from: n}, "c.R[in.reg&15] = uint64("+sizes[n].typ+"(c.R[in.rm&15]))\ngoto next")
		}
	}
	for _, n := range []int{1, 2} { // into a part of a register
		mask := 1<<(8*n) - 1
		l.add(form{op: "LoadM", size: n}, ea+tlb("r", n, fmt.Sprintf("c.R[in.reg&15] = c.R[in.reg&15]&^%#x | uint64(%s)\ngoto next", mask, loadExpr(n))))
		l.add(form{op: "MovRI", size: n}, fmt.Sprintf("c.R[in.rm&15] = c.R[in.rm&15]&^%#x | in.imm&%#[1]x\ngoto next", mask))
		l.add(form{op: "MovRR", size: n}, fmt.Sprintf("c.R[in.rm&15] = c.R[in.rm&15]&^%#x | c.R[in.reg&15]&%#[1]x\ngoto next", mask))
	}
	l.add(form{op: "Cbw", size: 4}, "c.R[RAX] = uint64(uint32(int32(int16(c.R[RAX]))))\ngoto next")
	l.add(form{op: "Cbw", size: 8}, "c.R[RAX] = uint64(int64(int32(c.R[RAX])))\ngoto next")
	l.add(form{op: "Cwd", size: 4}, "c.R[RDX] = uint64(uint32(int32(c.R[RAX]) >> 31))\ngoto next")
	l.add(form{op: "Cwd", size: 8}, "c.R[RDX] = uint64(int64(c.R[RAX]) >> 63)\ngoto next")
	l.vectors()
	l.add(form{op: "Lea", size: 8}, ea+"c.R[in.reg&15] = a\ngoto next")
	l.add(form{op: "Lea", size: 4}, ea+"c.R[in.reg&15] = uint64(uint32(a))\ngoto next")
}

// vectors adds moves of XMM registers; U may be misaligned, A may not.
func (l *loop) vectors() {
	load := "v = &c.V[in.reg&15]\nv[0], v[1] = " + qwords(2) + "\ngoto next"
	store := "v = &c.V[in.reg&15]\n" + putQwords(2) + "goto next"
	l.add(form{op: "LoadU"}, ea+tlb("r", 16, load))
	l.add(form{op: "StoreU"}, ea+tlb("w", 16, store))
	l.add(form{op: "LoadA"}, ea+tlb("r", 16, "if a&15 == 0 {\n"+load+"\n}"))
	l.add(form{op: "StoreA"}, ea+tlb("w", 16, "if a&15 == 0 {\n"+store+"\n}"))
	l.add(form{op: "MovXL"}, "v, w = &c.V[in.reg&15], &c.V[in.rm&15]\nv[0], v[1] = w[0], w[1]\ngoto next")
	l.add(form{op: "MovXS"}, "v, w = &c.V[in.rm&15], &c.V[in.reg&15]\nv[0], v[1] = w[0], w[1]\ngoto next")
	l.add(form{op: "Pxor"}, "v, w = &c.V[in.reg&15], &c.V[in.rm&15]\nv[0], v[1] = v[0]^w[0], v[1]^w[1]\ngoto next")
}

// mulFlags sets the flags of a product whose low half, sign-extended, is r.
func mulFlags(r string) string {
	return "aux = c.aux &^ auxCO\nif c.shiftAux == 0 { c.res, aux = " + r + " | resNonZero, 0 }\nif over { aux |= auxCF }\nc.aux = aux\n"
}

// rotates adds ROL and ROR by an immediate. They set CF and OF alone; by more
// than 1, OF is kept on Intel (see int_shift.go).
func (l *loop) rotates(n int) {
	set := setReg("rm", n)
	for _, rot := range []struct{ name, sign, cf, of string }{
		{"Rol", "", "uint64(r&1)", fmt.Sprintf("uint64(r>>%d)^cf", 8*n-1)},
		{"Ror", "-", fmt.Sprintf("uint64(r>>%d)", 8*n-1), fmt.Sprintf("uint64((r>>%d^r>>%d)&1)", 8*n-1, 8*n-2)},
	} {
		body := fmt.Sprintf("by = int(in.imm&%d)\nr = bits.RotateLeft%d(%s, %sby)\n", 8*n-1, 8*n, reg("rm", n), rot.sign) + set
		l.sized(n, form{op: rot.name + "RI", size: n}, body+fmt.Sprintf("cf = %s\nof = %s\n", rot.cf, rot.of)+
			"if by != 1 && c.shiftAux == 0 { of = (c.aux>>63^c.aux>>62)&1 }\nc.aux = c.aux&^auxCO | cf<<63 | (cf^of)<<62\ngoto next")
		l.sized(n, form{op: rot.name + "RI", size: n, dead: true}, body+"goto next")
	}
}

// highBytes adds TEST and AND of ah, ch, dh and bh with an immediate.
func (l *loop) highBytes() {
	body := "x, y = uint8(c.R[in.rm&3]>>8), uint8(in.imm)\nr = x & y\n"
	l.sized(1, form{op: "TestHI", size: 1}, body+flags("Test", 1)+"goto next")
	l.sized(1, form{op: "AndHI", size: 1}, body+"c.R[in.rm&3] = c.R[in.rm&3]&^0xff00 | uint64(r)<<8\n"+flags("And", 1)+"goto next")
	for _, cc := range []int{4, 5} {
		l.sized(1, form{op: "TestHI", size: 1, branch: ccNames[cc]}, body+flags("Test", 1)+"if "+conds[cc].test+" { goto exit }\ngoto next")
	}
}

// thread adds what compilers read relative to FS without a register: variables
// of a thread, and the guard of a stack frame, which is compared.
func (l *loop) thread() {
	const ea = "a = uint64(in.disp) + c.FSBase\n"
	l.add(form{op: "Load", size: 8, thread: true}, ea+tlb("r", 8, "c.R[in.reg&15] = "+loadExpr(8)+"\ngoto next"))
	l.sized(8, form{op: "SubRM", size: 8, thread: true}, ea+tlb("r", 8, "x, y = c.R[in.reg&15], "+loadExpr(8)+"\nr = x - y\nc.R[in.reg&15] = r\n"+flags("Sub", 8)+"goto next"))
}

// misc adds shifts, multiplication, one-operand forms, CMOV and SETcc.
func (l *loop) misc() {
	for _, n := range []int{1, 2, 4, 8} {
		s := sizes[n]
		x := reg("rm", n)
		set := setReg("rm", n)
		res := flags("And", n)                                        // res, aux = 0
		for _, sh := range []struct{ name, r, cf, of, intel string }{ // intel is OF there: of x shifted by 1
			{"Shl", "x << k", fmt.Sprintf("uint64(x>>(%d-k)&1)", 8*n), fmt.Sprintf("uint64(r>>%d)^cf", 8*n-1), fmt.Sprintf("uint64((x>>%d^x>>%d)&1)", 8*n-1, 8*n-2)},
			{"Shr", "x >> k", "uint64(x>>(k-1)&1)", fmt.Sprintf("uint64((r>>%d^r>>%d)&1)", 8*n-1, 8*n-2), fmt.Sprintf("uint64(x>>%d)", 8*n-1)},
			{"Sar", s.typ + "(" + s.styp + "(x)>>k)", "uint64(x>>(k-1)&1)", "uint64(0)", ""},
		} {
			body := fmt.Sprintf("x, k = %s, uint(in.imm)&%d\nr = %s\n", x, 8*n-1, sh.r)
			fl := strings.TrimSuffix(res, "c.aux = 0\n") + fmt.Sprintf("cf = %s\nof = %s\n", sh.cf, sh.of)
			if sh.intel != "" {
				fl += "if c.shiftAux == 0 { of = " + sh.intel + " }\n"
			}
			fl += "c.aux = cf<<63 | (cf^of)<<62 | c.shiftAux\n"
			l.sized(n, form{op: sh.name + "RI", size: n}, body+set+fl+"goto next")
			l.sized(n, form{op: sh.name + "RI", size: n, dead: true}, body+set+"goto next")
			if n < 4 {
				continue
			}
			body = strings.Replace(body, "in.imm", "c.R[RCX]", 1)
			l.sized(n, form{op: "V" + sh.name, size: n, dead: true}, body+set+"goto next")
			body = strings.Replace(body, "r = ", "if k == 0 { goto generic }\nr = ", 1)
			l.sized(n, form{op: "V" + sh.name, size: n}, body+set+fl+"goto next")
		}
		l.sized(n, form{op: "Neg", size: n}, fmt.Sprintf("x, y = %s(0), %s\nr = -y\n", s.typ, x)+set+flags("Sub", n)+"goto next")
		if n > 1 {
			l.rotates(n)
		}
		if n < 4 {
			continue
		}
		for _, u := range []struct{ name, r, y, op string }{{"Inc", "x + 1", "1", "Add"}, {"Dec", "x - 1", "1", "Sub"}} {
			body := fmt.Sprintf("x, y = %s, %s(1)\nr = %s\n", x, s.typ, strings.Replace(u.r, "1", "y", 1))
			fl := flags(u.op, n) + "o = c.aux ^ c.aux<<1\n"
			l.sized(n, form{op: u.name, size: n}, "cf = c.aux & auxCF\n"+body+set+fl+"c.aux = c.aux&auxAF | cf | (o^cf)&auxCF>>1\ngoto next")
			l.sized(n, form{op: u.name, size: n, dead: true}, body+set+"goto next")
		}
		l.sized(n, form{op: "Not", size: n}, fmt.Sprintf("r = ^%s\n", x)+set+"goto next")
	}
	for i, cond := range condExpr {
		for _, n := range []int{4, 8} {
			l.sized(n, form{op: "Cmov", cond: ccNames[i], size: n}, fmt.Sprintf("r = %s\nif %s { r = %s }\nc.R[in.reg&15] = uint64(r)\ngoto next", reg("reg", n), cond, reg("rm", n)))
		}
		l.sized(8, form{op: "Set", cond: ccNames[i]}, "r = c.R[in.rm&15] &^ 0xff\nif "+cond+" { r |= 1 }\nc.R[in.rm&15] = r\ngoto next")
	}
	for _, m := range []struct{ kind, x string }{{"RR", "c.R[in.reg&15]"}, {"RI", "in.imm"}} {
		l.add(form{op: "Imul" + m.kind, size: 4, dead: true}, "c.R[in.reg&15] = uint64(uint32("+m.x+") * uint32(c.R[in.rm&15]))\ngoto next")
		l.add(form{op: "Imul" + m.kind, size: 8, dead: true}, "c.R[in.reg&15] = "+m.x+" * c.R[in.rm&15]\ngoto next")
		l.add(form{op: "Imul" + m.kind, size: 4}, "p = int64(int32("+m.x+")) * int64(int32(c.R[in.rm&15]))\nc.R[in.reg&15] = uint64(uint32(p))\nover = p != int64(int32(p))\n"+mulFlags("uint64(int64(int32(p)))")+"goto next")
		l.sized(8, form{op: "Imul" + m.kind, size: 8}, "x, y = "+m.x+", c.R[in.rm&15]\nh, r = bits.Mul64(x, y)\nh -= uint64(int64(x)>>63)&y + uint64(int64(y)>>63)&x\nc.R[in.reg&15] = r\nover = h != uint64(int64(r)>>63)\n"+mulFlags("r")+"goto next")
	}
	for _, n := range []int{4, 8} {
		set := "c.R[in.reg&15] = uint64(r)\n"
		l.sized(n, form{op: "ImulRM", size: n}, ea+tlb("r", n, map[int]string{
			4: "p = int64(int32(" + loadExpr(4) + ")) * int64(int32(c.R[in.reg&15]))\nc.R[in.reg&15] = uint64(uint32(p))\nover = p != int64(int32(p))\n" + mulFlags("uint64(int64(int32(p)))") + "goto next",
			8: "x, y = " + loadExpr(8) + ", c.R[in.reg&15]\nh, r = bits.Mul64(x, y)\nh -= uint64(int64(x)>>63)&y + uint64(int64(y)>>63)&x\n" + set + "over = h != uint64(int64(r)>>63)\n" + mulFlags("r") + "goto next",
		}[n]))
	}
	l.add(form{op: "Nop"}, "goto next")
	l.add(form{op: "End"}, "goto exit")
}

// stack adds pushes, pops and branches.
func (l *loop) stack() {
	push := "a = c.R[RSP] - 8\n"
	l.add(form{op: "Push", size: 8}, push+tlb("w", 8, storeStmt(8, "c.R[in.reg&15]")+"\nc.R[RSP] = a\ngoto next"))
	l.add(form{op: "PushI", size: 8}, push+tlb("w", 8, storeStmt(8, "in.imm")+"\nc.R[RSP] = a\ngoto next"))
	l.add(form{op: "Pop", size: 8}, "a = c.R[RSP]\n"+tlb("r", 8, "c.R[RSP] = a + 8\nc.R[in.reg&15] = "+loadExpr(8)+"\ngoto next"))
	l.add(form{op: "Call"}, push+tlb("w", 8, storeStmt(8, "b.exits[0].target")+"\nc.R[RSP] = a\ngoto exit"))
	l.add(form{op: "Ret"}, "a = c.R[RSP]\n"+tlb("r", 8, "if t = "+loadExpr(8)+"; "+canonical+" {\nc.R[RSP] = a + 8\nc.RIP = t\ngoto indirect\n}"))
	l.add(form{op: "Jmp"}, "goto exit")
	call := "if " + canonical + " {\na = c.R[RSP] - 8\n" + tlb("w", 8, storeStmt(8, "b.exits[0].target")+"\nc.R[RSP] = a\nc.RIP = t\ngoto indirect") + "\n}"
	l.add(form{op: "CallR"}, "t = c.R[in.rm&15]\n"+call)
	l.add(form{op: "CallM"}, ea+tlb("r", 8, "t = "+loadExpr(8)+"\n"+call))
	l.add(form{op: "JmpM"}, ea+tlb("r", 8, "if t = "+loadExpr(8)+"; "+canonical+" {\nc.RIP = t\ngoto indirect\n}"))
	l.add(form{op: "JmpR"}, "if t = c.R[in.rm&15]; "+canonical+" {\nc.RIP = t\ngoto indirect\n}")
	for i, n := range ccNames {
		l.add(form{op: "J", cond: n}, "if "+condExpr[i]+" { goto exit }\ngoto next")
	}
}

// generateLoop writes the run loop and the tables by which instructions find
// their cases.
func generateLoop(rows []*row) error {
	l, err := newLoop()
	if err != nil {
		return err
	}
	generic, err := readGeneric()
	if err != nil {
		return err
	}
	b, err := l.bind(rows, claims, generic)
	if err != nil {
		return err
	}
	if err := l.writeKinds(b); err != nil {
		return err
	}
	return l.writeLoop()
}

// newLoop returns all cases.
func newLoop() (*loop, error) {
	l := &loop{byName: map[string]*kind{}, byForm: map[form]*kind{}}
	l.moves()
	l.alu()
	l.carries()
	l.compare()
	l.misc()
	l.stack()
	l.highBytes()
	l.thread()
	l.vectorInts()
	l.vectorMoves()
	l.vectorFloats()
	return l, readLines("internal/isagen/chains.txt", 2, l.chain)
}

// writeLoop writes the loop itself.
func (l *loop) writeLoop() error {
	var out bytes.Buffer
	out.WriteString("// Code generated by isagen; DO NOT EDIT.\n\n//go:build !(ppc64 || s390x || mips || mips64)\n\npackage x86\n\nimport (\n\"math/bits\"\n\"unsafe\"\n)\n\n")
	out.WriteString(loopHead)
	for _, k := range l.kinds {
		fmt.Fprintf(&out, "case k%s:\n%s\n", k.name, k.body)
	}
	out.WriteString(loopTail)
	return writeSource("run_gen.go", out.Bytes())
}

// writeSource formats Go source and writes it to a file.
func writeSource(file string, text []byte) error {
	src, err := format.Source(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, src, 0o644)
}

const loopHead = `// runBlocks executes from the start of b, which is valid, until something
// needs the slow path: it then returns ExitNone with all state exact, or the
// exit. No block is begun that would carry Retired beyond limit.
func (c *CPU) runBlocks(b *block, limit uint64) Exit {
	var in *op
	var ( // of all cases
		a, off, t, cf, of, aux, o, h uint64 // address, offset in its page, target; parts of flags; high half
		e *tlbEntry
		x8, y8, r8, v8 uint8 // operands, result, carries
		x16, y16, r16, v16 uint16
		x32, y32, r32, v32 uint32
		x64, y64, r64, v64 uint64
		k uint // count of a shift
		by int // and of a rotation
		p int64 // product
		over bool
		d, v, w *Vec // destination and sources
		m0, m1, m2, m3, n, q, s uint64
		ok bool
	)
enter:
	if c.Retired+b.n > limit {
		c.RIP = b.pc
		return ExitNone
	}
	in = firstOp(b)
	goto dispatch
next:
	in = (*op)(unsafe.Add(unsafe.Pointer(in), opSize))
dispatch:
	switch in.kind {
`

const loopTail = `	}
generic:
	{
		i := &b.insts[in.idx]
		c.RIP = b.pc + uint64(in.off)
		ex := i.fn(c, &i.Inst)
		if (ex != ExitNone || c.stop != 0 || c.interrupt.Load()) && !c.goesOn(b, in, ex) {
			return c.leave(b, in, ex)
		}
		if in.flags&opEnd != 0 {
			goto indirect
		}
		if in.flags&opFused != 0 && c.cond(in.cond) {
			goto exit
		}
		goto next
	}
indirect:
	{
		c.Retired += b.n
		nb := b.last
		if nb == nil || nb.pc != c.RIP || nb.epoch != c.code.epoch {
			nb = c.code.hash[codeHash(c.RIP)]
			if nb == nil || nb.pc != c.RIP || nb.epoch != c.code.epoch {
				return ExitNone
			}
			b.last = nb
		}
		b = nb
		goto enter
	}
exit:
	x := &b.exits[in.exit&(maxExits-1)]
	c.Retired += x.n
	nb := x.next
	if nb == nil || nb.epoch != c.code.epoch {
		c.RIP = x.target
		nb = c.link(x)
		if nb == nil {
			return ExitNone
		}
	}
	b = nb
	goto enter
}
`
