package dwarf

import (
	"debug/dwarf"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
	"github.com/go-delve/delve/pkg/dwarf/op"
)

// TestDelveOnC holds RATIONALE.md to what it says of delve's packages on programs in C++:
// what they get wrong. Where it fails after an update of delve, delve has become
// better, and could do more here.
func TestDelveOnC(t *testing.T) {
	_, b := compiled(t, "g++", filepath.Join("testdata", "vars.cc"), "-O2", "-gdwarf-5")
	m, err := Open(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := m.goProgram()
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	wrong := map[string]int{}
	r := m.data.Reader()
	for {
		e, err := r.Next()
		if err != nil || e == nil {
			break
		}
		if k, ok := kindOf[e.Tag]; !ok || k.kind == KindFunction {
			continue
		}
		typ, err := godwarf.ReadType(p.data, 0, e.Offset, map[dwarf.Offset]godwarf.Type{})
		switch typ := typ.(type) {
		case nil:
			_, what, _ := strings.Cut(err.Error(), "section ")
			name, _, _ := strings.Cut(what, " ")
			wrong[name+": "+strings.TrimSpace(what[strings.LastIndex(what, ":")+1:])]++
		case *godwarf.UnsupportedType:
			wrong["unsupported: "+typ.Tag.String()]++
		case *godwarf.StructType:
			if ours := m.typeAt(e.Offset); hasBase(ours) && len(ours.fields) > len(typ.Field) {
				wrong["a base class is left out"]++
			}
		}
	}
	t.Log(wrong)
	for _, want := range []string{
		"unsupported: ReferenceType", "unsupported: RvalueReferenceType", "unsupported: PtrToMemberType",
		"char16_t: unrecognized encoding attribute value", "char32_t: unrecognized encoding attribute value", "a base class is left out",
	} {
		if wrong[want] == 0 {
			t.Errorf("delve: no more %q", want)
		}
	}
	for name, expr := range map[string][]byte{
		"what a register held at the function's entry": {byte(opEntryValue), 1, byte(op.DW_OP_reg5), byte(op.DW_OP_stack_value)},
		"the same of before DWARF 5":                   {byte(opGNUEntryValue), 1, byte(op.DW_OP_reg5), byte(op.DW_OP_stack_value)},
		"a pointer to what is in a register":           {byte(opImplicitPointer), 1, 0, 0, 0, 0},
		"a register as a number of a type":             {byte(opRegvalType), 5, 0x20},
		"a conversion":                                 {byte(op.DW_OP_lit1), byte(opConvert), 0x20},
		"an address in a table":                        {byte(opAddrx), 0},
		"a thread's variable":                          {byte(op.DW_OP_lit8), byte(op.DW_OP_form_tls_address)},
	} {
		if delveEvaluates(expr) {
			t.Errorf("delve: evaluates %s", name)
		}
	}
}

func hasBase(t *Type) bool {
	t.load()
	return slices.ContainsFunc(t.fields, func(f field) bool { return f.base })
}

// delveEvaluates reports whether delve's evaluator makes anything of a location.
func delveEvaluates(expr []byte) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	regs := *op.NewDwarfRegisters(0, make([]*op.DwarfRegister, numRegs), binary.LittleEndian, RIP, RSP, RBP, 0)
	for i := range uint64(numRegs) {
		regs.AddReg(i, op.DwarfRegisterFromUint64(0x1000))
	}
	_, _, err := op.ExecuteStackProgram(regs, expr, 8, func(b []byte, _ uint64) (int, error) { return len(b), nil })
	return err == nil
}
