package main

import (
	"bytes"
	"fmt"
	"go/format"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// The hot loop: one case for each of the commonest forms, specialised by
// operand shape and size, found by one switch. A case does its whole work and
// goes on with the next instruction, or, before it has changed anything, goes
// to the generic path that calls the instruction's handler: on a miss of the
// translation cache, as for every kind without a case.
//
// The host guesses where the switch's indirect jump leads for some 1500 places
// in the guest's code, but conditional branches for many more. So a case goes to
// the commonest of its successors by comparing their kinds, and to the switch
// for the others (see RATIONALE.md).

// hot collects kinds and cases.
type hot struct {
	kinds      []string
	cases      bytes.Buffer
	bodies     map[string]string   // by kind
	chains     []string            // names of kinds that are chains, in order
	successors map[string][]string // kinds that often follow a kind, the commonest first
}

// add appends a case; the body uses in, c and b. It ends by goto next, goto exit
// (to a known address) or goto indirect (to RIP), or falls through to the generic
// path.
//
// A case with a memory operand gets a second form, its name ending in b, for
// operands that are a base register and a displacement.
func (h *hot) add(kind, body string, args ...any) {
	body = fmt.Sprintf(body, args...)
	h.put(kind, body)
	if rest, ok := strings.CutPrefix(body, ea); ok {
		h.put(kind+"b", eaBase+rest)
	}
}

// sized is add for a body of operands of n bytes: its x, y, r and v are the
// loop's variables of that width.
func (h *hot) sized(n int, kind, body string) {
	h.add(kind, "%s", operand.ReplaceAllString(body, fmt.Sprintf("${1}%d", 8*n)))
}

// operand matches the variables that the loop has in each width.
var operand = regexp.MustCompile(`\b([xyrv])\b`)

func (h *hot) put(kind, body string) {
	h.bodies[kind] = body
	h.label(kind, body, body)
}

// label writes the case of a kind; tail is what stands at the end of body.
func (h *hot) label(kind, body, tail string) {
	h.kinds = append(h.kinds, kind)
	if succ := h.successors[kind]; len(succ) > 0 {
		var next strings.Builder
		next.WriteString(advance + "if in.exit&exitLikely == 0 { goto dispatch }\n")
		for _, s := range succ {
			fmt.Fprintf(&next, "if in.kind == %s { goto l%s }\n", s, s[1:])
		}
		next.WriteString("goto dispatch")
		body = strings.ReplaceAll(body, "goto next", next.String())
	}
	fmt.Fprintf(&h.cases, "l%s:\n{\n%s\n}\n", kind[1:], body)
	if !leaves.MatchString(tail) {
		h.cases.WriteString("goto generic\n")
	}
}

// advance goes on to the next instruction. It is nextOp, written out: the
// compiler keeps variables and a table of positions for each call that it
// expands, and takes a third longer for the 2400 of the loop.
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
func (h *hot) chain(kinds []string) error {
	var out strings.Builder
	var body string
	for i, k := range kinds {
		var ok bool
		if body, ok = h.bodies["k"+k]; !ok {
			return fmt.Errorf("chain: no kind %s", k)
		}
		if i < len(kinds)-1 {
			body = guard.ReplaceAllString(body, "off = a - e.base\nif off > pageSize-$1 { goto generic }\n$2")
			body = last.ReplaceAllString(body, "${1}if !($2) { goto generic }\n${3}goto next")
			if body, ok = strings.CutSuffix(body, "goto next"); !ok {
				return fmt.Errorf("chain: %s does not go on", k)
			}
		}
		fmt.Fprintf(&out, "{\n%s\n}\n", body)
		if i < len(kinds)-1 {
			out.WriteString(advance)
		}
	}
	name := "k" + strings.Join(kinds, "_")
	h.chains = append(h.chains, name)
	h.label(name, out.String(), body)
	return nil
}

// readLines calls use with the words of each line of a file, # for comments.
func readLines(file string, use func(words []string) error) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 1 {
			if err := use(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxSuccessors bounds the successors of a kind.
const maxSuccessors = 4

// successor enters the successors of a kind; the kind stands first.
func (h *hot) successor(words []string) error {
	if len(words)-1 > maxSuccessors {
		return fmt.Errorf("successors: %d of %s", len(words)-1, words[0])
	}
	for _, w := range words[1:] {
		h.successors["k"+words[0]] = append(h.successors["k"+words[0]], "k"+w)
	}
	return nil
}

// writeSuccessors writes the table that the decoder marks likely successors by,
// and fails for kinds that do not exist.
func (h *hot) writeSuccessors(out *bytes.Buffer) error {
	fmt.Fprintf(out, "// successors are the kinds that the case of a kind compares the next one with.\nvar successors = [kindCount][%d]uint16{\n", maxSuccessors)
	for _, k := range slices.Sorted(maps.Keys(h.successors)) {
		for _, name := range append([]string{k}, h.successors[k]...) {
			if !slices.Contains(h.kinds, name) {
				return fmt.Errorf("successors: no kind %s", name[1:])
			}
		}
		fmt.Fprintf(out, "%s: {%s},\n", k, strings.Join(h.successors[k], ", "))
	}
	out.WriteString("}\n\n")
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
// expands, and this one has 1500 places.
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
func (h *hot) alu() {
	for _, op := range aluOps {
		for _, n := range []int{1, 2, 4, 8} {
			for _, f := range []struct{ kind, dst, x, y string }{
				{"RR", "rm", reg("rm", n), reg("reg", n)}, // r/m, reg with a register
				{"RI", "rm", reg("rm", n), imm(n)},
			} {
				body := fmt.Sprintf("x, y = %s, %s\nr = %s\n", f.x, f.y, op.expr) + setReg(f.dst, n)
				h.sized(n, fmt.Sprintf("k%s%s%d", op.name, f.kind, n), body+flags(op.name, n)+"goto next")
				h.sized(n, fmt.Sprintf("k%s%s%dn", op.name, f.kind, n), body+"goto next")
			}
			body := fmt.Sprintf("x, y = %s, %s\nr = %s\n", reg("reg", n), loadExpr(n), op.expr) + setReg("reg", n)
			h.sized(n, fmt.Sprintf("k%sRM%d", op.name, n), ea+tlb("r", n, body+flags(op.name, n)+"goto next"))
			for _, src := range []struct{ kind, y string }{{"MR", reg("reg", n)}, {"MI", imm(n)}} {
				body := fmt.Sprintf("x, y = %s, %s\nr = %s\n%s\n", loadExpr(n), src.y, op.expr, storeStmt(n, "r"))
				h.sized(n, fmt.Sprintf("k%s%s%d", op.name, src.kind, n), ea+tlb("w", n, body+flags(op.name, n)+"goto next"))
			}
		}
	}
}

// carries adds ADC and SBB.
func (h *hot) carries() {
	for _, op := range []struct{ name, expr, flags string }{{"Adc", "x + y + %s(c.aux>>63)", "Add"}, {"Sbb", "x - y - %s(c.aux>>63)", "Sub"}} {
		for _, n := range []int{1, 2, 4, 8} {
			expr := "r = " + fmt.Sprintf(op.expr, sizes[n].typ) + "\n"
			for _, f := range []struct{ kind, dst, x, y string }{
				{"RR", "rm", reg("rm", n), reg("reg", n)}, {"RI", "rm", reg("rm", n), imm(n)},
			} {
				h.sized(n, fmt.Sprintf("k%s%s%d", op.name, f.kind, n),
					fmt.Sprintf("x, y = %s, %s\n", f.x, f.y)+expr+setReg(f.dst, n)+flags(op.flags, n)+"goto next")
			}
			h.sized(n, fmt.Sprintf("k%sRM%d", op.name, n), ea+tlb("r", n,
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
func (h *hot) compare() {
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
				h.sized(n, fmt.Sprintf("k%s%s%d", op.name, f.kind, n), wrap(body+"goto next"))
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
					h.sized(n, fmt.Sprintf("k%s%s%dJ%s", op.name, f.kind, n, cc.name),
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
func (h *hot) moves() {
	h.add("kMovRR4", "%s", "c.R[in.rm&15] = uint64(uint32(c.R[in.reg&15]))\ngoto next")
	h.add("kMovRR8", "%s", "c.R[in.rm&15] = c.R[in.reg&15]\ngoto next")
	h.add("kMovRI4", "%s", "c.R[in.rm&15] = uint64(uint32(in.imm))\ngoto next")
	h.add("kMovRI8", "%s", "c.R[in.rm&15] = in.imm\ngoto next")
	for _, n := range []int{1, 2, 4, 8} {
		h.add(fmt.Sprintf("kLoad%d", n), "%s", ea+tlb("r", n, "c.R[in.reg&15] = uint64("+loadExpr(n)+")\ngoto next"))
		h.add(fmt.Sprintf("kStore%d", n), "%s", ea+tlb("w", n, storeStmt(n, "c.R[in.reg&15]")+"\ngoto next"))
		h.add(fmt.Sprintf("kStoreI%d", n), "%s", ea+tlb("w", n, storeStmt(n, "in.imm")+"\ngoto next"))
	}
	for _, n := range []int{1, 2, 4} {
		st := sizes[n].styp
		h.add(fmt.Sprintf("kLoadS%d8", n), "%s", ea+tlb("r", n, "c.R[in.reg&15] = uint64(int64("+st+"("+loadExpr(n)+")))\ngoto next"))
		h.add(fmt.Sprintf("kMovsx%d8", n), "%s", "c.R[in.reg&15] = uint64(int64("+st+"(c.R[in.rm&15])))\ngoto next")
		if n < 4 {
			h.add(fmt.Sprintf("kLoadS%d4", n), "%s", ea+tlb("r", n, "c.R[in.reg&15] = uint64(uint32(int32("+st+"("+loadExpr(n)+"))))\ngoto next"))
			h.add(fmt.Sprintf("kMovsx%d4", n), "%s", "c.R[in.reg&15] = uint64(uint32(int32("+st+"(c.R[in.rm&15]))))\ngoto next")
			h.add(fmt.Sprintf("kMovzx%d", n), "%s", "c.R[in.reg&15] = uint64("+sizes[n].typ+"(c.R[in.rm&15]))\ngoto next")
		}
	}
	for _, n := range []int{1, 2} { // into a part of a register
		mask := 1<<(8*n) - 1
		h.add(fmt.Sprintf("kLoadM%d", n), "%s", ea+tlb("r", n, fmt.Sprintf("c.R[in.reg&15] = c.R[in.reg&15]&^%#x | uint64(%s)\ngoto next", mask, loadExpr(n))))
		h.add(fmt.Sprintf("kMovRI%d", n), "%s", fmt.Sprintf("c.R[in.rm&15] = c.R[in.rm&15]&^%#x | in.imm&%#[1]x\ngoto next", mask))
		h.add(fmt.Sprintf("kMovRR%d", n), "%s", fmt.Sprintf("c.R[in.rm&15] = c.R[in.rm&15]&^%#x | c.R[in.reg&15]&%#[1]x\ngoto next", mask))
	}
	h.add("kCbw4", "c.R[RAX] = uint64(uint32(int32(int16(c.R[RAX]))))\ngoto next")
	h.add("kCbw8", "c.R[RAX] = uint64(int64(int32(c.R[RAX])))\ngoto next")
	h.add("kCwd4", "c.R[RDX] = uint64(uint32(int32(c.R[RAX]) >> 31))\ngoto next")
	h.add("kCwd8", "c.R[RDX] = uint64(int64(c.R[RAX]) >> 63)\ngoto next")
	h.vectors()
	h.add("kLea8", "%s", ea+"c.R[in.reg&15] = a\ngoto next")
	h.add("kLea4", "%s", ea+"c.R[in.reg&15] = uint64(uint32(a))\ngoto next")
}

// vectors adds moves of XMM registers; U may be misaligned, A may not.
func (h *hot) vectors() {
	load := "v = &c.V[in.reg&15]\nv[0], v[1] = " + qwords(2) + "\ngoto next"
	store := "v = &c.V[in.reg&15]\n" + putQwords(2) + "goto next"
	h.add("kLoadU", "%s", ea+tlb("r", 16, load))
	h.add("kStoreU", "%s", ea+tlb("w", 16, store))
	h.add("kLoadA", "%s", ea+tlb("r", 16, "if a&15 == 0 {\n"+load+"\n}"))
	h.add("kStoreA", "%s", ea+tlb("w", 16, "if a&15 == 0 {\n"+store+"\n}"))
	h.add("kMovXL", "v, w = &c.V[in.reg&15], &c.V[in.rm&15]\nv[0], v[1] = w[0], w[1]\ngoto next")
	h.add("kMovXS", "v, w = &c.V[in.rm&15], &c.V[in.reg&15]\nv[0], v[1] = w[0], w[1]\ngoto next")
	h.add("kPxor", "v, w = &c.V[in.reg&15], &c.V[in.rm&15]\nv[0], v[1] = v[0]^w[0], v[1]^w[1]\ngoto next")
}

// mulFlags sets the flags of a product whose low half, sign-extended, is r.
func mulFlags(r string) string {
	return "aux = c.aux &^ auxCO\nif c.shiftAux == 0 { c.res, aux = " + r + " | resNonZero, 0 }\nif over { aux |= auxCF }\nc.aux = aux\n"
}

// rotates adds ROL and ROR by an immediate. They set CF and OF alone; by more
// than 1, OF is kept on Intel (see int_shift.go).
func (h *hot) rotates(n int) {
	set := setReg("rm", n)
	for _, rot := range []struct{ name, sign, cf, of string }{
		{"Rol", "", "uint64(r&1)", fmt.Sprintf("uint64(r>>%d)^cf", 8*n-1)},
		{"Ror", "-", fmt.Sprintf("uint64(r>>%d)", 8*n-1), fmt.Sprintf("uint64((r>>%d^r>>%d)&1)", 8*n-1, 8*n-2)},
	} {
		body := fmt.Sprintf("by = int(in.imm&%d)\nr = bits.RotateLeft%d(%s, %sby)\n", 8*n-1, 8*n, reg("rm", n), rot.sign) + set
		h.sized(n, fmt.Sprintf("k%sRI%d", rot.name, n), body+fmt.Sprintf("cf = %s\nof = %s\n", rot.cf, rot.of)+
			"if by != 1 && c.shiftAux == 0 { of = (c.aux>>63^c.aux>>62)&1 }\nc.aux = c.aux&^auxCO | cf<<63 | (cf^of)<<62\ngoto next")
		h.sized(n, fmt.Sprintf("k%sRI%dn", rot.name, n), body+"goto next")
	}
}

// highBytes adds TEST and AND of ah, ch, dh and bh with an immediate.
func (h *hot) highBytes() {
	body := "x, y = uint8(c.R[in.rm&3]>>8), uint8(in.imm)\nr = x & y\n"
	h.sized(1, "kTestHI1", body+flags("Test", 1)+"goto next")
	h.sized(1, "kAndHI1", body+"c.R[in.rm&3] = c.R[in.rm&3]&^0xff00 | uint64(r)<<8\n"+flags("And", 1)+"goto next")
	for _, cc := range []int{4, 5} {
		h.sized(1, "kTestHI1J"+ccNames[cc], body+flags("Test", 1)+"if "+conds[cc].test+" { goto exit }\ngoto next")
	}
}

// thread adds what compilers read relative to FS without a register: variables
// of a thread, and the guard of a stack frame, which is compared.
func (h *hot) thread() {
	const ea = "a = uint64(in.disp) + c.FSBase\n"
	h.add("kFLoad8", "%s", ea+tlb("r", 8, "c.R[in.reg&15] = "+loadExpr(8)+"\ngoto next"))
	h.sized(8, "kFSubRM8", ea+tlb("r", 8, "x, y = c.R[in.reg&15], "+loadExpr(8)+"\nr = x - y\nc.R[in.reg&15] = r\n"+flags("Sub", 8)+"goto next"))
}

// misc adds shifts, multiplication, one-operand forms, CMOV and SETcc.
func (h *hot) misc() {
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
			h.sized(n, fmt.Sprintf("k%sRI%d", sh.name, n), body+set+fl+"goto next")
			h.sized(n, fmt.Sprintf("k%sRI%dn", sh.name, n), body+set+"goto next")
			if n < 4 {
				continue
			}
			body = strings.Replace(body, "in.imm", "c.R[RCX]", 1)
			h.sized(n, fmt.Sprintf("kV%s%dn", sh.name, n), body+set+"goto next")
			body = strings.Replace(body, "r = ", "if k == 0 { goto generic }\nr = ", 1)
			h.sized(n, fmt.Sprintf("kV%s%d", sh.name, n), body+set+fl+"goto next")
		}
		h.sized(n, fmt.Sprintf("kNeg%d", n), fmt.Sprintf("x, y = %s(0), %s\nr = -y\n", s.typ, x)+set+flags("Sub", n)+"goto next")
		if n > 1 {
			h.rotates(n)
		}
		if n < 4 {
			continue
		}
		for _, u := range []struct{ name, r, y, op string }{{"Inc", "x + 1", "1", "Add"}, {"Dec", "x - 1", "1", "Sub"}} {
			body := fmt.Sprintf("x, y = %s, %s(1)\nr = %s\n", x, s.typ, strings.Replace(u.r, "1", "y", 1))
			fl := flags(u.op, n) + "o = c.aux ^ c.aux<<1\n"
			h.sized(n, fmt.Sprintf("k%s%d", u.name, n), "cf = c.aux & auxCF\n"+body+set+fl+"c.aux = c.aux&auxAF | cf | (o^cf)&auxCF>>1\ngoto next")
			h.sized(n, fmt.Sprintf("k%s%dn", u.name, n), body+set+"goto next")
		}
		h.sized(n, fmt.Sprintf("kNot%d", n), fmt.Sprintf("r = ^%s\n", x)+set+"goto next")
	}
	for i, cond := range condExpr {
		for _, n := range []int{4, 8} {
			h.sized(n, fmt.Sprintf("kCmov%s%d", ccNames[i], n), fmt.Sprintf("r = %s\nif %s { r = %s }\nc.R[in.reg&15] = uint64(r)\ngoto next", reg("reg", n), cond, reg("rm", n)))
		}
		h.sized(8, "kSet"+ccNames[i], "r = c.R[in.rm&15] &^ 0xff\nif "+cond+" { r |= 1 }\nc.R[in.rm&15] = r\ngoto next")
	}
	for _, m := range []struct{ kind, x string }{{"RR", "c.R[in.reg&15]"}, {"RI", "in.imm"}} {
		h.add("kImul"+m.kind+"4n", "%s", "c.R[in.reg&15] = uint64(uint32("+m.x+") * uint32(c.R[in.rm&15]))\ngoto next")
		h.add("kImul"+m.kind+"8n", "%s", "c.R[in.reg&15] = "+m.x+" * c.R[in.rm&15]\ngoto next")
		h.add("kImul"+m.kind+"4", "%s", "p = int64(int32("+m.x+")) * int64(int32(c.R[in.rm&15]))\nc.R[in.reg&15] = uint64(uint32(p))\nover = p != int64(int32(p))\n"+mulFlags("uint64(int64(int32(p)))")+"goto next")
		h.sized(8, "kImul"+m.kind+"8", "x, y = "+m.x+", c.R[in.rm&15]\nh, r = bits.Mul64(x, y)\nh -= uint64(int64(x)>>63)&y + uint64(int64(y)>>63)&x\nc.R[in.reg&15] = r\nover = h != uint64(int64(r)>>63)\n"+mulFlags("r")+"goto next")
	}
	for _, n := range []int{4, 8} {
		set := "c.R[in.reg&15] = uint64(r)\n"
		h.sized(n, fmt.Sprintf("kImulRM%d", n), ea+tlb("r", n, map[int]string{
			4: "p = int64(int32(" + loadExpr(4) + ")) * int64(int32(c.R[in.reg&15]))\nc.R[in.reg&15] = uint64(uint32(p))\nover = p != int64(int32(p))\n" + mulFlags("uint64(int64(int32(p)))") + "goto next",
			8: "x, y = " + loadExpr(8) + ", c.R[in.reg&15]\nh, r = bits.Mul64(x, y)\nh -= uint64(int64(x)>>63)&y + uint64(int64(y)>>63)&x\n" + set + "over = h != uint64(int64(r)>>63)\n" + mulFlags("r") + "goto next",
		}[n]))
	}
	h.add("kNop", "goto next")
	h.add("kEnd", "goto exit")
}

// stack adds pushes, pops and branches.
func (h *hot) stack() {
	push := "a = c.R[RSP] - 8\n"
	h.add("kPush8", "%s", push+tlb("w", 8, storeStmt(8, "c.R[in.reg&15]")+"\nc.R[RSP] = a\ngoto next"))
	h.add("kPushI8", "%s", push+tlb("w", 8, storeStmt(8, "in.imm")+"\nc.R[RSP] = a\ngoto next"))
	h.add("kPop8", "%s", "a = c.R[RSP]\n"+tlb("r", 8, "c.R[RSP] = a + 8\nc.R[in.reg&15] = "+loadExpr(8)+"\ngoto next"))
	h.add("kCall", "%s", push+tlb("w", 8, storeStmt(8, "b.exits[0].target")+"\nc.R[RSP] = a\ngoto exit"))
	h.add("kRet", "%s", "a = c.R[RSP]\n"+tlb("r", 8, "if t = "+loadExpr(8)+"; "+canonical+" {\nc.R[RSP] = a + 8\nc.RIP = t\ngoto indirect\n}"))
	h.add("kJmp", "goto exit")
	call := "if " + canonical + " {\na = c.R[RSP] - 8\n" + tlb("w", 8, storeStmt(8, "b.exits[0].target")+"\nc.R[RSP] = a\nc.RIP = t\ngoto indirect") + "\n}"
	h.add("kCallR", "%s", "t = c.R[in.rm&15]\n"+call)
	h.add("kCallM", "%s", ea+tlb("r", 8, "t = "+loadExpr(8)+"\n"+call))
	h.add("kJmpM", "%s", ea+tlb("r", 8, "if t = "+loadExpr(8)+"; "+canonical+" {\nc.RIP = t\ngoto indirect\n}"))
	h.add("kJmpR", "%s", "if t = c.R[in.rm&15]; "+canonical+" {\nc.RIP = t\ngoto indirect\n}")
	for i, n := range ccNames {
		h.add("kJ"+n, "if %s { goto exit }\ngoto next", condExpr[i])
	}
}

// generateLoop writes the hot run loop.
func generateLoop() error {
	h := &hot{bodies: map[string]string{}, successors: map[string][]string{}}
	if err := readLines("internal/isagen/successors.txt", h.successor); err != nil {
		return err
	}
	h.moves()
	h.alu()
	h.carries()
	h.compare()
	h.misc()
	h.stack()
	h.highBytes()
	h.thread()
	h.vectorInts()
	h.vectorMoves()
	h.vectorFloats()
	if err := readLines("internal/isagen/chains.txt", h.chain); err != nil {
		return err
	}
	if err := h.writeKinds(); err != nil {
		return err
	}
	return h.writeLoop()
}

// writeKinds writes the names and numbers of kinds, and their successors.
func (h *hot) writeKinds() error {
	var out bytes.Buffer
	out.WriteString("// Code generated by isagen; DO NOT EDIT.\n\npackage x86\n\n// Kinds of the hot loop.\nconst (\nkGeneric = iota\n")
	for _, k := range h.kinds {
		fmt.Fprintln(&out, k)
	}
	out.WriteString("kindCount\n)\n\n// kindByName finds the kinds that bind puts together from shape and size.\nvar kindByName = map[string]uint16{\n")
	for _, k := range h.kinds {
		fmt.Fprintf(&out, "%q: %s,\n", k[1:], k)
	}
	out.WriteString("}\n\n")
	if err := h.writeSuccessors(&out); err != nil {
		return err
	}
	return writeSource("kinds_gen.go", out.Bytes())
}

// writeLoop writes the loop itself.
func (h *hot) writeLoop() error {
	var out bytes.Buffer
	out.WriteString("// Code generated by isagen; DO NOT EDIT.\n\n//go:build !(ppc64 || s390x || mips || mips64)\n\npackage x86\n\nimport (\n\"math/bits\"\n\"unsafe\"\n)\n\n")
	out.WriteString(loopHead)
	for _, k := range h.kinds {
		fmt.Fprintf(&out, "case %s:\ngoto l%s\n", k, k[1:])
	}
	out.WriteString(loopGeneric)
	out.Write(h.cases.Bytes())
	out.WriteString(loopExit)
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

const loopGeneric = `	}
generic:
	{
		i := &b.insts[in.idx]
		c.RIP = b.pc + uint64(in.off)
		ex := i.fn(c, &i.Inst)
		if ex != ExitNone || c.stop != 0 {
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
`

const loopExit = `indirect:
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
