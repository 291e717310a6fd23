package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// fixture returns the cases, the rows of isa/*.txt and the lines of generic.txt.
func fixture(t *testing.T) (*loop, []*row, []string) {
	t.Helper()
	t.Chdir("../..")
	l, err := newLoop()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readRows()
	if err != nil {
		t.Fatal(err)
	}
	generic, err := readGeneric()
	if err != nil {
		t.Fatal(err)
	}
	return l, rows, generic
}

// TestBind makes one mistake at a time in what the binding is made of; each is an
// error that names it.
func TestBind(t *testing.T) {
	all, rows, generic := fixture(t)
	addRow := func(rows *[]*row, line string) {
		r, err := parseRow(line)
		if err != nil {
			t.Fatal(err)
		}
		r.file = "int"
		*rows = append(*rows, r)
	}
	for _, x := range []struct {
		name   string
		change func(l *loop, rows *[]*row, claims *[]claim, generic *[]string)
		want   string // "" for no error
	}{
		{"nothing", func(*loop, *[]*row, *[]claim, *[]string) {}, ""},
		{"a claim without its case", func(l *loop, _ *[]*row, _ *[]claim, _ *[]string) {
			delete(l.byForm, form{op: "MovRI", size: 2})
		}, "intMovImm: RI 16 of 2 bytes is to have the case MovRI2, which does not exist"},
		{"a case without a claim", func(l *loop, _ *[]*row, _ *[]claim, _ *[]string) {
			l.put(form{op: "Bswap", size: 8}, "goto next")
		}, "no instruction reaches the case Bswap8"},
		{"a variant of no case", func(l *loop, _ *[]*row, _ *[]claim, _ *[]string) {
			l.put(form{op: "LoadU", dead: true}, "goto next")
			delete(l.byForm, form{op: "LoadU"})
		}, "no instruction reaches the case LoadUn"},
		{"a claim that is gone", func(_ *loop, _ *[]*row, claims *[]claim, _ *[]string) {
			*claims = slices.DeleteFunc(*claims, func(c claim) bool { return c.handlers == "intNeg" })
		}, "intNeg: no case, and not listed"},
		{"a claim of a size that no row has", func(_ *loop, _ *[]*row, claims *[]claim, _ *[]string) {
			*claims = append(*claims, claim{handlers: "intLea", place: inRegister, form: sized("Lea")})
		}, "intLea: no row for the claim inRegister"},
		{"two claims of one instruction", func(_ *loop, _ *[]*row, claims *[]claim, _ *[]string) {
			*claims = append(*claims, claim{handlers: "intNot", place: inRegister, sizes: wide, form: sized("Neg")})
		}, "claim reg 32"},
		{"a row with a new handler", func(_ *loop, rows *[]*row, _ *[]claim, _ *[]string) {
			addRow(rows, "NEW | 0F 3F /r | rmv, rv | rw, r | | - | intNew |")
		}, "intNew: no case, and not listed in generic.txt"},
		{"a row with operands that no claim of its handler has", func(_ *loop, rows *[]*row, _ *[]claim, _ *[]string) {
			addRow(rows, "LEA | 0F 3F /r r | rv, rv | w, r | | - | intLea |")
		}, "intLea reg 32: no case, and not listed"},
		{"a line of generic.txt that has a case", func(_ *loop, _ *[]*row, _ *[]claim, generic *[]string) {
			*generic = append(*generic, "intLea RM 64")
		}, "intLea RM 64: listed in generic.txt, but has a case"},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := &loop{kinds: slices.Clone(all.kinds), byName: maps.Clone(all.byName), byForm: maps.Clone(all.byForm)}
			rows, claims, generic := slices.Clone(rows), slices.Clone(claims), slices.Clone(generic)
			x.change(l, &rows, &claims, &generic)
			_, err := l.bind(rows, claims, generic)
			if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
				t.Errorf("%v, want %q", err, x.want)
			}
		})
	}
}
