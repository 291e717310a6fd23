package dataflow

import (
	"strconv"
	"strings"

	"vplay/replay/x86"
)

// How wide operands are: the names of the table's operands, as bytes of registers and of
// memory.

// size returns the bytes of a memory operand by its name, 0 where the name does not say.
func (c *compiler) size(name string) uint8 {
	switch name {
	case "rmv", "mv", "moffs":
		return c.in.Size
	case "rm8", "moffs8":
		return 1
	case "rm16":
		return 2
	case "rm32":
		return 4
	case "rm64":
		return 8
	case "rmy", "my":
		if c.in.Flags&x86.InstW != 0 {
			return 8
		}
		return 4
	}
	i := strings.LastIndexByte(name, 'm')
	if i < 0 {
		return 0
	}
	n, err := strconv.Atoi(name[i+1:])
	if err != nil || n < 8 || n > 512 {
		return 0
	}
	if n == 256 && c.isHalf() {
		n = 128
	}
	return uint8(n / 8)
}

// isHalf reports whether a VEX form that the table has once for both lengths is the one of
// 128 bits.
func (c *compiler) isHalf() bool { return c.in.Flags&(x86.InstVEX|x86.InstL) == x86.InstVEX }

// registers returns the parts of a register operand: those that are read, those that are
// written, and those that keep something of what they were when they are written.
func (c *compiler) registers(o *x86.Operand) (read, written, kept RegSet) {
	n := c.width(o)
	for r := range uint8(16) {
		if o.Uses.R>>r&1 == 0 {
			continue
		}
		off := 0
		if c.isHigh(o.Name) || o.Name == "rax" && (c.mnemonic == "LAHF" || c.mnemonic == "SAHF") {
			off, n = 1, 1
		}
		if n < 8 && c.mayKeep() {
			kept.Add(BytesOf(r, 0, 8))
		}
		read.Add(BytesOf(r, off, n))
		if n >= 4 {
			written.Add(BytesOf(r, 0, 8)) // four bytes clear the others
		} else {
			written.Add(BytesOf(r, off, n))
		}
	}
	c.vectors(o, &read, &written, &kept)
	misc := RegSet{MiscWord: uint64(o.Uses.K) << PartMask}
	misc.Add(FlagsOf(o.Uses.Flags))
	misc.Add(Segments(o.Uses.Parts))
	read.Add(misc)
	written.Add(misc)
	if p := Part(PartX87); o.Uses.X87 != 0 || o.Uses.Parts&x86.PartX87 != 0 {
		read.Add(p)
		written.Add(p)
		kept.Add(p)
	}
	if o.Uses.Parts&x86.PartMXCSR != 0 {
		c.mxcsr(&read, &written, &kept, o.Dir)
	}
	return read, written, kept
}

// mayKeep reports whether the instruction leaves all of a register as it was in some cases, with
// the upper half that it clears in others.
func (c *compiler) mayKeep() bool {
	switch c.mnemonic {
	case "BSF", "BSR", "LAR", "LSL", "CMPXCHG", "SMSW", "STR", "SLDT":
		return true
	}
	return false
}

// width is how many bytes of a general register an operand is.
func (c *compiler) width(o *x86.Operand) int {
	switch o.Name {
	case "al", "cl", "r8", "rm8":
		return 1
	case "ax", "rm16":
		return 2
	case "rax_v", "rv", "rmv":
		return int(c.in.Size)
	case "eax", "r32", "rm32", "r32m8", "r32m16":
		return 4
	case "rax", "rdx":
		switch c.mnemonic {
		case "MUL", "IMUL", "DIV", "IDIV", "CWD", "CMPXCHG":
			return max(int(c.in.Size), 2) // of byte operations ax is it
		}
	}
	return 8
}

// isHigh reports whether an operand of this name is ah, ch, dh or bh.
func (c *compiler) isHigh(name string) bool {
	if c.in.Flags&(x86.InstREX|x86.InstVEX|x86.InstEVEX) != 0 {
		return false
	}
	return name == "r8" && c.in.Reg&^3 == 4 || name == "rm8" && c.in.Flags&x86.InstMem == 0 && c.in.RM&^3 == 4
}

// vectors adds the lanes of vector registers.
func (c *compiler) vectors(o *x86.Operand, read, written, kept *RegSet) {
	if o.Uses.V == 0 {
		return
	}
	lanes, part := 8, false
	switch {
	case o.Name == "vec" && strings.HasPrefix(c.mnemonic, "ZERO"):
		from := 0
		if c.mnemonic == "ZEROUPPER" {
			from = 2
		}
		for n := range uint8(16) {
			written.Add(LanesOf(n, from, 8))
		}
		return
	case o.Name == "vec": // saved and restored as a whole, or in part
		part = true
	case strings.HasPrefix(o.Name, "xmm"):
		lanes = 2
		if s := c.size(o.Name); s < 16 && o.Name != "xmm" && o.Name != "xmm0" && s > 0 {
			lanes, part = 1, o.Dir&x86.DirWrite != 0 // MOVSS and MOVSD to a register
		}
	case o.Name[0] == 'y' && c.isHalf():
		lanes = 2
	case o.Name[0] == 'y':
		lanes = 4
	}
	for n := range uint8(32) {
		if o.Uses.V>>n&1 == 0 {
			continue
		}
		read.Add(LanesOf(n, 0, lanes))
		switch {
		case c.in.Flags&(x86.InstVEX|x86.InstEVEX) != 0:
			written.Add(LanesOf(n, 0, 8)) // the rest becomes zero
		case part:
			written.Add(LanesOf(n, 0, max(lanes, 2)))
			kept.Add(LanesOf(n, 0, max(lanes, 2)))
		default:
			written.Add(LanesOf(n, 0, lanes))
		}
	}
}

// mxcsr adds what floating point has of MXCSR: it is controlled by the one half and sets
// bits of the other.
func (c *compiler) mxcsr(read, written, kept *RegSet, d x86.Dir) {
	control, sticky := Part(PartControl), Part(PartSticky)
	switch {
	case d == x86.DirRead|x86.DirWrite:
		read.Add(control)
		written.Add(sticky)
		kept.Add(sticky)
		return
	case d == x86.DirRead && c.mnemonic != "STMXCSR" && !strings.Contains(c.mnemonic, "SAVE"):
		read.Add(control)
		return
	}
	control.Add(sticky)
	read.Add(control)
	written.Add(control)
	if c.mnemonic != "LDMXCSR" {
		kept.Add(control)
	}
}

// generals returns whole general registers.
func generals(r uint16) (s RegSet) {
	for n := range uint8(16) {
		if r>>n&1 != 0 {
			s.Add(BytesOf(n, 0, 8))
		}
	}
	return s
}

// Segments returns what there is of Segments in p.
func Segments(p x86.Parts) (s RegSet) {
	for i, k := range [...]x86.Parts{x86.PartSelector, x86.PartFSBase, x86.PartGSBase} {
		if p&k != 0 {
			s[MiscWord] |= 1 << (PartSelect + i)
		}
	}
	return s
}
