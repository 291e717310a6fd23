package slice

import (
	"cmp"
	"slices"
	"strings"

	"vplay/checkpoint"
	"vplay/replay/x86"
)

// Control dependences in the walk: which branch led to an instruction of the slice. Who asks
// says for each instruction which branches of its function decide whether it is executed
// (Options.Controls, package controlflow); of those the one that was executed last before it is the one (Xin and
// Zhang 2007). Where none was since the function was entered, it is the call. So each
// activation has the instructions that wait for their branch, and going back over a call they
// wait for what led to the call.

// Decision is a branch that is in a slice because it led to something there, and where it
// went.
type Decision struct {
	Branch         *Vertex
	To             uint64 // the address of the instruction that was executed next
	Count          uint64
	Oldest, Newest checkpoint.Position // before the branch
}

// decisionKey tells decisions apart.
type decisionKey struct {
	vertex uint32
	to     uint64
}

// control is what the walk knows of control dependences; nil when nobody asks for them.
type control struct {
	of        func(pc uint64) []uint64
	sets      [][]uint64
	ids       map[uint64]int // of sets, by address
	known     []int          // and by instruction.code, with 1 added
	bySet     map[string]int // by what is in them
	decisions map[decisionKey]*Decision
	waiting   int
	needs     []uint32   // of the present branch
	free      [][]uint32 // memory of waiting.needs
}

// activation is a call of a function that the walk is in.
type activation struct {
	slot    uint64 // where its return address is; 0 where the walk began in it
	waiting []waiting
}

// waiting is what waits for one of a set of branches: needs are need sets, as a rule each of one vertex.
type waiting struct {
	set   int
	needs []uint32
}

// maxWaiting bounds what waits for a branch one by one. Beyond it sets are joined, which may leave out edges.
const maxWaiting = 64

// maxActivations bounds the calls that a thread is in, for recordings made to do harm.
const maxActivations = 1 << 22

// newControl returns what the walk needs for who asks for control dependences.
func newControl(of func(pc uint64) []uint64) *control {
	return &control{of: of, ids: map[uint64]int{}, bySet: map[string]int{}, decisions: map[decisionKey]*Decision{}}
}

// set returns the number of the set of branches that decide whether pc is executed.
func (c *control) set(pc uint64) int {
	n, ok := c.ids[pc]
	if !ok {
		list := c.of(pc)
		var key strings.Builder
		for _, b := range list {
			for i := range 8 {
				key.WriteByte(byte(b >> (8 * i)))
			}
		}
		if n, ok = c.bySet[key.String()]; !ok {
			n = len(c.sets)
			c.sets, c.bySet[key.String()] = append(c.sets, list), n
		}
		c.ids[pc] = n
	}
	return n
}

// setOf is set for the address of an instruction, of which the trace has many.
func (c *control) setOf(k *instruction) int {
	if i := int(k.code); i < len(c.known) && c.known[i] > 0 {
		return c.known[i] - 1
	}
	n := c.set(k.PC)
	for len(c.known) <= int(k.code) {
		c.known = append(c.known, 0)
	}
	c.known[k.code] = n + 1
	return n
}

// top returns the activation that the thread is in.
func (r *liveRegs) top() *activation {
	if len(r.calls) == 0 {
		r.calls = append(r.calls, activation{})
	}
	return &r.calls[len(r.calls)-1]
}

// waitFor has the instance of k that is n wait for the branch that led to it. PUSH and POP that keep a register for the caller,
// as functions do at their beginning and end, change nothing: what led to the call is no reason for what the register holds.
func (w *walker) waitFor(k *instruction, n *node) {
	set := w.control.setOf(k)
	if k.keeps && len(w.control.sets[set]) == 0 {
		return
	}
	w.wait(set, n.need[ForControl])
}

// wait has what needs an instruction wait for one of a set of branches.
func (w *walker) wait(set int, need uint32) {
	c, a := w.control, w.cur.top()
	for i := range a.waiting {
		x := &a.waiting[i]
		switch {
		case x.set != set:
			continue
		case slices.Contains(x.needs, need):
		case len(x.needs) < maxWaiting:
			x.needs = append(x.needs, need)
		default:
			x.needs[maxWaiting-1] = w.sets.union(x.needs[maxWaiting-1], need)
		}
		return
	}
	var needs []uint32
	if n := len(c.free); n > 0 {
		needs, c.free = c.free[n-1], c.free[:n-1]
	}
	a.waiting = append(a.waiting, waiting{set, append(needs, need)})
	c.waiting++
}

// take takes what waits in x.
func (c *control) take(x *waiting) {
	c.needs = append(c.needs, x.needs...)
	c.free = append(c.free, x.needs[:0])
	c.waiting--
}

// calledKernel has what a system call brought wait for what led to the call, which is k.
func (w *walker) calledKernel(k *instruction) {
	for _, need := range w.cur.brought {
		w.wait(w.control.setOf(k), need)
	}
	w.control.waiting -= len(w.cur.brought)
	w.cur.brought = w.cur.brought[:0]
}

// flowOfControl follows k back where it is a branch, a call or a return.
func (w *walker) flowOfControl(k *instruction, words int, at *moment) {
	ws := w.s.words[words : words+int(k.words)]
	switch k.Transfer {
	case x86.Branch:
		w.decided(k, ws, at)
	case x86.Return:
		if len(ws) > 0 && len(w.cur.calls) < maxActivations {
			w.cur.top()
			w.cur.calls = append(w.cur.calls, activation{slot: ws[0]})
		}
	case x86.Call:
		w.called(k, ws, at)
	case x86.NoTransfer, x86.Jump:
	}
}

// decided puts a branch that something waits for in the slice.
func (w *walker) decided(k *instruction, ws []uint64, at *moment) {
	a, c := w.cur.top(), w.control
	c.needs = c.needs[:0]
	a.waiting = slices.DeleteFunc(a.waiting, func(x waiting) bool {
		if !slices.Contains(c.sets[x.set], k.PC) {
			return false
		}
		c.take(&x)
		return true
	})
	w.led(k, ws, at)
}

// called leaves an activation towards its caller: what still waits there was led to by the call.
func (w *walker) called(k *instruction, ws []uint64, at *moment) {
	r, c := w.cur, w.control
	r.top()
	c.needs = c.needs[:0]
	for {
		a := r.top()
		if a.slot > ws[0] { // a call that did not return: nothing of it is in the slice
			return
		}
		isIt := a.slot == ws[0] || a.slot == 0
		for i := range a.waiting {
			c.take(&a.waiting[i])
		}
		r.calls = r.calls[:len(r.calls)-1]
		if isIt {
			break
		}
	}
	w.led(k, ws, at)
}

// led puts k in the slice because of where it went, if something needs that.
func (w *walker) led(k *instruction, ws []uint64, at *moment) {
	if len(w.control.needs) == 0 {
		return
	}
	n := w.graph.hitAll(w.vertex(k), w.control.needs, at)
	w.goOn(k, n, at)
	w.putPieces(k.Decides.Reads, n.need[ForValue])
	for _, l := range k.Decides.Loads {
		w.putMemory(ws[l], int(k.Ops[l].Size), n.need[ForValue])
	}
	key, p := decisionKey{n.id, w.cur.next}, at.position()
	d := w.control.decisions[key]
	if d == nil {
		d = &Decision{To: w.cur.next, Newest: p}
		w.control.decisions[key] = d
	}
	d.Count++
	d.Oldest = p
}

// list returns the decisions; of are the vertices by their numbers.
func (c *control) list(of map[uint32]*Vertex) (out []Decision) {
	if c == nil {
		return nil
	}
	for k, d := range c.decisions {
		if d.Branch = of[k.vertex]; d.Branch != nil {
			out = append(out, *d)
		}
	}
	slices.SortFunc(out, func(a, b Decision) int {
		return cmp.Or(b.Newest.Compare(a.Newest), cmp.Compare(a.Branch.PC, b.Branch.PC), cmp.Compare(a.To, b.To))
	})
	return out
}
