//go:build linux && amd64

package jit

import "vplay/replay/x86"

// Translation of a unit: its instructions one after the other, then what is seldom
// executed, the ways out.

// Words of CPU.Host.
const (
	wordExit         = iota // why generated code left: an exit
	wordFlags               // the guest's flags while the host's are others: OF in byte 0, as LAHF has the rest in byte 1; or the number of a recipe above
	wordBudget              // instructions left, less maxUnit
	wordStack               // Go's stack pointer
	wordCache               // address of the jump cache
	wordTarget              // guest address of an indirect branch, where the way in leads, or what PUSH from memory has loaded
	wordHost                // and the host's address of its code
	wordWindows             // which windows CPU.HostTable is of (windows.go)
	wordStackPart           // the part that the stack pointer is in, and what is added to addresses there (stack.go)
	wordStackAdded          //
	wordFault               // where generated code faulted,
	wordFaultAddress        // CR2,
	wordFaultError          // the error code (SDM volume 3, 4.7),
	wordFaultTrap           // the exception's number,
	wordFaultFlags          // and RFLAGS
	wordLive                // not 0: vector registers are the guest's
	wordWant                // not 0: they must be, where the way in leads
	wordMXCSR               // the host's
	wordLeft                // the operands of a recipe
	wordRight
	wordBack    // partial.go: where it goes on,
	wordSpill1  // registers of the guest meanwhile,
	wordSpill2  //
	wordPartial // and how many accesses there were
	wordUpper   // not 0: the upper halves of YMM registers count as in use (on Intel)
	wordLog     // address of the next word of a trace's log (trace.go)
	wordTested  // address that a condition has looked at last (condition.go)
	wordAnchor  // maxAnchors of them (reach.go)

	wordCell = wordAnchor + maxAnchors // maxCells of them (condition.go)
)

// Kinds of exit: the low two bits. The others are the number of the site or edge.
const (
	exitSite  = iota // the handler of the instruction at a site
	exitEdge         // an edge that is not linked, or out of budget behind it
	exitElse         // wordTarget has the address to go on from
	exitFault        // a fault in generated code
)

// Where the guest's registers are. Those without a register of the host stay in the
// State and pass through scratch registers.
var hostOf = [16]uint8{
	x86.RAX: r14, x86.RCX: rcx, x86.RDX: rdx, x86.RBX: rbx, x86.RSP: r13, x86.RBP: rbp, x86.RSI: rsi, x86.RDI: rdi,
	x86.R8: r8, x86.R9: r9, x86.R10: r10, x86.R11: r11, x86.R12: none, x86.R13: none, x86.R14: none, x86.R15: none,
}

const (
	scratch = rax // of everything, LAHF above all
	address = r15 // the memory operand
	budget  = r12
)

// translator makes a unit.
type translator struct {
	assembler
	e      *Engine
	c      *x86.CPU
	layout x86.HostLayout
	rows   []fact // facts()

	u     *unit
	insts []x86.Inst
	at    []uint16
	isCut bool  // of unit.cut
	onto  *page // of unit.next

	sieveAt int        // the instruction that a search by state looks at, or noSieve
	stops   []coldStop // ways out for that

	isSingle bool // each access is checked
	reaches  []reach
	members  [maxUnit]member
	sp       [maxUnit + 1]int32 // the stack pointer, from what it was when the unit was entered or it was lost sight of
	singles  []coldEdge         // ways out of checks of reaches

	direct bool // accesses are not checked (direct.go):
	bases  [16]directBase
	within int // the base register for which address has what is added, or noBase
	// changed are the guest registers that the unit has written, lookups the ways of guesses that are still to be emitted.
	changed      uint16
	checkedBases uint16 // those from which accesses are checked
	lookups      []coldLookup

	// of the instruction that is being emitted
	place memory // its memory operand, in the host's
	// isComputed says that address has what LEA computes.
	isComputed bool
	holds      int // the anchor that address holds
	i          int
	in         *x86.Inst
	f          *fact

	flags flagState
	upper uint32 // what wordUpper is known to be, and 1; 0: nothing
	ended bool   // the unit has no way on from here
	bad   bool   // somebody may look at flags that were given up: the unit must not be used

	away assembler // the place of cold code while hot code is written, and the other way round
	cool bool      // cold code is

	sites []coldSite
	ways  []coldEdge

	// Of a trace (trace.go): that of u, and what was decoded: the words of all instructions, and where those of each begin, and the end.
	trace   *tracedUnit
	words   []x86.Word
	wordsAt []uint16
	// isPlaced says that address has not been overwritten since it was made place, isStack of what; logged is how many words of
	// memory the instruction has.
	isPlaced, isStack bool
	logged            int
}

// coldSite is a site whose way out is still to be emitted.
type coldSite struct {
	id     uint32
	jumps  [3]int // jumps that lead there
	n      int
	find   int // the jump to where more is looked for in the jump cache, and where it goes on then; 0: none
	found  int
	checks [2]addressCheck // and those of address checks
	m      int
	flags  flagState // before the instruction
	resume int       // where it goes on behind the instruction, 0 nowhere
	native bool      // with the flags in the host's
	within int       // and the base register for which address has what is added
}

// coldEdge is an edge that is still to be emitted.
type coldEdge struct {
	id    uint32
	jump  int // of the conditional branch
	n     int // instructions up to there
	flags flagState
}

// word returns the operand that is word n of CPU.Host.
func (t *translator) word(n int) memory { return at(rsp, t.layout.Host+8*int32(n)) }

// guest returns the operand that is guest register n in the State.
func (t *translator) guest(n uint8) memory { return at(rsp, t.layout.R+8*int32(n)) }

// translate makes the unit at pc in p, whose bytes are text, or returns nil when it is not worth it. One that goes up to
// until, not 0, checks each access.
func (t *translator) translate(pc uint64, p *page, text []byte, enters recipe, id int, until uint64) *unit {
	end := t.decode(pc, text, until)
	if len(t.insts) == 0 || !t.e.All && !t.worth() {
		return nil
	}
	t.isSingle = until != 0
	t.u = &unit{id: id, key: pc, pc: pc, end: end, cut: t.isCut, sifts: t.sieveAt != noSieve, page: p, next: t.onto, insts: append([]x86.Inst(nil), t.insts...), at: append([]uint16(nil), t.at...)}
	if t.isSingle {
		t.u.key ^= singleKey
	}
	t.sites, t.ways, t.singles = t.sites[:0], t.ways[:0], t.singles[:0]
	t.beginTrace()
	t.flags, t.ended, t.bad, t.upper = flagState{saved: true, entry: true}, false, false, 0
	if enters.kind != noRecipe {
		t.i, t.u.enters, t.flags = 0, enters, flagState{recipe: enters}
		if !t.keeps() {
			return nil
		}
	}
	t.direct = t.e.direct && !t.isSingle
	t.findChecked()
	t.findReaches()
	t.findBases()
	t.u.sites[0] = uint32(t.e.sites.n)
	t.align()
	t.u.head = t.n
	if t.c.HasBreakpoint(pc) && !t.isSingle {
		t.passBreakpoint()
	}
	t.u.body = t.n
	t.markSeen()
	if t.u.vectors = t.usesVectors(); t.u.vectors {
		t.enterVectors()
	}
	if t.u.again = t.n; t.u.head != t.u.body {
		t.u.again = t.u.head
	}
	for i := range t.u.insts {
		t.i, t.in = i, &t.u.insts[i]
		t.f = &t.rows[t.in.Row]
		t.u.host = append(t.u.host, t.n)
		if t.i == t.sieveAt {
			t.sift()
		}
		known, lost := len(t.sites), t.loses()
		t.logWords()
		isHandled := !t.emitted(t.in) || !t.keepsStack() || !t.f.emit(t)
		if isHandled {
			t.leaveForHandler()
			t.upper = 0
		} else {
			t.logAfter()
		}
		t.afterwards(lost)
		t.losesBases(isHandled)
		for j := range t.sites[known:] {
			t.holds = noAnchor
			if s := &t.sites[known+j]; !t.ended {
				s.resume, s.native, s.within = t.n, t.flags.native, t.keptBase()
				t.e.sites.at(s.id).anchors = t.anchors()
			}
		}
	}
	if !t.ended {
		t.lastEdge(end, len(t.insts))
	}
	t.u.host = append(t.u.host, t.n)
	t.u.sites[1] = uint32(t.e.sites.n)
	t.cold()
	if t.bad {
		t.e.Stats.Bad++
		return nil
	}
	return t.u
}

// align has the next code begin at a multiple of 32, as the host fetches it.
func (t *translator) align() {
	for t.n%32 != 0 && !t.full {
		t.bytes(0x90)
	}
}

// markSeen emits the store that says that the unit was entered; see seen.go.
func (t *translator) markSeen() {
	const length = 7
	t.bytes(0xc6, 0x05) // mov byte [rip+disp32], 1
	t.imm32(uint32(t.e.seenAt(t.u.id) - len(t.e.pool.rw) - (t.n - 2 + length)))
	t.bytes(1)
}

// leaveForHandler has the handler execute the instruction.
func (t *translator) leaveForHandler() {
	t.save()
	s := t.site()
	s.jumps[0], s.n = t.jmp(), 1
	t.ended = t.f.ends
	t.handled()
}

// site returns the site of this instruction.
func (t *translator) site() *coldSite {
	if n := len(t.sites); n > 0 && t.e.sites.at(t.sites[n-1].id).index == t.i {
		return &t.sites[n-1]
	}
	t.observe()
	id := t.e.sites.add(site{unit: t.u, index: t.i})
	t.sites = append(t.sites, coldSite{id: id, flags: t.flags})
	return &t.sites[len(t.sites)-1]
}

// miss has a conditional jump lead to the way to the handler. The flags are saved, and
// nothing of the instruction has been done.
func (t *translator) miss(cond uint8) {
	jump := t.jcc(cond)
	s := t.site()
	t.bad = t.bad || t.e.sites.at(s.id).native // the way out takes them from where a fault leaves them
	s.jumps[s.n] = jump
	s.n++
}

// cold emits the ways out.
func (t *translator) cold() {
	t.toCold()
	t.coldLookups()
	t.coldStops()
	for i := range t.sites {
		s := &t.sites[i]
		for j := range s.m {
			if t.lookPartial(&s.checks[j]); j+1 < s.m {
				s.jumps[s.n] = t.jmp()
				s.n++
			}
		}
		t.findSecond(s)
		for _, j := range s.jumps[:s.n] {
			t.patch(j, t.n)
		}
		w := wayOut{flags: s.flags, resume: int32(s.resume), native: s.native, slot: -1}
		if s.within != noBase {
			w.slot = t.bases[s.within].slot
		}
		if x := t.e.sites.at(s.id); !t.later(s, x, &w) {
			t.makeWayOut(x, s.id, &w)
		}
	}
	for i := range t.singles {
		t.singleEdge(&t.singles[i])
	}
	t.toHot()
	for i := range t.ways {
		w := &t.ways[i]
		t.patch(w.jump, t.n)
		t.edgeTo(w.id, w.n, w.flags)
	}
}

// toCold has code written to where it is out of the way, so that what is executed lies close together.
func (t *translator) toCold() {
	if !t.cool {
		t.assembler, t.away, t.cool = t.away, t.assembler, true
	}
}

// toHot undoes toCold.
func (t *translator) toHot() {
	if t.cool {
		t.assembler, t.away, t.cool = t.away, t.assembler, false
	}
}

// exit leaves generated code for the reason kind, n.
func (t *translator) exit(kind int, n uint32) {
	t.load64(scratch, uint64(n<<2|uint32(kind)))
	t.jmpTo(t.e.pool.exit)
}

// The guest's flags move between the host's and memory by way of ax: LAHF has all but
// OF, and adding 7FH to OF gives it back.

// saveFlags stores the host's flags.
func (t *translator) saveFlags() {
	t.bytes(0x9f, 0x0f, 0x90, 0xc0) // lahf; seto al
	t.bytes(0x0f, 0xb7, 0xc0)       // movzx eax, ax: no recipe
	t.mem(opMovTo32, scratch, t.word(wordFlags))
}

// loadFlags loads them back.
func (t *translator) loadFlags() {
	t.mem(opMov32, scratch, t.word(wordFlags))
	t.bytes(0x04, 0x7f, 0x9e) // add al, 7FH; sahf
}
