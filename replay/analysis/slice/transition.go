package slice

import (
	"math/bits"

	"vplay/replay/analysis/dataflow"
)

// What an instruction does to a slice is a function of the instruction, of what is live of the few pieces of registers that it has to do with, and
// of what is live of the memory that it writes. Turn after turn of a loop these are the same. So what was found once is kept as a
// transition of these pieces, and most of the walk looks transitions up. What they count is added to the graph when
// the walk is over (transitions.flush).

// maxPlaces is how many pieces of registers an instruction may have to do with for its transitions to be kept.
const maxPlaces = 6

// places are the pieces of registers that an instruction writes, reads and has in addresses.
type places struct {
	list [maxPlaces]uint8
	n    int8 // in list; -1: there are more
	bits uint64
}

// placesOf returns those of k.
func placesOf(k *instruction) (p places) {
	all := k.Address
	for i := range k.Flows {
		f := &k.Flows[i]
		all.Add(f.Dst)
		all.Add(f.Src)
		if f.Copies && f.From.Kind != dataflow.InMemory {
			p.bits |= 1 << pieceOf(f.From, 0).N
		}
	}
	p.bits |= all.Summary()
	for b := p.bits; b != 0; b &= b - 1 {
		if p.n == maxPlaces {
			p.n = -1
			return p
		}
		p.list[p.n] = uint8(bits.TrailingZeros64(b))
		p.n++
	}
	return p
}

// taken is what was live of the memory that an instruction wrote.
type taken struct {
	mask uint64 // of its bytes; 0: nothing
	need uint32
}

// cause is what a transition of an instruction depends on.
type cause struct {
	stored taken
	from   [maxPlaces]pieceID // of its places
}

// transition is what an instruction does to the slice for a cause.
type transition struct {
	cause
	to    [maxPlaces]pieceID
	sum   uint64 // of the instruction's places those where something is live then, as liveRegs.sum has them
	node  *node  // nil when the instruction is not in the slice
	edges []*edge
	loads []load
	count uint64 // how often it was made since the last flush
}

// load is bytes of a memory operand of an instruction that become live.
type load struct {
	word int // of the address, among the instruction's
	mask uint64
	need uint32
}

// flush adds what was counted to the graph.
func (t *transition) flush() {
	if t.node != nil {
		t.node.count += t.count
	}
	for _, e := range t.edges {
		e.count += t.count
	}
	t.count = 0
}

// transitions are those that are known, and what they are of.
type transitions struct {
	of   []known // by the numbers of instructions
	all  map[fullCause]*transition
	most int
}

// fullCause is a cause and the number of the instruction.
type fullCause struct {
	cause
	id uint32
}

// known is what is known of an instruction: the transitions that were made of late are found without the map.
type known struct {
	places
	isSet  bool
	at     uint8 // of recent, the next to be replaced
	recent [recentTransitions]*transition
}

// recentTransitions is a power of two.
const recentTransitions = 4

// maxTransitions bounds the transitions that are kept, to some 100 MB. All are forgotten beyond it.
const maxTransitions = 1 << 18

func newTransitions() *transitions { return &transitions{all: map[fullCause]*transition{}} }

// instruction returns what is known of instruction id, which is k.
func (t *transitions) instruction(k *instruction, id uint32) *known {
	if int(id) >= len(t.of) {
		t.of = append(t.of, make([]known, int(id)+1-len(t.of))...)
	}
	n := &t.of[id]
	if !n.isSet {
		n.places, n.isSet = placesOf(k), true
	}
	return n
}

// latest returns the transition that was made of late of what is live now, nil where there is none.
func (n *known) latest(now *[regPieces]pieceID, s taken) *transition {
	list := n.list[:n.n]
next:
	for _, x := range &n.recent {
		if x == nil || x.stored != s {
			continue
		}
		for i, p := range list {
			if x.from[i] != now[p] {
				continue next
			}
		}
		return x
	}
	return nil
}

// find is latest, for any transition that is known.
func (t *transitions) find(n *known, id uint32, c *cause) *transition {
	x := t.all[fullCause{*c, id}]
	if x != nil {
		n.keep(x)
	}
	return x
}

// from sets what the places of n are now.
func (n *known) from(c *cause, now *[regPieces]pieceID) {
	for i, p := range n.list[:n.n] {
		c.from[i] = now[p]
	}
}

// keep has x among the recent ones.
func (n *known) keep(x *transition) {
	n.recent[n.at] = x
	n.at = (n.at + 1) % recentTransitions
}

// flush adds what was counted to the graph.
func (t *transitions) flush() {
	for _, x := range t.all {
		x.flush()
	}
}

// forget forgets all transitions, and the pieces that are not live, when they are many, and reports whether it did.
// Pieces have other numbers then.
func (w *walker) forget() bool {
	if len(w.pieces.list) < maxPieces && len(w.transitions.all) < w.transitions.most {
		return false
	}
	w.transitions.flush()
	clear(w.transitions.all)
	for i := range w.transitions.of {
		w.transitions.of[i].recent = [recentTransitions]*transition{}
	}
	old := w.pieces.list
	w.pieces.clear()
	for _, r := range w.regs {
		for n, id := range r.pieces {
			r.pieces[n] = w.pieces.id(old[id])
		}
	}
	return true
}
