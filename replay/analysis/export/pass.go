package export

import (
	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay/analysis/heap"
	"vplay/replay/debug"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// One interval: each run of instructions is counted at the node of the tree whose function it is of. Where the interval stands in a
// tree of its own, what led to its beginning is left open (root) and found when intervals are joined, in join.go.

// how is how a run may end, as far as calls go.
type how uint8

const (
	goesOn  how = iota
	calls       // CALL
	returns     // RET
	leaves      // an indirect JMP
)

// runInfo is what is known of the code at an address.
type runInfo struct {
	place   place
	fn      int32
	n       int
	ends    how
	loads   bool // it has an instruction that loads the stack pointer
	alloc   *heap.Function
	maps    int      // the memory map that it is known in, by number
	offsets []uint16 // of the instructions, and of the end
	counts  []count  // by the number of instructions executed, from 1
}

// count is the counter of a run that was looked for last.
type count struct {
	id   uint32 // of the run, above 0
	node int32
	at   uint32
}

// counted is a run of the first n instructions of an info.
type counted struct {
	info *runInfo
	n    int
}

const (
	maxInfos  = 1 << 22
	maxCounts = 1 << 26
)

// pass is the walk through one interval.
type pass struct {
	w     *walk
	tree  *tree
	roots []root // nil: the walk's tree is the pass's own

	names   names
	allocs  map[uint64]*heap.Function
	view    *observe.View
	maps    int
	isOwn   bool // tree and threads are those of the interval alone
	infos   []*runInfo
	byPC    map[uint64]uint32 // index in infos, of blocks; and with ^ of single instructions
	runs    []counted
	index   map[uint64]uint32 // node and run, to the index of counters
	keys    []uint64
	totals  []uint64
	threads map[int32]*thread
	cur     *thread
	args    arguments // at the start of the run
	retired uint64    // counted
	next    uint64    // where the program goes on
	err     error
	unwound int
	was     struct{ sp, pc uint64 } // before the event that is applied
	exited  []int32                 // threads

	follower follower // nil: nobody follows calls
	events   watcher  // nil: nobody looks at events
}

// watcher is told of events, before and behind each.
type watcher interface {
	before(v *observe.View, e *checkpoint.Event)
	applied(v *observe.View, e *checkpoint.Event)
}

// begin prepares for the interval at whose start v is.
func (p *pass) begin(v *observe.View) {
	p.view = v
	p.remap()
	p.next = v.CPU().RIP
	p.use(v.TID())
}

// use makes a thread the one that runs.
func (p *pass) use(tid checkpoint.TID) {
	c := p.view.CPU()
	p.args = argumentsOf(c)
	t := p.threads[int32(tid)]
	if t == nil {
		t = &thread{tid: int32(tid), sp: c.R[x86.RSP]}
		p.threads[t.tid] = t
		if p.isOwn && !p.w.isFirst(p.view.Machine().Interval()) {
			p.open(t, root{tid: t.tid})
		} else {
			t.stack = p.unwind()
		}
		p.settle(t)
	}
	p.cur = t
}

// settle has t's fields be those of its top frame.
func (p *pass) settle(t *thread) {
	f := t.stack.top()
	t.slot, t.node, t.fn = f.slot, f.node, -1
	if f.node != 0 {
		t.fn = p.tree.nodes[f.node].fn
	}
}

// open gives t a stack below a new root.
func (p *pass) open(t *thread, r root) {
	p.roots = append(p.roots, r)
	t.stack = newStack(len(p.roots)-1, ^int32(len(p.roots)-1))
	if r.goesOn {
		t.stack.high = r.sp
	}
}

// maxUnwound is how often stacks of an interval are unwound.
const maxUnwound = 1 << 12

// unwind returns the stack of the thread that runs as its unwind tables have it.
func (p *pass) unwind() *stack {
	s := newStack(-1, 0)
	c := p.view.CPU()
	s.high = c.R[x86.RSP]
	if p.unwound++; p.unwound > maxUnwound {
		return s
	}
	regs := loader.Regs(&c.State)
	list := p.names.res.Backtrace(&regs, maxDepth)
	slotted := len(list) > 1
	for i := len(list) - 1; i >= 0; i-- {
		f := s.top()
		if i < len(list)-1 {
			up := &list[i+1]
			slot := up.Regs.V[7] - 8
			at, _ := p.names.at(up.PC)
			s.frames = append(s.frames, frame{slot: slot, parent: f.node, site: at})
			f = s.top()
			s.high = max(s.high, slot+8)
		}
		if i > 0 {
			_, fn := p.names.at(list[i].PC)
			if list[i].Signal {
				fn = fnSignal
			}
			f.node = p.tree.child(f.parent, f.site, fn)
		}
	}
	if !slotted {
		s.high = c.R[x86.RSP]
	}
	return s
}

// remap looks at the memory map anew.
func (p *pass) remap() {
	m := p.view.Machine()
	p.maps++
	if p.names.res != nil {
		p.w.limited(p.names.res.Limited())
	}
	p.names = p.w.namesOf(m, debug.Regions(p.w.s.Rec, m.Mem))
	p.allocs = p.names.entries()
	p.byPC = map[uint64]uint32{}
}

// info returns what is known of the code of a run.
func (p *pass) info(r *x86.Run) *runInfo {
	if i := *r.Tag; i != 0 && p.infos[i].maps == p.maps {
		return p.infos[i]
	}
	key := r.PC
	if r.Len() == 1 { // a single instruction may be part of a block that begins there, too
		key = ^key
	}
	if i, ok := p.byPC[key]; ok && p.infos[i].is(r) {
		*r.Tag = i
		return p.infos[i]
	}
	if len(p.infos) >= maxInfos {
		p.stop(errTooMuchCode)
	}
	i := uint32(len(p.infos))
	n := p.newInfo(r)
	p.infos = append(p.infos, n)
	p.byPC[key], *r.Tag = i, i
	return n
}

// is reports whether k is the code of r.
func (k *runInfo) is(r *x86.Run) bool {
	if k.n != r.Len() {
		return false
	}
	at := 0
	for i := range k.n {
		at += int(r.Inst(i).Len)
		if at != int(k.offsets[i+1]) {
			return false
		}
	}
	return k.ends == ending(r.Inst(k.n-1))
}

func ending(in *x86.Inst) how {
	switch x86.Rows()[in.Row].Mnemonic {
	case "CALL":
		return calls
	case "RET":
		return returns
	case "JMP":
		if len(x86.Rows()[in.Row].Operands) > 0 && x86.Rows()[in.Row].Operands[0] == "rmv" {
			return leaves
		}
	}
	return goesOn
}

// newInfo makes what is known of the code of r.
func (p *pass) newInfo(r *x86.Run) *runInfo {
	k := &runInfo{n: r.Len(), maps: p.maps, offsets: []uint16{0}, alloc: p.allocs[r.PC]}
	k.place, k.fn = p.names.at(r.PC)
	k.counts = make([]count, k.n+1)
	at := uint16(0)
	for i := range k.n {
		in := r.Inst(i)
		at += uint16(in.Len)
		k.offsets = append(k.offsets, at)
		k.loads = k.loads || loadsStack(in)
	}
	k.ends = ending(r.Inst(k.n - 1))
	return k
}

// loadsStack reports whether an instruction may give the stack pointer a value that is not near the one it had.
func loadsStack(in *x86.Inst) bool {
	row := &x86.Rows()[in.Row]
	switch row.Mnemonic {
	case "MOV", "XCHG", "POP", "LEA", "CMPXCHG":
	default:
		return false
	}
	for _, o := range in.Operands() {
		if o.Name != "rsp" && o.Dir&x86.DirWrite != 0 && o.Uses.R == 1<<x86.RSP && o.Uses.Parts&x86.PartMemory == 0 {
			return row.Mnemonic != "LEA" || in.Base != x86.RSP && in.Base != x86.RBP
		}
	}
	return false
}

func (p *pass) stop(err error) {
	if p.err == nil {
		p.err = err
		p.view.Stop(err)
	}
}

// ran is observe.Observer.Run.
func (p *pass) ran(_ *observe.View, r *x86.Run) {
	c := p.view.CPU()
	if c.Retired-uint64(r.N) != p.retired {
		p.catchUp(c.Retired - uint64(r.N))
	}
	k := p.info(r)
	t := p.cur
	if k.fn != t.fn {
		p.entered(t, k, p.retired)
	}
	x := &k.counts[r.N]
	if x.node != t.node || x.id == 0 {
		p.counter(x, k, r.N, t.node)
	}
	p.totals[x.at]++
	p.retired += uint64(r.N)
	sp := c.R[x86.RSP]
	switch {
	case k.ends == calls && r.N == k.n:
		if next := r.PC + uint64(k.offsets[k.n]); c.RIP != next {
			p.call(t, k, sp)
		}
	case sp > t.slot:
		p.left(t, sp, k, k.ends == returns && r.N == k.n)
	case k.ends == returns && r.N == k.n && len(t.stack.frames) == 1:
		p.returned(t, sp)
	case k.loads && r.N == k.n && sp < t.sp && k.ends != goesOn:
		p.loaded(t, sp)
	}
	t.sp = sp
	p.next, p.args = c.RIP, argumentsOf(c)
	if p.tree.full {
		p.stop(errTooManyCalls)
	}
}

// counter finds the counter of the first n instructions of k in a node.
func (p *pass) counter(x *count, k *runInfo, n int, node int32) {
	if x.id == 0 {
		p.runs = append(p.runs, counted{k, n})
		x.id = uint32(len(p.runs))
	}
	key := uint64(uint32(node))<<32 | uint64(x.id)
	i, ok := p.index[key]
	if !ok {
		if len(p.keys) >= maxCounts {
			p.stop(errTooMuchCode)
		}
		i = uint32(len(p.keys))
		p.keys, p.totals = append(p.keys, key), append(p.totals, 0)
		p.index[key] = i
	}
	x.node, x.at = node, i
}
