package x86

import (
	"sort"
	"sync"
)

// Row is one encoding form of an instruction, as isa/*.txt lists it.
type Row struct {
	Mnemonic string
	Encoding Encoding
	Operands []string // in Intel order; see internal/isagen for the names
	Dirs     []Dir    // one for each operand
	Implied  []Implied
	CPUID    string   // feature, "" for the base set
	Handler  string   // name of the Go function
	File     string   // the isa/*.txt file, without extension
	Reads    uint64   // arithmetic flags read, as RFLAGS bits
	Writes   uint64   // flags written
	Undef    uint64   // flags that the manuals leave undefined
	Attrs    []string // the other attributes

	fn    Handler
	size  uint8 // operand size: 1, 2, 4, 8, or 0 for "by prefix"
	flags InstFlags
	form  uint8
	index uint16
	use   rowUse
	evex  evexForm
	class uint8 // of the run loop's cases: index of classes, 0 = none
	bytes uint8 // which operands are byte registers: byteReg, byteRM

	undefined bool // no instruction on Intel
	gated     bool // not every CPU has it
}

// Dir says what an instruction does with an operand: a set of DirRead, DirWrite
// and DirAddress, or nothing for an immediate.
type Dir uint8

// The directions. DirAddress is of a memory operand whose content is not
// accessed: its registers are read all the same.
const (
	DirRead Dir = 1 << iota
	DirWrite
	DirAddress
)

// Implied is an operand that the encoding does not name; internal/isagen has the
// names.
type Implied struct {
	Name string
	Dir  Dir
}

// Attr reports whether the row has attribute a.
func (r *Row) Attr(a string) bool {
	for _, s := range r.Attrs {
		if s == a {
			return true
		}
	}
	return false
}

// Encoding says which bytes are the form.
type Encoding struct {
	Text   string // as in the table
	Map    uint8  // 0 one-byte, 1 0F, 2 0F 38, 3 0F 3A; 5 and 6 of EVEX; of XOP 0 to 2 for 8 to 10
	Opcode uint8  // last opcode byte (with +r, the first of eight)
	PlusR  bool   // the low three bits of the opcode are a register
	Prefix Prefix
	W      int8  // REX.W or VEX.W: -1 any, 0, 1
	ModRM  bool  // there is a ModRM byte
	Digit  int8  // /0../7 in ModRM.reg, -1 when it is an operand
	Mod    Mod   // which ModRM.mod are this form
	Second int16 // fixed ModRM byte (x87), -1 when there is none
	PlusI  bool  // the low three bits of Second are st(i)
	Imm    Imm
	VEX    bool
	EVEX   bool
	XOP    bool
	L      int8 // VEX.L: -1 any (LIG), 0, 1
	// VVVV says that VEX.vvvv is an operand; else it must be 1111b.
	VVVV bool
}

// Prefix is a class of mandatory prefix.
type Prefix uint8

// The prefix classes. With PrefixAny the prefixes have their ordinary meaning.
const (
	PrefixAny Prefix = iota
	PrefixNP         // none of 66, F2, F3
	Prefix66
	PrefixF3
	PrefixF2
)

// Mod restricts ModRM.mod.
type Mod uint8

// Memory operands, registers, or both.
const (
	ModAny Mod = iota
	ModMem
	ModReg
)

// Imm is the kind of immediate that follows.
type Imm uint8

// The immediates. ImmZ is 16 bits with operand size 16, else 32; ImmV is as
// wide as the operand; ImmWB is ENTER's; ImmMoffs is as wide as an address.
const (
	ImmNone Imm = iota
	ImmB
	ImmW
	ImmD
	ImmZ
	ImmV
	ImmWB
	ImmMoffs
	ImmIs4 // a register in the high half of a byte
)

// tables are the decoder's: rows by map and opcode, the most specific first.
// The maps of VEX, EVEX and XOP follow the legacy ones.
type tables struct {
	rows []Row
	op   [spaceXOP + 3][256][]uint16
}

// Where the maps of an encoding begin in tables.op.
const (
	spaceLegacy = 0
	spaceVEX    = 4
	spaceEVEX   = 8
	spaceXOP    = 16
)

// space returns where the maps of e's encoding begin.
func (e *Encoding) space() int {
	switch {
	case e.VEX:
		return spaceVEX
	case e.EVEX:
		return spaceEVEX
	case e.XOP:
		return spaceXOP
	}
	return spaceLegacy
}

var (
	rowFiles   [][]Row // filled by the init functions of *_gen.go
	tablesOnce sync.Once
	tablesVar  tables
)

// Rows returns all rows; the caller must not change them. Index 0 is empty.
func Rows() []Row { return getTables().rows }

// row returns the row of in.
func (in *Inst) row() *Row { return &getTables().rows[in.Row] }

func getTables() *tables {
	tablesOnce.Do(func() { tablesVar.build() })
	return &tablesVar
}

// build makes the decoder's tables from the registered rows.
func (t *tables) build() {
	t.rows = make([]Row, 1, 2048)
	for _, f := range rowFiles {
		t.rows = append(t.rows, f...)
	}
	for i := 1; i < len(t.rows); i++ {
		r := &t.rows[i]
		r.index = uint16(i)
		r.use = useOf(r)
		r.evex = evexFormOf(r)
		r.class = classOf[r.Handler]
		r.bytes = bytesOf(r)
		r.gated = isGated(r)
		r.undefined = r.Mnemonic == "UD" || r.CPUID == "3DNOW"
		e := &r.Encoding
		m := e.space() + int(e.Map)
		n := 1
		if e.PlusR {
			n = 8
		}
		for k := 0; k < n; k++ {
			o := int(e.Opcode) + k
			t.op[m][o] = append(t.op[m][o], uint16(i))
		}
	}
	for m := range t.op {
		for o := range t.op[m] {
			l := t.op[m][o]
			sort.SliceStable(l, func(i, j int) bool {
				return t.rows[l[i]].Encoding.weight() > t.rows[l[j]].Encoding.weight()
			})
		}
	}
	bound.fill()
}

// Of Row.bytes.
const (
	byteReg = 1 << iota // ModRM.reg
	byteRM              // ModRM.rm, or the register in the opcode
)

// bytesOf returns which operands of r are byte registers, and may be ah to dh.
func bytesOf(r *Row) uint8 {
	var b uint8
	for _, o := range r.Operands {
		switch {
		case o == "rm8", o == "r8" && r.Encoding.PlusR:
			b |= byteRM
		case o == "r8":
			b |= byteReg
		}
	}
	return b
}

// weight orders rows of one opcode: a fixed second byte before a digit before
// anything, a mandatory prefix before none.
func (e *Encoding) weight() int {
	w := 0
	if e.Second >= 0 {
		w += 64
		if !e.PlusI {
			w += 32
		}
	}
	if e.Digit >= 0 {
		w += 16
	}
	if e.Prefix != PrefixAny {
		w += 8
	}
	if e.W >= 0 {
		w += 4
	}
	if e.Mod != ModAny {
		w += 2
	}
	if e.L >= 0 && (e.VEX || e.XOP) {
		w++
	}
	return w
}
