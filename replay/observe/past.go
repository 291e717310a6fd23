package observe

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"vplay/replay"
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// Accesses that are told some time behind them (Observer.Accesses). What is executed again and again is executed by generated code, which
// logs the addresses (x86.UnitTracer). An instruction's accesses are known from its operands; those of a few are watched.

// PastAccess is an access to memory by one instruction, or by one iteration of a REP string instruction.
type PastAccess struct {
	PC    uint64 // of the instruction
	Addr  uint64 // of the first byte
	SP    uint64 // the stack pointer before the instruction
	Instr uint64 // how many instructions of the interval had retired before it
	Step  uint32 // the iteration, from 0
	Size  uint16 // bytes
	Store bool
	at    uint32 // in past.data: what was there before, and for a store behind that what there was then
}

const (
	maxPast  = 4096    // accesses that are told at once, or a few more
	maxPlans = 1 << 20 // instructions that have a tag: code that changes itself may go on for ever
	maxKnown = 1 << 14 // and that are found by their addresses
	// markEvery is how many instructions View.At executes at most, or a few more. Behind a snapshot a page is copied when it is stored to.
	markEvery = 2 * slice
)

// plan is how the accesses of an instruction are found.
type plan struct {
	how      uint8
	accesses []planned
	words    []x86.Word // addresses; then, but for byIterations, the stack pointer, and the bytes of accesses
	ops      int        // how many addresses
	stores   bool       // there are words of kind WordAfter
}

// The ways to find accesses.
const (
	byOperands uint8 = iota
	byIterations
	byWatching
)

// planned is an access of an instruction.
type planned struct {
	word  uint8 // of plan.words
	data  uint8 // in plan.words: the first of those that have its bytes
	size  uint8
	store bool
}

// planOf makes the plan of in. The accesses of an instruction are its loads and then its stores.
func planOf(pc uint64, in *x86.Inst, noData bool) *plan {
	k := dataflow.Compile(pc, in, false)
	isOdd := func(o dataflow.Operand) bool { return bits.OnesCount8(o.Size%8) > 1 } // its end is no word that can be loaded at once
	switch {
	case k.Spied || !noData && (k.Repeats || slices.ContainsFunc(k.Ops, isOdd)):
		return &plan{how: byWatching}
	case k.Transfer == x86.Return:
		k.Decides.Loads = []int8{0}
	}
	var loads, stores uint8 // bits by index of k.Ops
	for _, f := range k.Flows {
		loads |= bitsOf(f.Loads)
		if f.Store >= 0 {
			stores |= 1 << f.Store
		}
	}
	loads |= bitsOf(k.Decides.Loads)
	p := &plan{}
	if loads|stores == 0 {
		return p
	}
	for _, o := range k.Ops {
		p.words = append(p.words, o.Word())
	}
	p.ops = len(p.words)
	if k.Repeats {
		p.how = byIterations
	} else {
		p.words = append(p.words, x86.Word{Reg: x86.RSP})
	}
	data := make([]uint8, len(k.Ops))
	for i, o := range k.Ops {
		if bit := uint8(1) << i; !noData && (loads|stores)&bit != 0 {
			data[i] = uint8(len(p.words))
			p.addData(o, stores&bit != 0, k.Transfer == x86.Call)
		}
	}
	if len(p.words) > x86.MaxWords {
		return &plan{how: byWatching}
	}
	p.add(k.Ops, data, loads, false)
	p.add(k.Ops, data, stores, true)
	return p
}

func bitsOf(list []int8) (b uint8) {
	for _, i := range list {
		b |= 1 << i
	}
	return b
}

// add adds the accesses to operands, by the bits of which.
func (p *plan) add(ops []dataflow.Operand, data []uint8, which uint8, store bool) {
	for i, o := range ops {
		if which>>i&1 != 0 {
			p.accesses = append(p.accesses, planned{uint8(i), data[i], o.Size, store})
		}
	}
}

// addData adds the words that have the bytes of operand o: what is there before, and with store what is there behind. A call stores
// the address of what follows it.
func (p *plan) addData(o dataflow.Operand, store, isCall bool) {
	p.parts(o, x86.WordBefore)
	switch {
	case !store:
	case isCall:
		p.words = append(p.words, x86.Word{Kind: x86.WordNext})
	default:
		p.stores = true
		p.parts(o, x86.WordAfter)
	}
}

// parts adds the words for the bytes of o: eight each, and the rest.
func (p *plan) parts(o dataflow.Operand, kind x86.WordKind) {
	for off := uint8(0); off < o.Size; {
		w := o.Word()
		w.Kind, w.Off, w.Size = kind, off, min(8, o.Size-off)
		p.words = append(p.words, w)
		off += w.Size
	}
}

// pastUnit is what is known of a unit of generated code.
type pastUnit struct {
	// list are the accesses as they are but for Addr, SP, and Instr, which counts from the unit's first instruction, and at, which counts words.
	list []PastAccess
	addr []uint16 // the word of each that has the address
	sp   []uint16 // and the stack pointer
	upTo []uint16 // how many of them the first instructions have
}

// knownPlan is the plan of an instruction that was met at an address.
type knownPlan struct {
	in x86.Inst
	*plan
}

// past makes the list of accesses that Observer.Accesses is called with.
type past struct {
	w      *worker
	engine x86.TraceEngine
	known  map[uint64]knownPlan
	plans  []*plan // by the tags of instructions, from 1
	units  []pastUnit
	list   []PastAccess // not told yet
	data   []uint64     // their bytes
	bytes  []byte       // in bytesOf
	noData bool

	// Of the instruction that is executed by the interpreter.
	plan    *plan
	dataAt  int        // the first of its bytes
	of      PastAccess // what its accesses have in common
	from    int        // the first of them
	pending bool       // executed is to be called behind it
	were    [3]uint64  // RCX, RSI, RDI
	words   [x86.MaxWords]uint64
	reader  x86.WordReader
	log     x86.AccessLog // of one that is watched
}

// tracePast has all accesses told to Observer.Accesses.
func (w *worker) tracePast() {
	t := &past{w: w, known: map[uint64]knownPlan{}, plans: make([]*plan, 1), noData: w.ob.NoData}
	t.log = x86.AccessLog{NoData: t.noData, Tell: t.watched}
	t.engine = x86.TraceEngine{Before: t.before, Pending: &t.pending, After: t.executed, Units: t}
	w.past, w.live.past = t, t
	c := w.m.CPU
	c.OnInst = func(in *x86.Inst) { t.before(c, in, nil) }
	c.AfterInst = func(in *x86.Inst, e x86.Exit) {
		if e != x86.ExitNone || t.pending {
			t.executed(c, in, e)
		}
	}
	w.m.TraceBy(&t.engine)
}

// planAt returns the plan of in, which is at pc.
func (t *past) planAt(pc uint64, in *x86.Inst) *plan {
	if k, ok := t.known[pc]; ok && k.in == *in {
		return k.plan
	}
	if len(t.known) >= maxKnown {
		clear(t.known)
	}
	p := planOf(pc, in, t.noData)
	t.known[pc] = knownPlan{*in, p}
	return p
}

// before is called before each instruction that the interpreter executes.
func (t *past) before(c *x86.CPU, in *x86.Inst, tag *uint32) {
	t.makeRoom()
	var p *plan
	if tag != nil && *tag != 0 {
		p = t.plans[*tag]
	} else if p = t.planAt(c.RIP, in); tag != nil && len(t.plans) < maxPlans {
		*tag = uint32(len(t.plans))
		t.plans = append(t.plans, p)
	}
	t.plan, t.from, t.dataAt, t.pending = p, len(t.list), len(t.data), p.how != byOperands || p.stores
	t.of = PastAccess{PC: c.RIP, SP: c.R[x86.RSP], Instr: c.Retired, Step: uint32(c.RepIter)}
	switch p.how {
	case byOperands:
		t.operands(c, in)
	case byIterations:
		t.were = [3]uint64{c.R[x86.RCX], c.R[x86.RSI], c.R[x86.RDI]}
	case byWatching:
		c.LogAccesses(&t.log)
	}
}

// operands adds the accesses of the instruction that c is about to execute, and what they have of bytes by now.
func (t *past) operands(c *x86.CPU, in *x86.Inst) {
	p := t.plan
	words := t.words[:len(p.words)]
	t.reader.Before(c, in, p.words, words)
	for i := range p.accesses {
		a := &p.accesses[i]
		t.add(a, words[a.word])
	}
	if !t.noData {
		t.data = append(t.data, words...)
	}
}

// add adds an access of the instruction.
func (t *past) add(a *planned, addr uint64) {
	x := t.of
	x.at = uint32(t.dataAt + int(a.data))
	x.Addr, x.Size, x.Store = addr, uint16(a.size), a.store
	t.list = append(t.list, x)
}

// watched is AccessLog.Tell.
func (t *past) watched(list []x86.LoggedAccess) {
	t.makeRoom()
	for i := range list {
		l, x := &list[i], t.of
		x.Addr, x.Size, x.Store, x.Step, x.at = l.Addr, uint16(l.Size), l.Store, uint32(l.Iteration), uint32(len(t.data))
		t.list = append(t.list, x)
		data, old := t.log.Bytes(l)
		t.addBytes(old)
		t.addBytes(data)
	}
}

// addBytes adds bytes as the words of operands have them.
func (t *past) addBytes(b []byte) {
	for len(b) > 0 {
		n := min(8, len(b))
		var w [8]byte
		copy(w[:], b[:n])
		t.data = append(t.data, binary.LittleEndian.Uint64(w[:]))
		b = b[n:]
	}
}

// executed is called behind an instruction, with what it came to, where t.pending is set or that is not ExitNone.
func (t *past) executed(c *x86.CPU, in *x86.Inst, e x86.Exit) {
	if t.plan.how == byWatching {
		c.LogAccesses(nil)
		return
	}
	switch {
	case !c.HasExecuted(e, uint64(t.of.Step)):
		t.list, t.data = t.list[:t.from], t.data[:t.dataAt]
	case t.plan.how == byIterations:
		t.iterations(c, in)
	case t.plan.stores:
		t.reader.After(c, t.plan.words, t.data[t.dataAt:])
	}
}

// iterations adds the accesses of the iterations of a string instruction that were executed.
func (t *past) iterations(c *x86.CPU, in *x86.Inst) {
	n := uint64(1)
	if in.Flags&(x86.InstRep|x86.InstRepne) != 0 {
		n = t.were[0] - c.R[x86.RCX]
	}
	from, to := t.were[1], t.were[2]
	for ; n > 0; n-- {
		t.makeRoom()
		step := uint64(0)
		for i := range t.plan.accesses {
			a := &t.plan.accesses[i]
			step = uint64(a.size)
			if t.plan.words[a.word].Reg == x86.RSI {
				t.add(a, from)
			} else {
				t.add(a, to)
			}
		}
		if c.Flags()&x86.FlagDF != 0 {
			step = -step
		}
		from, to = from+step, to+step
		t.of.Step++
	}
}

// Words implements x86.UnitTracer.
func (t *past) Words(pc uint64, in *x86.Inst) (list []x86.Word, ok bool) {
	p := t.planAt(pc, in)
	return p.words, p.how == byOperands
}

// Unit implements x86.UnitTracer.
func (t *past) Unit(id int, pc uint64, in []x86.Inst) {
	u := pastUnit{upTo: make([]uint16, len(in)+1)}
	words := 0
	for i := range in {
		p := t.planAt(pc, &in[i])
		for _, a := range p.accesses {
			u.list = append(u.list, PastAccess{PC: pc, Instr: uint64(i), Size: uint16(a.size), Store: a.store, at: uint32(words + int(a.data))})
			u.addr = append(u.addr, uint16(words+int(a.word)))
			u.sp = append(u.sp, uint16(words+p.ops))
		}
		words += len(p.words)
		u.upTo[i+1] = uint16(len(u.list))
		pc += uint64(in[i].Len)
	}
	t.units = append(t.units[:id], u)
}

// Ran implements x86.UnitTracer.
func (t *past) Ran(id, n int, before uint64, words []uint64) {
	t.makeRoom()
	u := &t.units[id]
	m := u.upTo[n]
	addr, sp, begin, at := u.addr[:m], u.sp[:m], len(t.list), uint32(len(t.data))
	if !t.noData {
		t.data = append(t.data, words...)
	}
	t.list = append(t.list, u.list[:m]...)
	list := t.list[begin:]
	for i := range list {
		x := &list[i]
		x.Addr, x.SP = words[addr[i]], words[sp[i]]
		x.Instr += before
		x.at += at
	}
}

// makeRoom tells what there is where that is enough.
func (t *past) makeRoom() {
	if len(t.list) >= maxPast {
		t.tell()
	}
}

// tell calls Observer.Accesses with what there is.
func (t *past) tell() {
	if len(t.list) > 0 && t.w.ended == nil {
		t.w.ob.Accesses(&t.w.live, t.list)
	}
	t.list, t.data = t.list[:0], t.data[:0]
}

// bytesOf returns the bytes of a, and those that a store has replaced, in room of its own.
func (t *past) bytesOf(a *PastAccess) (data, old []byte) {
	n := int(a.Size)
	words := (n + 7) / 8
	if cap(t.bytes) < 16*words {
		t.bytes = make([]byte, 16*words)
	}
	b := t.bytes[:16*words]
	read := func(to []byte, at int) []byte {
		for i := range words {
			binary.LittleEndian.PutUint64(to[8*i:], t.data[at+i])
		}
		return to[:n:n]
	}
	if !a.Store {
		return read(b, int(a.at)), nil
	}
	return read(b[8*words:], int(a.at)+words), read(b, int(a.at))
}

// tellPast tells the accesses that were made and not told yet.
func (w *worker) tellPast() {
	if w.past != nil {
		w.past.tell()
	}
}

// markPast has View.At begin here from now on. All accesses have been told.
func (w *worker) markPast() {
	if !w.ob.wantsPast() || !w.ob.Revisits {
		return
	}
	if w.mark == nil || w.m.CPU.Retired-w.mark.Pos.Instr >= markEvery {
		w.releaseMark()
		w.mark = w.m.Save()
	}
}

// releaseMark gives the mark back.
func (w *worker) releaseMark() {
	if w.mark != nil {
		w.mark.Release()
		w.mark = nil
	}
}

// at is View.At.
func (w *worker) at(a *PastAccess) (*View, error) {
	if w.mark == nil {
		return nil, errors.New("observe: View.At without Observer.Revisits")
	}
	if w.back.m == nil {
		w.back = View{m: w.s.Viewer(w.mark), stop: w.stop}
	} else {
		w.back.m.Restore(w.mark)
	}
	to := replay.Target{Instr: a.Instr + 1}
	if a.Step > 0 {
		to = replay.Target{Instr: a.Instr, Step: a.Step + 1}
	}
	for {
		switch why, err := w.back.m.Run(to, true); {
		case err != nil:
			return nil, err
		case why == replay.StopLimit, why == replay.StopEnd:
			return &w.back, nil
		}
	}
}
