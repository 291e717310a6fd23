package x86

// A search by state (package replay: where an interval ended) puts a breakpoint
// on the one instruction its answer stands at. A loop passes there tens of
// millions of times, with nearly always one register or one word of memory
// that says no. Leaving the run loop for each would cost ten times the loop
// itself, so the search tells the processor what it looks for, and the processor
// passes by wherever that cannot be.

// Sieve is a state that is looked for at PC: general registers, vector registers
// unless V is nil, and what some words of memory hold then. A breakpoint at PC
// is passed without a stop wherever neither this state is present nor can
// iterations of the REP string instruction at PC lead to its general registers.
type Sieve struct {
	PC    uint64
	R     [16]uint64
	V     *[16]Vec
	Words []SieveWord // tested in order; a word that says no moves to the front

	at, vat uint8 // the registers that differed last
}

// SieveWord is a word of memory at the state looked for. Addr is a multiple of 8.
type SieveWord struct {
	Addr, Value uint64
}

// sifted reports whether the breakpoint on b, which is next, can be passed.
func (c *CPU) sifted(b *block) bool {
	if c.Pass != nil && c.Pass() {
		return true
	}
	s := c.Sieve
	if s == nil || s.PC != b.pc {
		return false
	}
	if i := s.at & 15; c.R[i] != s.R[i] && !b.rep {
		return true
	}
	for i := range s.R {
		if c.R[i] == s.R[i] {
			continue
		}
		if b.rep {
			return !c.repLeads(&b.insts[0].Inst, &s.R)
		}
		s.at = uint8(i)
		return true
	}
	return c.wordsDiffer(s.Words) || s.V != nil && s.vectorsDiffer(&c.V)
}

func (s *Sieve) vectorsDiffer(v *[16]Vec) bool {
	if i := s.vat & 15; v[i] != s.V[i] {
		return true
	}
	for i := range s.V {
		if v[i] != s.V[i] {
			s.vat = uint8(i)
			return true
		}
	}
	return false
}

// wordsDiffer reports whether one of ws is known not to be what memory holds. Words
// of pages that are not in the translation caches are not looked at.
func (c *CPU) wordsDiffer(ws []SieveWord) bool {
	for i := range ws {
		a := ws[i].Addr
		e := &c.rtlb[a>>12&tlbMask]
		if a-e.base > pageSize-8 {
			e = &c.wtlb[a>>12&tlbMask]
		}
		if off := a - e.base; off <= pageSize-8 && get64(e.page, off) != ws[i].Value {
			ws[0], ws[i] = ws[i], ws[0]
			return true
		}
	}
	return false
}

// RepLeads reports whether iterations of the REP string instruction at RIP can
// lead from the present registers to want, by what can be computed: rcx tells how
// many there would be, and they move rsi and rdi by the size of an operand each.
// It is false for other instructions, and when there would be none.
func (c *CPU) RepLeads(want *[16]uint64) bool {
	return c.AtRep() && c.repLeads(&c.step, want)
}

// repLeads is RepLeads for the REP string instruction in.
func (c *CPU) repLeads(in *Inst, want *[16]uint64) bool {
	if c.R[RCX] <= want[RCX] {
		return false
	}
	then := c.R
	d := (then[RCX] - want[RCX]) * uint64(in.Size)
	then[RCX] = want[RCX]
	if c.eflags&FlagDF != 0 {
		d = -d
	}
	source, dest := true, true
	switch in.Opc {
	case 0xaa, 0xab, 0xae, 0xaf: // STOS, SCAS
		source = false
	case 0xac, 0xad: // LODS
		dest = false
		then[RAX] = want[RAX]
	}
	if source {
		then[RSI] += d
	}
	if dest {
		then[RDI] += d
	}
	if in.Flags&InstAddr32 != 0 { // the upper halves become zero, or stay
		then[RSI], then[RDI] = want[RSI], want[RDI]
	}
	return then == *want
}
