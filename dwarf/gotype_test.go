package dwarf

import (
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
)

// abbreviations of the entries that goFile makes.
const (
	abUnit = iota + 1
	abPointer
	abTypedef
	abStruct
	abMember
	abBase
	abArray
	abFunction
	abBlock
	abVariable
)

// abbrevSection has their forms (DWARF 5, 7.5.3 to 7.5.6).
func abbrevSection() []byte {
	const name, size, encoding, language, at, typ, origin = 0x03, 0x0b, 0x3e, 0x13, 0x38, 0x49, 0x31
	const str, data1, ref4 = 0x08, 0x0b, 0x13
	b := []byte{
		abUnit, 0x11, 1, language, data1, 0, 0,
		abPointer, 0x0f, 0, typ, ref4, 0, 0,
		abTypedef, 0x16, 0, name, str, typ, ref4, 0, 0,
		abStruct, 0x13, 1, name, str, size, data1, 0, 0,
		abMember, 0x0d, 0, name, str, typ, ref4, at, data1, 0, 0,
		abBase, 0x24, 0, name, str, encoding, data1, size, data1, 0, 0,
		abArray, 0x01, 0, typ, ref4, 0, 0,
		abFunction, 0x2e, 1, 0, 0,
		abBlock, 0x0b, 1, 0, 0,
		abVariable, 0x34, 0, origin, ref4, 0, 0,
	}
	return append(b, 0)
}

// goFile is the debugging information of one Go unit.
type goFile struct{ info []byte }

// goFirst is the offset of its first entry.
const goFirst = 11 + 2

func newGoFile() *goFile {
	return &goFile{info: append(make([]byte, 11), abUnit, langGo)}
}

func (f *goFile) at() dwarf.Offset { return dwarf.Offset(len(f.info)) }

func (f *goFile) bytes(b ...byte) { f.info = append(f.info, b...) }

func (f *goFile) pointer(to dwarf.Offset) (at dwarf.Offset) {
	at = f.at()
	f.bytes(abPointer)
	f.ref(to)
	return at
}

func (f *goFile) ref(to dwarf.Offset) { f.info = binary.LittleEndian.AppendUint32(f.info, uint32(to)) }

func (f *goFile) base() (at dwarf.Offset) {
	at = f.at()
	f.bytes(abBase, 'i', 0, encSigned, 8)
	return at
}

// module opens what was made.
func (f *goFile) module() *Module {
	f.bytes(0)
	binary.LittleEndian.PutUint32(f.info, uint32(len(f.info)-4))
	f.info[4], f.info[10] = 4, 8 // version, address size
	m := &Module{sec: sections{info: f.info, abbrev: abbrevSection()}}
	m.data = &info{m: m, abbrevs: map[uint64]*abbrevs{}}
	return m
}

// pointers is a file with n pointers to each other in a row, the last one first.
func pointers(n int) (f *goFile, first dwarf.Offset) {
	f = newGoFile()
	first = f.base()
	for range n {
		first = f.pointer(first)
	}
	return f, first
}

// TestGoTypesBounded reads types that delve's packages would read for ever, or
// until the stack is full.
func TestGoTypesBounded(t *testing.T) {
	selfNamed := newGoFile()
	selfNamed.bytes(abTypedef, 'T', 0)
	selfNamed.ref(goFirst)

	selfHeld := newGoFile()
	selfHeld.bytes(abStruct, 'S', 0, 8, abMember, 'm', 0)
	selfHeld.ref(goFirst)
	selfHeld.bytes(0, 0)

	selfArray := newGoFile()
	selfArray.bytes(abArray)
	selfArray.ref(goFirst)

	cut := newGoFile()
	cut.bytes(abStruct, 'S', 0, 8, abMember, 'm')

	nowhere := newGoFile()
	nowhere.pointer(1 << 30)

	deep, top := pointers(maxGoDepth + 10)
	long, last := pointers(1 << 20)
	for name, c := range map[string]struct {
		file *goFile
		off  dwarf.Offset
	}{
		"a type that is a name of itself": {selfNamed, goFirst}, "a struct in itself": {selfHeld, goFirst}, "an array of itself": {selfArray, goFirst},
		"the file ends in a type": {cut, goFirst}, "a pointer to nowhere": {nowhere, goFirst}, "no type": {newGoFile(), 1 << 20},
		"too many pointers to pointers": {deep, top}, "a million pointers to pointers": {long, last},
	} {
		p := c.file.module().goProgram()
		for range 2 { // the second time, too
			if typ, err := p.typeAt(c.off); !errors.Is(err, errGoType) {
				t.Errorf("%s: type %v, error %v", name, typ, err)
			}
		}
	}
}

// TestGoTypesDeep reads the deepest types that are allowed, and those that go in
// circles as programs have them.
func TestGoTypesDeep(t *testing.T) {
	f, top := pointers(maxGoDepth - 10)
	typ, err := f.module().goProgram().typeAt(top)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for p, ok := typ.(*godwarf.PtrType); ok; p, ok = p.Type.(*godwarf.PtrType) {
		n++
	}
	if n != maxGoDepth-10 {
		t.Errorf("%d pointers", n)
	}
	list := newGoFile()
	list.bytes(abStruct, 'S', 0, 8, abMember, 'm', 0)
	list.ref(goFirst + 4 + 8 + 1)
	list.bytes(0, 0)
	if list.pointer(goFirst) != goFirst+4+8+1 {
		t.Fatal("the pointer is elsewhere")
	}
	if typ, err = list.module().goProgram().typeAt(goFirst); err != nil {
		t.Fatal(err)
	}
	s := typ.(*godwarf.StructType)
	if p, ok := s.Field[0].Type.(*godwarf.PtrType); !ok || p.Type != typ {
		t.Errorf("the member is %v", s.Field[0].Type)
	}
}

// TestGoTreesBounded reads the entries of functions that delve's packages would read
// for ever, or until the stack is full.
func TestGoTreesBounded(t *testing.T) {
	circle := newGoFile()
	circle.bytes(abFunction)
	at := circle.at()
	circle.bytes(abVariable)
	circle.ref(at + 5)
	circle.bytes(abVariable)
	circle.ref(at)
	circle.bytes(0)

	deep := newGoFile()
	deep.bytes(abFunction)
	for range 1 << 20 {
		deep.bytes(abBlock)
	}
	deep.bytes(make([]byte, 1<<20+1)...)

	cut := newGoFile()
	cut.bytes(abFunction, abBlock, abBlock)
	for name, f := range map[string]*goFile{"instances of each other": circle, "a million blocks": deep, "the file ends in a function": cut} {
		if tree, err := f.module().goProgram().tree(goFirst); !errors.Is(err, errGoType) {
			t.Errorf("%s: %v, error %v", name, tree, err)
		}
	}
}

// smallBudget refuses memory and work behind its limits.
type smallBudget struct{ memory, work int64 }

var errSmall = errors.New("the budget is small")

func (b *smallBudget) Take(n int64, _ string) error {
	if b.memory -= n; b.memory < 0 {
		return errSmall
	}
	return nil
}

func (b *smallBudget) Give(n int64) { b.memory += n }

func (b *smallBudget) Spend(n int64, _ string) error {
	if b.work -= n; b.work < 0 {
		return errSmall
	}
	return nil
}

// TestGoTypesCharged reads types that the budget has no memory, or no work, for.
func TestGoTypesCharged(t *testing.T) {
	for name, b := range map[string]*smallBudget{"memory": {1 << 20, 1 << 40}, "work": {1 << 40, 1 << 20}, "both": {1 << 26, 1 << 26}} {
		f, top := pointers(10000)
		m := f.module()
		m.meter = newMeter(b, m)
		_, err := m.goProgram().typeAt(top)
		if wantErr := name != "both"; errors.Is(err, errSmall) != wantErr {
			t.Errorf("%s: error %v", name, err)
		}
		if name != "both" && !errors.Is(m.Limited(), errSmall) {
			t.Errorf("%s: the module is not limited", name)
		}
	}
}
