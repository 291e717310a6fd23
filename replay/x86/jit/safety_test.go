//go:build linux && amd64

package jit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"vplay/dwarf/agentexpr"
	"vplay/replay/x86"
)

// oneInst returns the host instruction at an offset of code, as the decoder of guests sees it: they
// are of one architecture.
func oneInst(code []byte, at int) (x86.Inst, error) {
	return x86.DecodeInst(code[at:min(len(code), at+15)], uint64(at), host())
}

// pointer is what is known of r15, or of what an anchor keeps.
type pointer struct {
	reach int64 // so many bytes of the guest are there, behind a check
	added uint8 // it is what is added to this register of the host; none: it is not
	// inWindow says that it is an address in a window, or beside one by a guard at most.
	inWindow bool
}

// lookup is what is known of rax while a part is looked up.
type lookup struct {
	of      uint8 // al is the part of this register's address; none: it is not
	isIndex bool  // and all of rax
	isPart  bool  // it was compared with part
	part    uint8
	isEqual bool // and is that
	isAdded bool // rax is what is added to of
	isStack bool // it was compared with the part that the stack pointer is in
}

// stackMoves is what is known of the stack pointer, r13, and of what it may become. GS has what is added in its part.
type stackMoves struct {
	isUsed bool   // instructions rely on that
	inPart uint16 // the host's registers that have an address in that part
	sum    string // what r15 has, if it was made of the stack pointer by one instruction
	isNear string // such a sum, or a word of the CPU, of which it is known that it is in that part
	rax    string // what rax was loaded from,
	r15    string // and r15
}

// operand names what in adds or moves to a register.
func (s *stackMoves) operand(in *x86.Inst) string {
	other := in.RM
	switch {
	case in.Flags&x86.InstMem != 0:
		return fmt.Sprintf("[%d+%d]", in.Base, in.Disp)
	case in.Opc&2 == 0:
		other = in.Reg
	}
	switch other {
	case rax:
		return s.rax
	case r15:
		return s.r15
	}
	return fmt.Sprintf("r%d", other)
}

// add names the sum that in, an addition to register to or a LEA of it, makes of the stack pointer, which to has before.
func (s *stackMoves) add(in *x86.Inst, mnemonic string, from, to uint8) string {
	isMem := in.Flags&x86.InstMem != 0
	switch {
	case in.Size != 8:
	case mnemonic == "LEA" && in.Reg == to && in.Base == from && in.Index == x86.NoReg:
		return fmt.Sprint(in.Disp)
	case mnemonic != "ADD" && mnemonic != "SUB" || from != to || in.Opc > 3 && in.Opc != 0x29 && in.Opc != 0x2b:
		if mnemonic == "ADD" && !isMem && in.RM == to && in.Opc&^2 == 0x81 {
			return fmt.Sprint(int64(in.Imm))
		}
		if mnemonic == "SUB" && !isMem && in.RM == to && in.Opc&^2 == 0x81 {
			return fmt.Sprint(-int64(in.Imm))
		}
	case in.Opc&2 == 0 && !isMem && in.RM == to, in.Opc&2 != 0 && in.Reg == to:
		return mnemonic + s.operand(in)
	}
	return ""
}

// step follows in, which writes registers written. It returns false where the stack pointer may come to another part.
func (s *stackMoves) step(in *x86.Inst, mnemonic string, written uint16) bool {
	isMem := in.Flags&x86.InstMem != 0
	ok := true
	if written>>r13&1 != 0 && s.isUsed {
		n, err := strconv.ParseInt(s.add(in, mnemonic, r13, r13), 10, 64)
		from := in.RM
		if in.Opc&2 == 0 {
			from = in.Reg
		}
		switch {
		case err == nil && n >= -maxStackStep && n <= maxStackStep:
		case s.isNear != "" && s.add(in, mnemonic, r13, r13) == s.isNear:
		case mnemonic == "AND" && in.Size == 8 && !isMem && in.Opc&^2 == 0x81 && int64(in.Imm) < 0 && int64(in.Imm) >= -maxStackStep:
		case mnemonic == "MOV" && in.Size == 8 && !isMem && in.Opc&^2 == 0x89 && (s.inPart>>from&1 != 0 || s.isNear != "" && s.operand(in) == s.isNear):
		case mnemonic == "LEA" && in.Size == 8 && in.Base < 16 && in.Index == x86.NoReg && in.Disp == 8 && s.inPart>>in.Base&1 != 0:
		default:
			ok = false
		}
	}
	isStore := isMem && written == 0 && in.Effects().Write.Parts&x86.PartMemory != 0
	if written&^(1<<rax|1<<r15) != 0 || isStore && in.Base == x86.RSP {
		s.sum, s.isNear = "", ""
	}
	source := "?"
	if mnemonic == "MOV" && isMem && in.Size == 8 && in.Base == x86.RSP && in.Index == x86.NoReg {
		source = s.operand(in)
	}
	if written>>r15&1 != 0 {
		s.r15 = source
		isCopy := mnemonic == "MOV" && in.Size == 8 && !isMem && (in.Opc == 0x8b && in.RM == r13 || in.Opc == 0x89 && in.Reg == r13)
		switch {
		case isCopy:
			s.sum = "rsp"
		case s.sum == "rsp":
			s.sum = s.add(in, mnemonic, r15, r15)
		default:
			s.sum = s.add(in, mnemonic, r13, r15)
		}
	}
	if written>>rax&1 != 0 {
		s.rax = source
	}
	s.inPart = s.inPart&^written | 1<<r13
	return ok
}

// indexedAddress is what is known of an address with an index, of which the part is looked at in rax while r15 becomes the host's address of all but
// the index.
type indexedAddress struct {
	base         string // what the address is made of; "" for no base
	index, scale uint8
	disp         int64
	look         indexedLook
	part         uint8
	hasAdded     bool // r15 has what is added in that part,
	hasBase      bool // and the base
}

type indexedLook uint8

const (
	notIndexed   indexedLook = iota
	inRAX                    // rax is the address
	partInAL                 // al is its part
	comparedPart             // that was compared with part
	isInPart                 // and is that
)

// allows reports whether in accesses this address in its window.
func (x *indexedAddress) allows(in *x86.Inst) bool {
	return x.look == isInPart && x.hasAdded && (x.hasBase || x.base == "") && in.Base == r15 && in.Index == x.index && in.Scale == x.scale && in.Disp == x.disp
}

// step follows in, which writes registers written. constant is the number that r15 has, source what it was loaded from.
func (x *indexedAddress) step(w *windows, in *x86.Inst, mnemonic string, written uint16, constant uint64, source string) {
	isMem := in.Flags&x86.InstMem != 0
	name := fmt.Sprintf("r%d", in.Base)
	switch {
	case in.Base == x86.NoReg:
		name = ""
	case in.Base == r15:
		name = source
	}
	if mnemonic == "LEA" && in.Reg == rax && in.Size == 8 && in.Index != x86.NoReg && in.Index != rax && in.Index != r15 && name != "?" {
		*x = indexedAddress{base: name, index: in.Index, scale: in.Scale, disp: in.Disp, look: inRAX}
		return
	}
	isFirst, base := x.hasAdded && !x.hasBase, x.base
	switch {
	case x.look == inRAX && mnemonic == "RORX" && in.Reg == rax && in.RM == rax && !isMem && in.Size == 8 && in.Imm&63 == windowShift:
		x.look = partInAL
		return
	case x.look == partInAL && mnemonic == "CMP" && in.Size == 1 && in.Opc == 0x3c:
		x.look, x.part = comparedPart, uint8(in.Imm)
		return
	case x.look == comparedPart && isJcc(in) && in.Opc&15 == ifNotEqual:
		x.look, x.hasAdded = isInPart, constant != 0 && constant == w.table[x.part]
		return
	case isFirst && mnemonic == "LEA" && in.Reg == r15 && in.Base == r15 && in.Size == 8 && in.Scale == 0 && in.Disp == 0 && fmt.Sprintf("r%d", in.Index) == base,
		isFirst && mnemonic == "ADD" && in.Reg == r15 && in.Size == 8 && isMem && in.Base == x86.RSP && in.Index == x86.NoReg && fmt.Sprintf("[%d+%d]", in.Base, in.Disp) == base:
		x.hasBase = true
		return
	}
	isStore := isMem && written == 0 && in.Effects().Write.Parts&x86.PartMemory != 0
	switch {
	case written>>x.index&1 != 0, written>>rax&1 != 0 && x.look != isInPart, written>>r15&1 != 0 && x.look == isInPart,
		in.Effects().Write.Flags != 0 && x.look == comparedPart, isStore && in.Base == x86.RSP && !x.hasBase:
		*x = indexedAddress{}
	}
	for r := range uint8(16) {
		if written>>r&1 != 0 && x.base == fmt.Sprintf("r%d", r) && !x.hasBase {
			*x = indexedAddress{}
		}
	}
}

// unsafeIn returns what in the code of a unit, where the bytes of units are at offset seenAt, could touch memory that is not the guest's, or
// a state of the host that must not change; nil when there is nothing. The rules are those of
// RATIONALE.md: memory is the CPU's, by rsp, or it is [r15] behind the check, in a window, or [rax] of the jump
// cache, or beside the stack pointer where code finds the stack by the base of GS; and nothing loads rsp, or flags other than arithmetic ones.
func unsafeIn(w *windows, byGS bool, seenAt int, code []byte, from, to int) error {
	layout := x86.Layout()
	found := false // rax is an entry of the jump cache
	p, constant := pointer{added: none}, uint64(0)
	l := lookup{of: none}
	stack := stackMoves{isUsed: byGS, inPart: 1 << r13}
	indexed := indexedAddress{}
	var anchors [maxAnchors]pointer
	for at := from; at < to; {
		in, err := oneInst(code, at)
		if err != nil {
			return fmt.Errorf("offset %d: %w: % x", at-from, err, code[at:min(to, at+15)])
		}
		row := &x86.Rows()[in.Row]
		bad := func(what string) error {
			return fmt.Errorf("offset %d: %s: %s, % x", at-from, row.Mnemonic, what, code[at:at+int(in.Len)])
		}
		isBeside := in.Seg == x86.GS && in.Base < 16 && in.Index == x86.NoReg && stack.isUsed && stack.inPart>>in.Base&1 != 0
		if in.Seg != x86.NoSeg && !isBeside || in.Flags&x86.InstLock != 0 {
			return bad("a prefix that must not be there")
		}
		e := in.Effects()
		if e.Write.R&(1<<x86.RSP) != 0 {
			return bad("changes the stack pointer")
		}
		if e.Write.Flags&^arithmetic != 0 || e.Write.Parts&(x86.PartFSBase|x86.PartGSBase|x86.PartSelector) != 0 {
			return bad("changes flags or segments")
		}
		isMem := (e.Read.Parts|e.Write.Parts)&x86.PartMemory != 0
		isTable := isMem && in.Base == x86.RSP && in.Index == rax && in.Scale == 3 && in.Disp == int64(layout.HostTable)
		isNear := in.Disp >= -maxDisp && in.Disp <= maxDisp
		switch {
		case !isMem:
		case in.Flags&x86.InstMem == 0:
			return bad("implied memory")
		case isTable && !l.isIndex:
			return bad("a table whose index may be any")
		case isBeside && isNear:
		case in.Seg != x86.NoSeg:
			return bad("far from the stack")
		case in.Base == x86.RSP:
		case in.Base == r15 && in.Index == x86.NoReg && in.Disp >= 0 && in.Disp+sizeOfAccess(&in) <= p.reach:
		case in.Base == r15 && in.Index == x86.NoReg && p.inWindow && isNear:
		case in.Base == r15 && in.Index == p.added && p.added != none && in.Scale == 0 && isNear:
		case indexed.allows(&in):
		case marks(&in, row, seenAt):
		case in.Base == rax && in.Index == x86.NoReg && (in.Disp == 0 || in.Disp == 8 || in.Disp == secondAt) && found && e.Write.Parts&x86.PartMemory == 0:
		default:
			return bad("memory that was not checked")
		}
		// What is at a base register moves with it by little, or is lost.
		moves := row.Mnemonic == "LEA" && in.Base == in.Reg && in.Index == x86.NoReg && in.Size == 8 && isNear ||
			(row.Mnemonic == "ADD" || row.Mnemonic == "SUB") && in.Flags&x86.InstMem == 0 && in.Size == 8 && in.Opc&^2 == 0x81 && int64(in.Imm) >= -maxDisp && int64(in.Imm) <= maxDisp
		if !moves {
			if p.added != none && e.Write.R>>p.added&1 != 0 {
				p.added = none
			}
			for i := range anchors {
				if r := anchors[i].added; r != none && e.Write.R>>r&1 != 0 {
					anchors[i] = pointer{added: none}
				}
			}
		}
		indexed.step(w, &in, row.Mnemonic, e.Write.R, constant, stack.r15)
		if !stack.step(&in, row.Mnemonic, e.Write.R) {
			return bad("leads the stack pointer to another part")
		}
		// An addition to r15 from the translation cache makes it a host's address; one to rax from
		// wordCache the entry of the jump cache. Any other write undoes that.
		cache := in.Flags&x86.InstMem != 0 && in.Base == x86.RSP
		word := (in.Disp - int64(layout.Host)) / 8
		anchor := word - wordAnchor
		isAnchor := row.Mnemonic == "MOV" && cache && in.Index == x86.NoReg && in.Reg == r15 && anchor >= 0 && anchor < maxAnchors
		if isAnchor && e.Write.R == 0 {
			anchors[anchor] = p
		} else if cache && e.Write.Parts&x86.PartMemory != 0 && anchor >= 0 && anchor < maxAnchors {
			return bad("changes an anchor")
		}
		number, isNumber := in.Imm, row.Mnemonic == "MOV" && in.Flags&x86.InstMem == 0 && e.Read.R == 0
		if isNumber && in.Size == 4 {
			number = uint64(uint32(number))
		}
		switch {
		case e.Write.R&(1<<r15) == 0:
		case isAnchor:
			p = anchors[anchor]
		case row.Mnemonic == "LEA" && in.Base == r15 && in.Index == rax && in.Scale == 0 && in.Disp == 0 && l.isAdded && l.of == r15:
			p = pointer{added: none, inWindow: true}
		case row.Mnemonic == "LEA" && in.Base == r15 && in.Index == x86.NoReg && in.Disp >= 0: // for a test of its low bits
			p = pointer{reach: p.reach - in.Disp, added: none}
		case row.Mnemonic == "ADD" && cache && in.Index == rax:
			p = pointer{reach: checkBefore(code, from, at), added: none}
		case row.Mnemonic == "MOV" && isTable && l.isIndex:
			p = pointer{added: l.of}
		case isNumber:
			_, ok := w.guest(number)
			p = pointer{added: none, inWindow: ok}
		default:
			p = pointer{added: none}
		}
		if e.Write.R&(1<<r15) != 0 {
			constant = 0
			if isNumber {
				constant = number
			}
			if l.of == r15 {
				l = lookup{of: none}
			}
		}
		switch {
		case row.Mnemonic == "RORX" && in.Reg == rax && in.Size == 8 && in.Imm&63 == windowShift:
			if l = (lookup{of: in.RM}); in.RM == rax {
				l.of = none // see indexedAddress
			}
		case row.Mnemonic == "MOVZX" && in.Reg == rax && in.RM == rax && in.Size == 4 && in.Flags&x86.InstMem == 0:
			l.isIndex = true
		case row.Mnemonic == "CMP" && in.Size == 1 && in.Opc == 0x3c && l.of != none && !l.isAdded:
			l.part, l.isPart, l.isStack = uint8(in.Imm), true, false
		case row.Mnemonic == "CMP" && in.Size == 1 && in.Opc == 0x3a && in.Reg == rax && cache && in.Index == x86.NoReg && word == wordStackPart && l.of != none:
			l.isStack, l.isPart = true, false
		case isJcc(&in) && in.Opc&15 == ifNotEqual && l.isStack:
			stack.inPart |= 1 << l.of
			if l.of == r15 {
				if stack.isNear = stack.sum; stack.sum == "" && stack.r15 != "?" {
					stack.isNear = stack.r15
				}
			}
		case isJcc(&in) && in.Opc&15 == ifNotEqual && l.isPart:
			l.isEqual = true
			if constant != 0 && l.of != r15 && constant == w.table[l.part] {
				p.added = l.of
			}
		case row.Mnemonic == "MOV" && isTable && in.Reg == rax:
			l.isAdded, l.isIndex = l.isIndex, false
		case isNumber && e.Write.R == 1<<rax && l.isEqual && number == w.table[l.part]:
			l.isAdded = true
		case e.Write.R&(1<<rax) != 0, l.of != none && e.Write.R>>l.of&1 != 0:
			l = lookup{of: none}
		case e.Write.Flags != 0:
			l.isPart, l.isStack = false, false
		}
		if e.Write.R&(1<<rax) != 0 {
			isSecond := row.Mnemonic == "LEA" && in.Base == rax && in.Index == x86.NoReg && in.Disp == secondAt && found
			found = isSecond || row.Mnemonic == "ADD" && cache && in.Index == x86.NoReg && in.Disp == int64(layout.Host+8*wordCache)
		}
		at += int(in.Len)
	}
	return nil
}

// marks reports whether in stores 1 to the byte of a unit.
func marks(in *x86.Inst, row *x86.Row, seenAt int) bool {
	return row.Mnemonic == "MOV" && in.Opc == 0xc6 && in.Base == x86.RIPReg && in.Imm == 1 && in.Disp >= int64(seenAt) && in.Disp < int64(seenAt+maxUnits)
}

// checkBefore returns n when the check of n bytes at r15 stands right before at, else 0: cmp r15, 4096-n; ja.
func checkBefore(code []byte, from, at int) int64 {
	if at-from < 13 {
		return 0
	}
	b := code[at-13 : at]
	if !bytes.Equal(b[:3], []byte{0x49, 0x81, 0xff}) || b[7] != 0x0f || b[8] != 0x87 {
		return 0
	}
	return pageSize - int64(binary.LittleEndian.Uint32(b[3:]))
}

// sizeOfAccess returns how many bytes in accesses in memory.
func sizeOfAccess(in *x86.Inst) int64 {
	t := translator{in: in, f: &facts()[in.Row]}
	if t.f.isVectors {
		return int64(t.vectorSize())
	}
	return int64(t.memorySize())
}

// TestTranslationsAreSafe translates random bytes, and random instructions of all rows, and looks
// at all the code that comes out.
func TestTranslationsAreSafe(t *testing.T) {
	t.Run("checks", func(t *testing.T) { translationsAreSafe(t, false, false) })
	t.Run("windows", func(t *testing.T) { translationsAreSafe(t, true, false) })
	t.Run("windows without GS", func(t *testing.T) { translationsAreSafe(t, true, true) })
}

// translationsAreSafe looks at code that makes accesses without checks or with them, and finds the stack by the base of GS or not: code is only made
// here, so the host need not allow that.
func translationsAreSafe(t *testing.T, direct, noGS bool) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	n := 5000
	if testing.Short() {
		n = 1000
	}
	rng := rand.New(rand.NewPCG(5, 6))
	bus := &textBus{}
	c := x86.New(bus, host())
	e := pool.Engine(c)
	defer e.Close()
	e.NoGS = noGS
	e.Eager()
	begin(e)
	c.SetEngine(e)
	if e.direct = direct; direct {
		for _, a := range []uint64{textAt, inStack} {
			if !e.windows.open(a) && !e.windows.has(a) {
				t.Fatal("no window")
			}
		}
	}
	longest := 0
	for i := range n {
		e.drop()
		clear(e.checked)
		if direct && i%3 == 0 { // some are checked all the same
			for range 200 {
				e.checked[textAt+uint64(rng.IntN(pageSize))] = true
			}
		}
		for r := range c.R {
			c.R[r] = []uint64{textAt, inStack, 3 << windowShift}[rng.IntN(3)]
		}
		for j := range bus.text {
			bus.text[j] = byte(rng.Uint32())
		}
		if i%2 == 0 {
			fillWithRows(rng, bus.text[:])
		}
		pc := uint64(textAt + rng.IntN(64))
		c.SetBreakpoints(nil)
		if i%4 == 1 {
			r := &randomCondition{Rand: rng}
			r.value(3)
			r.Op(agentexpr.End)
			c.SetBreakpoints([]uint64{pc})
			c.Conditions = &x86.Conditions{At: map[uint64][][]byte{pc: {r.Code}}}
		}
		u := e.make(c, pc, 0)
		if u == nil {
			continue
		}
		seenAt := e.seenAt(0) - len(e.pool.rw)
		err := unsafeIn(e.windows, direct && !noGS, seenAt, e.pool.rw, u.head, e.t.n)
		if err == nil {
			err = unsafeIn(e.windows, direct && !noGS, seenAt, e.pool.rw, e.away, e.t.away.n)
		}
		for id := u.sites[0]; id < u.sites[1] && err == nil; id++ {
			if x := e.sites.at(id); x.late {
				end := e.makeLate(x, id)
				longest = max(longest, end-x.cold)
				err = unsafeIn(e.windows, direct && !noGS, seenAt, e.pool.rw, x.cold, end)
			}
		}
		if err != nil {
			t.Fatalf("%v\nof the unit at %#x of % x", err, pc, bus.text[pc-textAt:u.end-textAt])
		}
	}
	if e.Stats.Units < uint64(n)/4 {
		t.Errorf("only %d units of %d tries", e.Stats.Units, n)
	}
	if direct && (longest == 0 || longest > lateSize/2) {
		t.Errorf("ways out that are made late have up to %d bytes of %d", longest, lateSize)
	}
	t.Logf("%+v", e.Stats)
}

// inStack is an address in the part of stacks and libraries.
const inStack = 0x7fff_1234_5000

// TestUnsafeIsFound: the look at the code finds what it is for.
func TestUnsafeIsFound(t *testing.T) {
	check := []byte{0x49, 0x81, 0xff, 0xf8, 0x0f, 0, 0, 0x0f, 0x87, 0, 0, 0, 0, 0x4c, 0x03, 0xbc, 0x04, 0, 1, 0, 0} // cmp r15, 4088; ja; add r15, [rsp+rax+256]
	const seenAt = 1 << 20
	w := &windows{}
	for i := range w.table {
		w.table[i] = uint64(i) << 20
	}
	table := binary.LittleEndian.AppendUint32(nil, uint32(x86.Layout().HostTable))
	rotate := []byte{0xc4, 0xe3, 0xfb, 0xf0, 0xc2, windowShift}                                      // rorx rax, rdx, 40
	found := append(append(bytes.Clone(rotate), 0x0f, 0xb6, 0xc0, 0x4c, 0x8b, 0xbc, 0xc4), table...) // movzx eax, al; mov r15, [rsp+8*rax+table]
	guess := func(part byte) []byte {                                                                // mov r15, 5<<20; rorx; cmp al, part; jne
		b := append([]byte{0x49, 0xbf, 0, 0, 0x50, 0, 0, 0, 0, 0}, rotate...)
		return append(b, 0x3c, part, 0x0f, 0x85, 0, 0, 0, 0)
	}
	guessed, wrong := guess(5), guess(6)
	stackPart := binary.LittleEndian.AppendUint32(nil, uint32(x86.Layout().Host+8*wordStackPart))
	beside := append([]byte{0x3a, 0x84, 0x24}, append(bytes.Clone(stackPart), 0x0f, 0x85, 0, 0, 0, 0)...) // cmp al, [rsp+wordStackPart]; jne
	rbpBeside := append([]byte{0xc4, 0xe3, 0xfb, 0xf0, 0xc5, windowShift}, beside...)                     // rorx rax, rbp, 40
	sum := append([]byte{0x4d, 0x89, 0xef, 0x4c, 0x29, 0xcf, 0xc4, 0xc3, 0xfb, 0xf0, 0xc7, windowShift}, beside...)
	copy(sum[3:], []byte{0x4d, 0x29, 0xcf}) // mov r15, r13; sub r15, r9; rorx rax, r15, 40
	// lea rax, [rdx+8*rcx+16]; mov r15, 5<<20; rorx rax, rax, 40; cmp al, part; jne; lea r15, [r15+rdx]
	indexed := func(part byte, more ...byte) []byte {
		b := append([]byte{0x48, 0x8d, 0x44, 0xca, 0x10, 0x49, 0xbf, 0, 0, 0x50, 0, 0, 0, 0, 0, 0xc4, 0xe3, 0xfb, 0xf0, 0xc0, windowShift, 0x3c, part}, more...)
		return append(b, 0x0f, 0x85, 0, 0, 0, 0)
	}
	based := append(indexed(5), 0x4d, 0x8d, 0x3c, 0x17)
	for _, x := range []struct {
		name string
		code []byte
		ok   bool
	}{
		{"mov rbx, [r15+8*rcx+16] that was looked at", append(bytes.Clone(based), 0x49, 0x8b, 0x5c, 0xcf, 0x10), true},
		{"and again", append(bytes.Clone(based), 0x49, 0x8b, 0x5c, 0xcf, 0x10, 0x49, 0x8b, 0x5c, 0xcf, 0x10), true},
		{"mov rcx, [r15+8*rcx+16], and again", append(bytes.Clone(based), 0x49, 0x8b, 0x4c, 0xcf, 0x10, 0x49, 0x8b, 0x5c, 0xcf, 0x10), false},
		{"mov rbx, [r15+8*rcx+24] where 16 was looked at", append(bytes.Clone(based), 0x49, 0x8b, 0x5c, 0xcf, 0x18), false},
		{"mov rbx, [r15+4*rcx+16] where 8 was looked at", append(bytes.Clone(based), 0x49, 0x8b, 0x5c, 0x8f, 0x10), false},
		{"mov rbx, [r15+8*rbp+16] where rcx was looked at", append(bytes.Clone(based), 0x49, 0x8b, 0x5c, 0xef, 0x10), false},
		{"mov rbx, [r15+8*rcx+16] of another part", append(append(indexed(6), 0x4d, 0x8d, 0x3c, 0x17), 0x49, 0x8b, 0x5c, 0xcf, 0x10), false},
		{"mov rbx, [r15+8*rcx+16] behind inc ecx", append(bytes.Clone(based), 0xff, 0xc1, 0x49, 0x8b, 0x5c, 0xcf, 0x10), false},
		{"mov rbx, [r15+8*rcx+16] behind inc edx", append(append(indexed(5), 0xff, 0xc2, 0x4d, 0x8d, 0x3c, 0x17), 0x49, 0x8b, 0x5c, 0xcf, 0x10), false},
		{"mov rbx, [r15+8*rcx+16] without its base", append(indexed(5), 0x49, 0x8b, 0x5c, 0xcf, 0x10), false},
		{"mov rbx, [r15+8*rcx+16] with another base", append(append(indexed(5), 0x4d, 0x8d, 0x3c, 0x1f), 0x49, 0x8b, 0x5c, 0xcf, 0x10), false},
		{"mov rbx, [r15+8*rcx+16] behind another comparison", append(append(indexed(5, 0x39, 0xd2), 0x4d, 0x8d, 0x3c, 0x17), 0x49, 0x8b, 0x5c, 0xcf, 0x10), false},
		{"mov rcx, [r15] behind the check", append(bytes.Clone(check), 0x49, 0x8b, 0x0f), true},
		{"mov rcx, [rsp+8]", []byte{0x48, 0x8b, 0x4c, 0x24, 0x08}, true},
		{"mov rcx, [r15]", []byte{0x49, 0x8b, 0x0f}, false},
		{"mov rcx, [r15+8] behind the check", append(bytes.Clone(check), 0x49, 0x8b, 0x4f, 0x08), false},
		{"mov cl, [r15+7] behind the check", append(bytes.Clone(check), 0x41, 0x8a, 0x4f, 0x07), true},
		{"mov rcx, [r15-1] behind the check", append(bytes.Clone(check), 0x49, 0x8b, 0x4f, 0xff), false},
		{"mov rcx, [r15] behind the check and a change", append(bytes.Clone(check), 0x49, 0xff, 0xc7, 0x49, 0x8b, 0x0f), false},
		{"mov rcx, [r15+rdx] in its window", append(bytes.Clone(found), 0x49, 0x8b, 0x0c, 0x17), true},
		{"mov rcx, [r15+rbx] in another's", append(bytes.Clone(found), 0x49, 0x8b, 0x0c, 0x1f), false},
		{"mov rcx, [r15] without what it is added to", append(bytes.Clone(found), 0x49, 0x8b, 0x0f), false},
		{"mov rcx, [r15+rdx] in its window, moved by little", append(bytes.Clone(found), 0x48, 0x83, 0xc2, 0x08, 0x49, 0x8b, 0x0c, 0x17), true},
		{"mov rcx, [r15+rdx] in its window, and a change", append(bytes.Clone(found), 0x48, 0x03, 0xd3, 0x49, 0x8b, 0x0c, 0x17), false},
		{"mov rcx, [r15+rdx+2^30]", append(bytes.Clone(found), 0x49, 0x8b, 0x8c, 0x17, 0, 0, 0, 0x40), false},
		{"mov rcx, [r15+rdx] as guessed", append(bytes.Clone(guessed), 0x49, 0x8b, 0x0c, 0x17), true},
		{"mov rcx, [r15+rdx] as guessed, without a look", append(bytes.Clone(guessed[:16]), 0x49, 0x8b, 0x0c, 0x17), false},
		{"mov rcx, [r15+rdx] as guessed of another part", append(bytes.Clone(wrong), 0x49, 0x8b, 0x0c, 0x17), false},
		{"mov r15, [rsp+8*rax+table] with any index", found[9:], false},
		{"mov byte [rip], 1, of a unit", []byte{0xc6, 0x05, 0, 0, 0x10, 0, 1}, true},
		{"mov byte [rip], 2, of a unit", []byte{0xc6, 0x05, 0, 0, 0x10, 0, 2}, false},
		{"mov byte [rip], 1, of none", []byte{0xc6, 0x05, 0, 0, 0, 0, 1}, false},
		{"mov rcx, [rdx]", []byte{0x48, 0x8b, 0x0a}, false},
		{"mov rcx, fs:[rsp]", []byte{0x64, 0x48, 0x8b, 0x0c, 0x24}, false},
		{"mov rcx, gs:[r13+8]", []byte{0x65, 0x49, 0x8b, 0x4d, 0x08}, true},
		{"mov rcx, gs:[r13+2^30]", []byte{0x65, 0x49, 0x8b, 0x8d, 0, 0, 0, 0x40}, false},
		{"mov rcx, gs:[r13+rdx]", []byte{0x65, 0x49, 0x8b, 0x4c, 0x15, 0}, false},
		{"mov rcx, gs:[rbp]", []byte{0x65, 0x48, 0x8b, 0x4d, 0}, false},
		{"mov rcx, gs:[rbp] beside the stack", append(bytes.Clone(rbpBeside), 0x65, 0x48, 0x8b, 0x4d, 0), true},
		{"mov rcx, gs:[rbx] beside the stack where rbp is", append(bytes.Clone(rbpBeside), 0x65, 0x48, 0x8b, 0x0b), false},
		{"mov rcx, gs:[rbp] that was looked at and changed", append(bytes.Clone(rbpBeside), 0x48, 0x01, 0xd5, 0x65, 0x48, 0x8b, 0x4d, 0), false},
		{"sub r13, 16", []byte{0x49, 0x83, 0xed, 0x10}, true},
		{"sub r13, 65536", []byte{0x49, 0x81, 0xed, 0, 0, 1, 0}, false},
		{"and r13, -16", []byte{0x49, 0x83, 0xe5, 0xf0}, true},
		{"and r13, 16", []byte{0x49, 0x83, 0xe5, 0x10}, false},
		{"mov r13, rbp", []byte{0x49, 0x89, 0xed}, false},
		{"mov r13, rbp beside the stack", append(bytes.Clone(rbpBeside), 0x49, 0x89, 0xed), true},
		{"mov r13, rbx, where rbp is beside the stack", append(bytes.Clone(rbpBeside), 0x49, 0x89, 0xdd), false},
		{"mov r13, rax", []byte{0x49, 0x89, 0xc5}, false},
		{"mov r13d, ebp beside the stack", append(bytes.Clone(rbpBeside), 0x41, 0x89, 0xed), false},
		{"lea r13, [rbp+8] beside the stack", append(bytes.Clone(rbpBeside), 0x4c, 0x8d, 0x6d, 0x08), true},
		{"sub r13, r9", []byte{0x4d, 0x29, 0xcd}, false},
		{"sub r13, r9, the sum of which was looked at", append(bytes.Clone(sum), 0x4d, 0x29, 0xcd), true},
		{"add r13, r9, the difference of which was looked at", append(bytes.Clone(sum), 0x4d, 0x01, 0xcd), false},
		{"sub r13, r8, where that of r9 was looked at", append(bytes.Clone(sum), 0x4d, 0x29, 0xc5), false},
		{"sub r13, r9, which has been changed", append(bytes.Clone(sum), 0x49, 0xff, 0xc1, 0x4d, 0x29, 0xcd), false},
		{"mov rsp, rax", []byte{0x48, 0x89, 0xc4}, false},
		{"push rax", []byte{0x50}, false},
		{"popf", []byte{0x9d}, false},
		{"std", []byte{0xfd}, false},
		{"movsb", []byte{0xa4}, false},
		{"mov [rax], rcx", []byte{0x48, 0x89, 0x08}, false},
	} {
		if err := unsafeIn(w, true, seenAt, x.code, 0, len(x.code)); (err == nil) != x.ok {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// fillWithRows fills text with instructions of the rows that are emitted, with random operands.
func fillWithRows(rng *rand.Rand, text []byte) {
	rows := x86.Rows()
	var at int
	for at < len(text)-32 {
		if rng.IntN(32) == 0 {
			w := flagWriter{Rand: rng}
			w.moveStack()
			at += copy(text[at:], w.code)
			continue
		}
		i := 1 + rng.IntN(len(rows)-1)
		enc := &rows[i].Encoding
		if facts()[i].emit == nil || enc.VEX {
			continue
		}
		b := text[at:at:len(text)]
		switch enc.Prefix {
		case x86.Prefix66:
			b = append(b, 0x66)
		case x86.PrefixF2:
			b = append(b, 0xf2)
		case x86.PrefixF3:
			b = append(b, 0xf3)
		case x86.PrefixAny, x86.PrefixNP:
		}
		if rng.IntN(2) == 0 {
			b = append(b, 0x40|byte(rng.IntN(16)))
		}
		b = append(b, [][]byte{{}, {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}}[enc.Map]...)
		b = append(b, enc.Opcode)
		if enc.Digit >= 0 {
			b = append(b, byte(rng.Uint32())&0xc7|byte(enc.Digit)<<3)
		}
		in, err := x86.DecodeInst(text[at:], textAt, host())
		if err != nil || in.Flags&x86.InstEnd != 0 && rng.IntN(4) != 0 {
			for k := range b {
				text[at+k] = byte(rng.Uint32())
			}
			continue
		}
		at += int(in.Len)
	}
}

const textAt = 0x10000

// textBus is a page of code and nothing else.
type textBus struct{ text [pageSize]byte }

func (b *textBus) Translate(a uint64, k x86.Access) (*[pageSize]byte, bool) {
	if a != textAt || k == x86.Store {
		return nil, false
	}
	return &b.text, true
}

func (b *textBus) Probe(a uint64, _ int, k x86.Access) x86.Fault {
	return x86.Fault{Kind: x86.FaultNotMapped, Access: k, Addr: a}
}

func (b *textBus) Read(a uint64, p []byte) x86.Fault  { return b.Probe(a, len(p), x86.Load) }
func (b *textBus) Write(a uint64, p []byte) x86.Fault { return b.Probe(a, len(p), x86.Store) }

func (b *textBus) Fetch(a uint64, p []byte) (int, x86.Fault) {
	if a < textAt || a >= textAt+pageSize {
		return 0, b.Probe(a, 1, x86.Exec)
	}
	return copy(p, b.text[a-textAt:]), x86.Fault{}
}

func (b *textBus) CodeID(uint64) uint64 { return 1 }
