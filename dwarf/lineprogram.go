package dwarf

import (
	"debug/dwarf"
	"errors"
	"path"
	"strings"
)

// The line number program of a unit (DWARF 5, 6.2). Each byte of it can make a row, and
// many units can share one program; a table of files can join a long folder with
// many short names. All of it is charged as it is read.

// lineRow is one row that the program makes.
type lineRow struct {
	addr    uint64
	file    string // "" when there is none
	line    int
	isStmt  bool
	isEnd   bool // the end of a sequence
	divided bool // it has a discriminator
}

// lineProgram reads a unit's rows.
type lineProgram struct {
	m       *Module
	c       cursor // up to the unit's end
	h       *header
	version int
	dwarf64 bool

	minLength  uint64
	isStmt     bool // at the start of a sequence
	lineBase   int
	lineRange  int
	opcodeBase int
	lengths    [256]byte // arguments of the standard opcodes
	dirs       []string
	files      []string // by number; "" is none
	taken      int

	row     lineRow
	fileNum uint64
}

var errLines = errors.New("dwarf: bad line table")

// What a row of a line table takes in memory, and what it and an instruction take in
// time.
const (
	lineRowBytes    = 320
	lineRowWork     = 96
	instructionWork = 8
)

// lineProgram returns the reader of the line table of a unit, nil when it has none.
func (m *Module) lineProgram(u *unit) (*lineProgram, error) {
	off, ok := u.entry.Val(dwarf.AttrStmtList).(int64)
	h := m.headerOf(u.entry.Offset)
	if !ok || h == nil {
		return nil, nil
	}
	if off < 0 || off > int64(len(m.sec.line)) {
		return nil, errLines
	}
	p := &lineProgram{m: m, h: h, c: cursor{b: m.sec.line, at: int(off)}}
	dir, _ := u.entry.Val(dwarf.AttrCompDir).(string)
	if err := p.readHeader(dir); err != nil {
		return nil, err
	}
	p.reset()
	return p, nil
}

// known are the numbers of arguments that the standard opcodes have.
var known = [...]byte{opCopy: 0, opAdvancePC: 1, opAdvanceLine: 1, opSetFile: 1, opNegateStmt: 0, opSetISA: 1}

// readHeader reads what stands before the program (DWARF 5, 6.2.4).
func (p *lineProgram) readHeader(compDir string) error {
	c := &p.c
	n := c.uint(4)
	if p.dwarf64 = n == 0xffffffff; p.dwarf64 {
		n = c.uint(8)
	}
	if n > uint64(c.left()) {
		return errLines
	}
	c.b = c.b[:c.at+int(n)]
	if p.version = int(c.uint(2)); p.version < 2 || p.version > 5 {
		return errLines
	}
	if p.version >= 5 {
		c.uint(2) // sizes of addresses and of segment selectors
	}
	n = c.uint(p.offsetSize())
	if n > uint64(c.left()) {
		return errLines
	}
	start := c.at + int(n)
	if p.minLength = c.uint(1); p.version >= 4 && c.u8() != 1 { // operations in an instruction
		return errLines
	}
	p.isStmt = c.u8() != 0
	p.lineBase, p.lineRange, p.opcodeBase = int(c.int(1)), int(c.u8()), int(c.u8())
	for i := 1; i < p.opcodeBase; i++ {
		if p.lengths[i] = c.u8(); i < opSetISA+1 && i != opSetColumn && i != opFixedAdvancePC && p.lengths[i] != known[i] {
			return errLines
		}
	}
	if c.bad || p.lineRange == 0 {
		return errLines
	}
	var err error
	if p.version < 5 {
		err = p.readFiles(compDir)
	} else if p.dirs, err = p.readEntries(); err == nil {
		p.files, err = p.readEntries()
	}
	c.at = start
	return err
}

func (p *lineProgram) offsetSize() uint64 {
	if p.dwarf64 {
		return 8
	}
	return 4
}

// readFiles reads the folders and files of DWARF 2 to 4.
func (p *lineProgram) readFiles(compDir string) error {
	p.dirs, p.files = []string{compDir}, []string{""}
	for {
		dir, ok := p.name()
		if !ok {
			return errLines
		}
		if dir == "" {
			break
		}
		if !isAbs(dir) {
			dir = join2(compDir, dir)
		}
		if err := p.keep(dir); err != nil {
			return err
		}
		p.dirs = append(p.dirs, dir)
	}
	for {
		if more, err := p.readFile(); err != nil || !more {
			return err
		}
	}
}

// name reads a name that stands in the program.
func (p *lineProgram) name() (string, bool) {
	s, ok := p.m.meter.stringAt(p.c.b, uint64(p.c.at))
	if len(s) == maxString {
		return "", false
	}
	p.c.at += len(s) + 1
	return s, ok
}

// keep charges a name that is kept.
func (p *lineProgram) keep(s string) error {
	if err := p.m.meter.spend(len(s) + entryWork); err != nil {
		return err
	}
	return p.m.meter.take(len(s) + 32)
}

// readFile reads one file; more is false at the end of the list.
func (p *lineProgram) readFile() (more bool, err error) {
	name, ok := p.name()
	if !ok {
		return false, errLines
	}
	if name == "" {
		return false, nil
	}
	dir := p.c.uleb()
	p.c.uleb() // time
	p.c.uleb() // size
	if !isAbs(name) {
		if dir >= uint64(len(p.dirs)) {
			return false, errLines
		}
		name = join2(p.dirs[dir], name)
	}
	p.files = append(p.files, name)
	return !p.c.bad, p.keep(name)
}

// Content of the entries of DWARF 5 (table 7.27).
const (
	contentPath   = 1
	contentFolder = 2
)

// readEntries reads the folders or the files of DWARF 5, 6.2.4.1.
func (p *lineProgram) readEntries() ([]string, error) {
	type column struct {
		content uint64
		form    form
	}
	columns := make([]column, p.c.u8())
	for i := range columns {
		columns[i] = column{p.c.uleb(), form(p.c.uleb())}
	}
	n := p.c.uleb()
	if p.c.bad || n > uint64(p.c.left()) {
		return nil, errLines
	}
	// Values are read as those of entries are. Strings by number need what is not
	// there.
	r := &entryReader{d: p.m.data, h: &header{version: 5, dwarf64: p.dwarf64, bases: &bases{}}, c: p.c}
	var out []string
	for range n {
		name, dir := "", ""
		for _, c := range columns {
			v, ok := r.value(c.form, &abbrevField{})
			if !ok || r.c.bad {
				return nil, errLines
			}
			switch c.content {
			case contentPath:
				name, _ = v.(string)
			case contentFolder:
				i, _ := v.(int64)
				if i < 0 || i >= int64(len(p.dirs)) {
					return nil, errLines
				}
				dir = p.dirs[i]
			}
		}
		if dir != "" && name != "" {
			name = join2(dir, name)
		}
		if err := p.keep(name); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	p.c = r.c
	return out, nil
}

// Standard opcodes and extended ones (DWARF 5, 7.22).
const (
	opCopy           = 1
	opAdvancePC      = 2
	opAdvanceLine    = 3
	opSetFile        = 4
	opSetColumn      = 5
	opNegateStmt     = 6
	opSetBasicBlock  = 7
	opConstAddPC     = 8
	opFixedAdvancePC = 9
	opPrologueEnd    = 10
	opEpilogueBegin  = 11
	opSetISA         = 12

	extEndSequence   = 1
	extSetAddress    = 2
	extDefineFile    = 3
	extDiscriminator = 4
)

func (p *lineProgram) reset() {
	p.row = lineRow{line: 1, isStmt: p.isStmt}
	p.fileNum = 1
}

func (p *lineProgram) file() string {
	if p.fileNum < uint64(len(p.files)) {
		return p.files[p.fileNum]
	}
	return ""
}

// next returns the next row; ok is false at the end, and where the program is damaged
// or the budget is used up.
func (p *lineProgram) next() (row lineRow, ok bool, err error) {
	for p.c.left() > 0 {
		if err := p.m.meter.spend(instructionWork); err != nil {
			return row, false, err
		}
		emits, err := p.step(p.c.u8())
		switch {
		case err != nil:
			return row, false, err
		case p.c.bad:
			return row, false, errLines
		case emits:
			row = p.row
			row.file = p.file()
			p.row.divided = false
			if row.isEnd {
				p.reset()
			}
			return row, true, p.m.meter.spend(lineRowWork)
		}
	}
	return row, false, nil
}

// step executes one instruction.
func (p *lineProgram) step(op byte) (emits bool, err error) {
	if int(op) >= p.opcodeBase {
		n := int(op) - p.opcodeBase
		p.row.addr += p.minLength * uint64(n/p.lineRange)
		p.row.line += p.lineBase + n%p.lineRange
		return true, nil
	}
	c := &p.c
	switch op {
	case 0:
		return p.extended()
	case opCopy:
		return true, nil
	case opAdvancePC:
		p.row.addr += p.minLength * c.uleb()
	case opAdvanceLine:
		p.row.line += int(c.sleb())
	case opSetFile:
		p.fileNum = c.uleb()
	case opNegateStmt:
		p.row.isStmt = !p.row.isStmt
	case opConstAddPC:
		p.row.addr += p.minLength * uint64((255-p.opcodeBase)/p.lineRange)
	case opFixedAdvancePC:
		p.row.addr += c.uint(2)
	case opSetBasicBlock, opPrologueEnd, opEpilogueBegin:
	default:
		for range p.lengths[op] {
			c.uleb()
		}
	}
	return false, nil
}

func (p *lineProgram) extended() (emits bool, err error) {
	c := &p.c
	n := c.uleb()
	start := c.at
	if n > uint64(c.left()) {
		return false, errLines
	}
	switch op := c.u8(); op {
	case extEndSequence:
		p.row.isEnd, emits = true, true
	case extSetAddress:
		p.row.addr = c.uint(8)
	case extDefineFile:
		if more, err := p.readFile(); err != nil || !more {
			return false, errors.Join(err, errLines)
		}
	case extDiscriminator:
		p.row.divided = c.uleb() != 0
	default:
	}
	c.at = start + int(n)
	return emits, nil
}

// isAbs reports whether a path is absolute, of Unix or of DOS.
func isAbs(p string) bool {
	_, p = drive(p)
	return p != "" && (p[0] == '/' || p[0] == '\\')
}

// drive splits a path into its drive, such as "C:", and the rest.
func drive(p string) (d, rest string) {
	if len(p) >= 2 && p[1] == ':' && (p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z') {
		return p[:2], p[2:]
	}
	return "", p
}

// join2 joins a folder and a relative path, of Unix or of DOS.
func join2(dir, name string) string {
	if dir == "" {
		return name
	}
	if d, _ := drive(dir); d == "" {
		return path.Join(dir, name)
	}
	if strings.HasSuffix(dir, "/") || strings.HasSuffix(dir, `\`) {
		return dir + name
	}
	return dir + `\` + name
}
