package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Binding: from the claims (claims.go) and the rows of isa/*.txt to the table by which the
// interpreter finds the case of an instruction.
//
// Nothing falls out silently. It is an error if a claim has no case or no row, if
// nothing claims a case, if two claims want the same instruction, and if an instruction
// has no case and is not listed in generic.txt.

// place is where the operand lies that ModRM.rm names.
type place string

const (
	inRegister place = "inRegister"
	inHighByte place = "inHighByte" // it, or the other register, is ah, ch, dh or bh
	inMemory   place = "inMemory"
	inThread   place = "inThread" // memory relative to FS, without a register
)

// selector says by which part of an instruction, besides operands and size, the
// cases of a handler differ.
type selector string

const (
	byCondition selector = "byCondition"
	byGroup     selector = "byGroup"    // ModRM.reg
	bySource    selector = "bySource"   // size of the source of MOVZX and MOVSX
	byOpcode    selector = "byOpcode"   // last opcode byte
	byRegister  selector = "byRegister" // the register in the opcode
	byW         selector = "byW"        // REX.W or VEX.W
)

// claim binds instructions to forms.
type claim struct {
	handlers string // names, separated by spaces
	place    place
	shapes   []string // forms of rows; nil for any
	sizes    []int    // operand sizes in bytes; nil for any
	vex      []width
	by       selector
	values   []int // of by; nil for any
	form     func(v *variant) form

	rmFirst bool // the case has the destination in rm, which the encoding "reg, r/m" has in reg
}

// variant is one way to decode a row: what its prefixes and its ModRM byte leave open.
type variant struct {
	row   *row
	place place
	mem   bool // with a high byte register there may be memory too
	size  int
	vex   width
	w     int
	reg   int // the register in the opcode
}

func (v *variant) cond() string { return ccNames[v.row.enc.opcode&15] }
func (v *variant) from() int    { return 1 + v.row.enc.opcode&1 }

// value is what a selector selects by.
func (v *variant) value(by selector) int {
	return map[selector]int{
		byCondition: v.row.enc.opcode & 15, byGroup: v.row.enc.digit, bySource: v.from(), byOpcode: v.row.enc.opcode, byRegister: v.reg, byW: v.w,
	}[by]
}

// takes reports whether the claim, which is of v's handler, is for v.
func (c *claim) takes(v *variant) bool {
	return c.place == v.place && (c.shapes == nil || slices.Contains(c.shapes, v.row.form())) &&
		(c.sizes == nil || slices.Contains(c.sizes, v.size)) && (c.vex == nil || slices.Contains(c.vex, v.vex)) &&
		(c.values == nil || slices.Contains(c.values, v.value(c.by)))
}

// class is what the claims of a handler look at.
type class struct {
	number           int
	shape, size, vex bool
	by               selector
}

// bindKey is what the interpreter finds a case by: the same as its bindKey.
type bindKey struct {
	class int
	place place
	shape string
	size  int
	vex   width
	value int
}

// bound is what a bindKey leads to.
type bound struct {
	kind  string
	swaps bool // Reg and RM change places
}

// binding is the result of bind.
type binding struct {
	classes map[string]*class // by handler
	cases   map[bindKey]bound
}

// bind finds the case of every instruction and checks that there is nothing else.
func (l *loop) bind(rows []*row, claims []claim, generic []string) (*binding, error) {
	all := slices.Concat(claims, l.ownClaims(rows))
	b := &binding{classes: classesOf(all), cases: map[bindKey]bound{}}
	byHandler := map[string][]int{} // indexes of all
	for i, c := range all {
		for _, h := range strings.Fields(c.handlers) {
			byHandler[h] = append(byHandler[h], i)
		}
	}
	var errs []error
	used := make([]bool, len(all))
	claimed := map[form]bool{{op: "End"}: true} // which stands behind each block
	has := map[string]map[string]bool{}         // whether there is a case, by handler and operands
	for _, r := range rows {
		if slices.Contains(r.attrs, "refuse") || r.enc.evex || r.file == "opmask" {
			continue
		}
		if has[r.handler] == nil {
			has[r.handler] = map[string]bool{}
		}
		for _, v := range r.variants() {
			found := false
			for _, i := range byHandler[r.handler] {
				c := &all[i]
				if !c.takes(&v) {
					continue
				}
				f := c.form(&v)
				if l.byForm[f] == nil {
					errs = append(errs, fmt.Errorf("%s: %s of %d bytes is to have the case %s, which does not exist", r.handler, v.what(), v.size, f.name()))
				}
				to := bound{kind: f.name(), swaps: c.rmFirst && v.place == inRegister && r.form() == "formRegRM"}
				k := b.classes[r.handler].key(&v)
				if old, ok := b.cases[k]; ok && old != to {
					errs = append(errs, fmt.Errorf("%s: %s and %s claim %s", r.handler, old.kind, f.name(), v.what()))
				}
				b.cases[k] = to
				used[i], claimed[f], found = true, true, true
			}
			if v.place != inThread {
				has[r.handler][v.what()] = has[r.handler][v.what()] || found
			}
		}
	}
	for i, u := range used {
		c := &all[i]
		if !u {
			errs = append(errs, fmt.Errorf("%s: no row for the claim %s %s %v %v", c.handlers, c.place, c.shapes, c.sizes, c.values))
		}
		for _, h := range strings.Fields(c.handlers) {
			if by := b.classes[h].by; c.by != "" && c.by != by {
				errs = append(errs, fmt.Errorf("%s: claims differ by %s and by %s", h, by, c.by))
			}
		}
	}
	for _, k := range l.kinds {
		if p := k.form.plain(); k.chain == nil && (!claimed[p] || l.byForm[p] == nil) {
			errs = append(errs, fmt.Errorf("no instruction reaches the case %s", k.name))
		}
	}
	return b, errors.Join(append(errs, checkGeneric(has, generic))...)
}

// ownClaims are those of vector cases that are called like a handler.
func (l *loop) ownClaims(rows []*row) []claim {
	handlers := map[string]bool{}
	for _, r := range rows {
		handlers[r.handler] = true
	}
	var own []claim
	for _, k := range l.kinds {
		f := k.form
		if f.vex == "" || f.base || f.size != 0 || !handlers[f.op] {
			continue
		}
		c := claim{handlers: f.op, place: inRegister, vex: []width{f.vex}, form: func(*variant) form { return f }}
		if f.operands == memory {
			c.place = inMemory
		}
		own = append(own, c)
	}
	return own
}

// classesOf sums up what the claims of each handler look at.
func classesOf(claims []claim) map[string]*class {
	m := map[string]*class{}
	for _, c := range claims {
		for _, h := range strings.Fields(c.handlers) {
			if m[h] == nil {
				m[h] = &class{number: len(m) + 1}
			}
			cl := m[h]
			cl.shape = cl.shape || c.shapes != nil
			cl.size = cl.size || c.sizes != nil
			cl.vex = cl.vex || c.vex != nil
			cl.by = cmp.Or(cl.by, c.by)
		}
	}
	return m
}

// key is what the interpreter looks up for v.
func (c *class) key(v *variant) bindKey {
	k := bindKey{class: c.number, place: v.place}
	if c.shape {
		k.shape = v.row.form()
	}
	if c.size {
		k.size = v.size
	}
	if c.vex {
		k.vex = v.vex
	}
	if c.by != "" {
		k.value = v.value(c.by)
	}
	return k
}

// variants returns the ways to decode the row.
func (r *row) variants() []variant {
	e := &r.enc
	type at struct {
		place place
		mem   bool
	}
	var places []at
	bytes := slices.Contains(r.operands, "rm8") || slices.Contains(r.operands, "r8")
	if e.mod != "ModMem" || !e.modrm {
		places = append(places, at{inRegister, false})
		if bytes {
			places = append(places, at{inHighByte, false})
		}
	}
	if e.modrm && e.mod != "ModReg" && e.second < 0 && !slices.Contains(r.attrs, "modreg") || e.imm == "ImmMoffs" {
		places = append(places, at{inMemory, true}, at{inThread, true})
		if slices.Contains(r.operands, "r8") {
			places = append(places, at{inHighByte, true})
		}
	}
	widths := []width{legacy}
	if e.vex {
		widths = [][]width{{vex128, vex256}, {vex128}, {vex256}}[e.l+1]
	}
	ws := []int{0, 1}
	if e.w >= 0 {
		ws = []int{e.w}
	}
	reg := []int{-1}
	if e.plusR {
		reg = []int{0, 1}
	}
	var l []variant
	for _, p := range places {
		for _, x := range widths {
			for _, w := range ws {
				for _, n := range r.sizes(w) {
					for _, g := range reg {
						l = append(l, variant{row: r, place: p.place, mem: p.mem, size: n, vex: x, w: w, reg: g})
					}
				}
			}
		}
	}
	return l
}

// sizes are the operand sizes that the row can have with a W bit.
func (r *row) sizes(w int) []int {
	has := func(attr string) bool { return slices.Contains(r.attrs, attr) }
	switch {
	case r.size() != 0:
		return []int{r.size()}
	case w == 1 || has("f64"):
		return []int{8}
	case slices.ContainsFunc(r.operands, func(o string) bool { return o == "rmy" || o == "ry" || o == "my" }):
		return []int{4}
	case has("d64"):
		return []int{2, 8}
	}
	return []int{2, 4}
}

// what describes the operands of v as generic.txt does: memory or register (of two M, R, I, the
// destination first), size, the digit of a shift group, ah to dh.
func (v *variant) what() string {
	s := "reg"
	if v.mem {
		s = "mem"
	}
	switch {
	case v.vex == vex128:
		return s + " 128"
	case v.vex == vex256:
		return s + " 256"
	case v.row.file != "int":
		return s
	}
	switch v.row.form() {
	case "formRMReg":
		s = map[bool]string{false: "RR", true: "MR"}[v.mem]
	case "formRegRM":
		s = map[bool]string{false: "RR", true: "RM"}[v.mem]
	case "formRMImm":
		s = map[bool]string{false: "RI", true: "MI"}[v.mem]
	}
	s += fmt.Sprintf(" %d", 8*v.size)
	if strings.HasPrefix(v.row.handler, "intShift") && v.row.enc.digit >= 0 {
		s += fmt.Sprintf(" /%d", v.row.enc.digit)
	}
	if v.place == inHighByte {
		s += " high"
	}
	return s
}

// readGeneric returns the lines of generic.txt.
func readGeneric() (lines []string, err error) {
	err = readLines("internal/isagen/generic.txt", 1, func(words []string) error {
		lines = append(lines, strings.Join(words, " "))
		return nil
	})
	return lines, err
}

// checkGeneric compares what has no case with the lines of generic.txt: handlers, and
// of those that have cases the operands without.
func checkGeneric(has map[string]map[string]bool, lines []string) error {
	listed := map[string]bool{}
	for _, l := range lines {
		listed[l] = true
	}
	var errs []error
	for _, h := range slices.Sorted(maps.Keys(has)) {
		forms := []string{""}
		if slices.Contains(slices.Collect(maps.Values(has[h])), true) {
			forms = slices.Sorted(maps.Keys(has[h]))
		}
		for _, f := range forms {
			if has[h][f] {
				continue
			}
			line := strings.TrimSpace(h + " " + f)
			if !listed[line] {
				errs = append(errs, fmt.Errorf("%s: no case, and not listed in generic.txt", line))
			}
			delete(listed, line)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(listed)) {
		errs = append(errs, fmt.Errorf("%s: listed in generic.txt, but has a case or does not exist", line))
	}
	return errors.Join(errs...)
}
