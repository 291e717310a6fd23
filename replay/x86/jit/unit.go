//go:build linux && amd64

package jit

import (
	"encoding/binary"
	"errors"
	"strings"

	"vplay/replay/x86"
)

// A unit is what is translated as one: instructions from one address on, up to an
// unconditional branch, an instruction that ends a block of the interpreter, a
// breakpoint, or the end of the page. It goes on behind conditional branches. An instruction that
// lies on two pages is a unit alone.

const (
	pageSize = 4096
	// maxUnit bounds the instructions of a unit. The budget of a run is kept that much
	// lower than what is left, so a unit that has been entered always fits.
	maxUnit = 64
	// maxBranches bounds the conditional branches that it goes on behind, as the
	// interpreter's blocks do: so both report the same code to CPU.OnCode.
	maxBranches = 6
)

// maxInst is the length of the longest instruction.
const maxInst = 15

// errNotAcross: no instruction that could be translated goes over the end of the page.
var errNotAcross = errors.New("no instruction on two pages")

// unit is a translated stretch of code.
type unit struct {
	id       int    // place in Engine.all
	key      uint64 // place in Engine.entries: pc, or another address for one that checks each access
	pc, end  uint64 // guest addresses
	insts    []x86.Inst
	at       []uint16 // where each begins, from pc
	host     []int    // and its code in the pool
	head     int      // where other units enter: behind this is the test for a breakpoint
	body     int      // where Go enters
	again    int      // where its own edges enter: it is marked as entered, and vector registers are the guest's
	edges    []uint32 // ways out to known addresses
	in       []uint32 // edges of all units that are linked to this one
	page     *page
	next     *page   // that an instruction at the end of page reaches into
	vectors  bool    // it uses vector registers
	sees     bool    // somebody may see the flags that it is entered with
	needs    bool    // and needs them saved
	enters   recipe  // of the flags that it is entered with, in a version
	versions []*unit // of the same code, for edges that come with a recipe
	dead     bool
	sifts    bool        // the place that a search by state looks at is in it (sift.go)
	checks   bool        // it checks some accesses because they have failed without (direct.go)
	cut      bool        // it ends where it does because of a breakpoint
	reported uint64      // OnCode was called for it when Engine.cleared was this
	trace    *tracedUnit // nil where nobody is told
	sites    [2]uint32   // numbers of its sites, from and to
}

// page is a guest page that has units.
type page struct {
	base    uint64
	id      uint64 // Bus.CodeID when they were made
	units   map[uint64]*unit
	changes int // how often id was another one
}

// site is an instruction at which generated code may leave for a handler.
type site struct {
	unit  *unit
	index int
	after int // where to go on behind the instruction; 0: nowhere
	cold  int // the way out, which saves the flags
	way   wayOut
	late  bool // that is made when it is needed (late.go)

	anchors []anchor // in use behind the instruction

	direct bool // it may fault because of a page that is not in its window
	native bool // with the guest's flags in the host's
	failed int  // how often the page could not be mapped
}

// edge is a way out of a unit to a known address.
type edge struct {
	unit   *unit
	target uint64
	jump   int    // displacement of the jump that links it
	cold   int    // where the jump leads while it is not linked
	recipe recipe // where the flags are not saved
	passed bool   // it leaves the recipe to the unit
	to     *unit

	single bool // to a unit that checks each access,
	index  int  // in front of this instruction
	entry  bool // with the flags that the unit was entered with
	failed int  // how often it came to Go
}

// decode decodes the unit at pc into t.insts and t.at, up to until if that is not 0; text is its page.
func (t *translator) decode(pc uint64, text []byte, until uint64) (end uint64) {
	t.insts, t.at, t.isCut, t.onto, t.sieveAt = t.insts[:0], t.at[:0], false, nil, noSieve
	t.words, t.wordsAt = t.words[:0], append(t.wordsAt[:0], 0)
	base, at, branches := pc&^(pageSize-1), pc, 0
	known := t.c.Decoded(pc)
	for len(t.insts) < maxUnit && at-base < pageSize && (at != until || until == 0) {
		in, err := t.instruction(known, text, at)
		if t.isCut = at != pc && t.c.HasBreakpoint(at) && (err != nil || !t.sifts(at, &in)); t.isCut || err != nil {
			break
		}
		if !t.isTold(at, &in) {
			break
		}
		t.insts = append(t.insts, in)
		t.at = append(t.at, uint16(at-pc))
		at += uint64(in.Len)
		if t.rows[in.Row].ends {
			if branches++; branches > maxBranches || !goesOn(&in, at) {
				break
			}
		}
	}
	return at
}

// instruction returns the next instruction, at address at, as the interpreter has decoded it where it has: what is hot was interpreted before.
func (t *translator) instruction(known x86.DecodedBlock, text []byte, at uint64) (x86.Inst, error) {
	if i := len(t.insts); i < known.Len() {
		return *known.At(i), nil
	}
	text = text[at&(pageSize-1):]
	in, err := x86.DecodeInst(text, at, t.c.ID)
	if err != nil && len(t.insts) == 0 && len(text)+int(at&(pageSize-1)) == pageSize {
		return t.decodeAcross(text, at)
	}
	return in, err
}

// decodeAcross decodes the instruction at pc, of which text has the bytes up to the page's end.
func (t *translator) decodeAcross(text []byte, pc uint64) (x86.Inst, error) {
	if len(text) >= maxInst {
		return x86.Inst{}, errNotAcross
	}
	base := pc&^(pageSize-1) + pageSize
	more := t.e.text(base, base)
	if more == nil {
		return x86.Inst{}, errNotAcross
	}
	if t.onto = t.e.page(t.c, base); t.onto == nil {
		return x86.Inst{}, errNotAcross
	}
	var b [maxInst]byte
	n := copy(b[:], text)
	n += copy(b[n:], more)
	return x86.DecodeInst(b[:n], pc, t.c.ID)
}

// goesOn reports whether a unit goes on behind in, which ends at end: behind a
// conditional branch that leads to a canonical address.
func goesOn(in *x86.Inst, end uint64) bool {
	return isJcc(in) && in.Size != 2 && canonical(end+in.Imm)
}

// isJcc reports whether in is a conditional branch (70 to 7F, 0F 80 to 8F).
func isJcc(in *x86.Inst) bool {
	return strings.HasPrefix(x86.Rows()[in.Row].Handler, "intJcc")
}

// canonical reports whether a is a canonical 48-bit address.
func canonical(a uint64) bool { return uint64(int64(a)<<16>>16) == a }

// worth reports whether a unit is worth translating: each instruction that goes to its
// handler costs as much as some thirty in the interpreter.
func (t *translator) worth() bool {
	handled := 0
	for i := range t.insts {
		if !t.emitted(&t.insts[i]) {
			handled++
		}
	}
	return handled <= 1+len(t.insts)/16 && handled < len(t.insts)
}

// emitted reports whether in is emitted, as far as its row tells.
func (t *translator) emitted(in *x86.Inst) bool {
	f := &t.rows[in.Row]
	if f.emit == nil || in.Flags&x86.InstAddr32 != 0 && in.Flags&x86.InstMem != 0 {
		return false
	}
	return t.e.sameCPU || !f.undefined
}

// putCache writes an entry of the jump cache.
func putCache(b []byte, i int, pc, host uint64) {
	binary.LittleEndian.PutUint64(b[16*i:], pc)
	binary.LittleEndian.PutUint64(b[16*i+8:], host)
}
