package slice

import (
	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/analysis/dataflow"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// The trace of a stretch of execution: for each instruction its number, and the addresses
// of its memory operands; and the events. It is some ten bytes an instruction, so a stretch
// is all that is ever in memory. Registers are not in it: what flows where is known from the
// instructions, and values are looked up where they are shown.

// eventBit marks entries of stretch.ids that are events; the rest of the number is an index
// of stretch.events.
const eventBit = 1 << 31

// stretch is the trace of one stretch.
type stretch struct {
	from, to checkpoint.Position
	ids      []uint32            // of instructions, in the order of execution
	words    []uint64            // what the instructions have of addresses, see instruction.words
	spied    [][]dataflow.Access // of instructions whose accesses were watched
	events   []event
	skipped  bool   // there is no trace: nothing that was live was written
	retired  uint64 // at the end
	tid      checkpoint.TID
	seam     *seam // to the interval before, behind a gap
}

// event is an event as the slice needs it.
type event struct {
	*checkpoint.Event
	tid     checkpoint.TID // that ran before it
	retired uint64
	steps   uint32     // that the position goes on by
	rsp     uint64     // before it
	args    *[6]uint64 // of the call that ends here
	keys    []uint64   // of Writes, where memory has several addresses
}

// tracer makes the trace of a stretch.
type tracer struct {
	p *program
	s *stretch
	m *replay.Machine

	met     []met  // by the tags of instructions
	units   []unit // see units.go
	at      uint32 // of the present instruction
	pending bool   // executed is to be called behind it
	rcx     uint64
	iter    uint64
	spy     *dataflow.Spy
	shared  bool // memory has pages with several addresses
}

// met is an instruction that was met. Each has two, without and with the frame pointer taken as known, behind each other.
// The first two are of the present instruction, when it has no tag.
type met struct {
	k        *instruction // nil: not asked for yet
	ops      []dataflow.Operand
	id       uint32
	mayFrame bool // the operand is addressed by RBP
	plain    bool // the trace has the addresses of ops
}

// maxMet bounds what a tracer knows, to some 60 MB: code that changes itself may go on for ever.
// Instructions that do not find room in a stretch are looked up each time.
const maxMet = 1 << 20

// begin is called before a stretch is executed.
func (t *tracer) begin(m *replay.Machine) {
	t.m = m
	for _, r := range m.Mem.Regions() {
		t.shared = t.shared || r.Shared
	}
	if len(t.met) > maxMet/2 { // most of it is of code that is not there any more
		m.CPU.FlushCode() // and the tags
		t.met = t.met[:2]
	}
}

// instruction is called before each instruction.
func (t *tracer) instruction(c *x86.CPU, in *x86.Inst, tag *uint32) {
	at := uint32(0)
	if tag != nil {
		at = *tag
	}
	if at == 0 {
		at = t.meet(in, tag)
	}
	e := &t.met[at]
	if e.mayFrame && dataflow.IsFrame(c) {
		at++
		e = &t.met[at]
	}
	if e.k == nil {
		e.k, e.id = t.p.instruction(c.RIP, in, at&1 != 0)
		e.ops, e.plain = e.k.Ops, e.k.plain
	}
	t.at, t.pending, t.iter = at, !e.plain, c.RepIter
	s := t.s
	s.ids = append(s.ids, e.id)
	if !e.plain {
		t.special(c, e.k)
		return
	}
	for _, o := range e.ops {
		s.words = append(s.words, t.key(o.At(c, in)))
	}
}

// special is instruction for what has other words than addresses.
func (t *tracer) special(c *x86.CPU, k *instruction) {
	s := t.s
	if k.Repeats {
		t.rcx = c.R[x86.RCX]
		s.words = append(s.words, c.R[x86.RSI], c.R[x86.RDI], 0)
		return
	}
	s.words = append(s.words, uint64(len(s.spied)))
	s.spied = append(s.spied, nil)
	t.spy.Begin(c)
}

// meet gives an instruction its tag, where it may have one and there is room, and returns it.
func (t *tracer) meet(in *x86.Inst, tag *uint32) uint32 {
	m := met{mayFrame: dataflow.ByFrame(in)}
	if tag == nil || len(t.met) >= maxMet {
		t.met[0], t.met[1] = m, met{}
		return 0
	}
	*tag = uint32(len(t.met))
	t.met = append(t.met, m, met{})
	return *tag
}

// executed is called behind it, where t.pending is set or it did not come to ExitNone.
func (t *tracer) executed(c *x86.CPU, in *x86.Inst, e x86.Exit) {
	s := t.s
	if t.spy.IsOn() {
		s.spied[len(s.spied)-1] = t.accesses(c)
	}
	if !c.HasExecuted(e, t.iter) {
		t.takeBack()
		return
	}
	now := &t.met[t.at]
	if now.k.Repeats {
		t.repeated(c, in, now.k)
	}
	if c.RepIter != 0 {
		s.ids[len(s.ids)-1] = t.p.left(now.id)
	}
}

// takeBack takes the present instruction out of the trace.
func (t *tracer) takeBack() {
	s, k := t.s, t.met[t.at].k
	s.ids, s.words = s.ids[:len(s.ids)-1], s.words[:len(s.words)-int(k.words)]
	if k.Spied {
		s.spied = s.spied[:len(s.spied)-1]
	}
}

// accesses returns what the instruction accessed that was watched.
func (t *tracer) accesses(c *x86.CPU) []dataflow.Access {
	seen := t.spy.End(c)
	for i := range seen {
		seen[i].Addr = t.key(seen[i].Addr)
	}
	if t.spy.Count > maxAccesses {
		t.p.tooMany()
	}
	return seen
}

// repeated notes how far a string instruction went.
func (t *tracer) repeated(c *x86.CPU, in *x86.Inst, k *instruction) {
	w := t.s.words[len(t.s.words)-3:]
	n := uint64(1)
	if in.Flags&(x86.InstRep|x86.InstRepne) != 0 {
		n = t.rcx - c.R[x86.RCX]
	}
	w[2] = n * uint64(k.Ops[0].Size)
	if c.Flags()&x86.FlagDF != 0 && n > 0 { // the addresses are those of the last
		back := w[2] - uint64(k.Ops[0].Size)
		w[0] -= back
		w[1] -= back
	}
	w[0], w[1] = t.key(w[0]), t.key(w[1])
}

// key returns what names the byte at an address whatever address it is accessed by.
func (t *tracer) key(a uint64) uint64 {
	if !t.shared {
		return a
	}
	k, _ := t.m.Mem.Key(a)
	return k + a%mem.PageSize
}

// event notes an event that is about to be applied.
func (t *tracer) event(m *replay.Machine, e *checkpoint.Event) {
	v := event{Event: e, tid: m.TID(), retired: m.CPU.Retired, rsp: m.CPU.R[x86.RSP]}
	switch e.Kind {
	case checkpoint.EventInstr:
		v.retired++ // the instruction retires behind it
	case checkpoint.EventExit:
		v.args = argsOf(m)
		fallthrough
	default:
		v.steps = 1 + uint32(m.CPU.RepIter)
	}
	t.s.ids = append(t.s.ids, eventBit|uint32(len(t.s.events)))
	t.s.events = append(t.s.events, v)
	if !t.shared {
		for i := range e.Maps {
			t.shared = t.shared || e.Maps[i].Kind == checkpoint.MapOpMap && e.Maps[i].Map.Flags&checkpoint.MapShared != 0
		}
	}
	if t.shared {
		last := &t.s.events[len(t.s.events)-1]
		for _, w := range e.Writes {
			last.keys = append(last.keys, t.key(w.Addr))
		}
	}
}

// manyEvents is how many events are looked through for a call's entry.
const manyEvents = 1 << 10

// argsOf returns the arguments of the call that m is in, nil where its entry is far.
func argsOf(m *replay.Machine) *[6]uint64 {
	past := m.Past(manyEvents)
	for i := len(past) - 1; i >= 0; i-- {
		if past[i].Kind == checkpoint.EventEnter && past[i].TID == m.TID() {
			return &past[i].Args
		}
	}
	return nil
}

// maxAccesses bounds the accesses that are watched in a stretch, those that go on from one to the
// next counted once: 100 MB. No program comes near; a recording may be made to.
const maxAccesses = 1 << 22
