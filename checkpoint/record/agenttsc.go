//go:build linux && amd64

package record

import (
	"bytes"
	"math"
	"math/bits"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/record/agent"
)

// RDTSC and RDTSCP by the agent. Such an instruction takes a stop of the program, of 20 to 35 us in a virtual machine; libhwy alone, which
// reads images, executes 131,072 of them before main. So one that has been executed often has a stub, as calls have, and a jump leads
// there. RDTSC faults in the agent, too, so the agent makes the counter from the time. From then on it is made so for all
// programs of the session and at stops as well: a program that has read it at a stop and then by the agent never sees it go back.

// sessionTSC is what the time-stamp counter of a session is.
type sessionTSC struct {
	made bool // from the time; else it is the CPU's
	// The CPU's and the time, of CLOCK_MONOTONIC in nanoseconds: at the first RDTSC, then where it begins to be made.
	tsc  uint64
	time int64
	rate uint64 // how far it goes on in a nanosecond, times 2^32
}

// now returns the time-stamp counter.
func (c *sessionTSC) now() uint64 {
	if c.made {
		hi, lo := bits.Mul64(uint64(monotonic()-c.time), c.rate)
		return c.tsc + hi<<32 + lo>>32
	}
	if c.time == 0 {
		c.tsc, c.time = tscAndTime()
	}
	return rdtsc()
}

// tscAndTime returns the CPU's counter and the time at one moment, of several the one that is known best.
func tscAndTime() (tsc uint64, time int64) {
	const tries = 5
	least := uint64(math.MaxUint64)
	for range tries {
		before, at := rdtsc(), monotonic()
		if took := rdtsc() - before; took < least {
			least, tsc, time = took, before+took/2, at
		}
	}
	return tsc, time
}

// toKnowRate is for how many nanoseconds the counter and the time must have been watched to know how they go together: it is known to
// some hundred-thousandths then.
const toKnowRate = 20_000_000

// slower is which part of the CPU's rate the counter lacks that is made: so it falls behind, however the rate was measured and the clock is
// adjusted (adjtimex(2): by 500 millionths at most). A program that is let go has the CPU's counter again, and does not see it go back.
const slower = 1 << 10

// make has the counter be made from the time. False says that too little is known of it yet.
func (c *sessionTSC) make() bool {
	if c.made || c.time == 0 {
		return c.made
	}
	tsc, time := tscAndTime()
	past := uint64(max(time-c.time, 0))
	if past < toKnowRate || tsc <= c.tsc {
		return false
	}
	hi, lo := bits.Mul64(tsc-c.tsc, 1<<32)
	if hi >= past { // faster than any CPU
		return false
	}
	c.rate, _ = bits.Div64(hi, lo, past)
	c.rate -= c.rate / slower
	c.tsc, c.time, c.made = rdtsc(), monotonic(), true
	return true
}

// tscPlaces is how often RDTSC has stopped, by address.
type tscPlaces map[uint64]int

// RDTSC leads to the agent from where it has stopped so often, and is counted at so many places.
const (
	stopsToLead = 32
	mostPlaces  = 1 << 12
)

// count counts a stop at a place, and reports whether there have been enough.
func (p *tscPlaces) count(addr uint64) bool {
	if *p == nil || len(*p) >= mostPlaces {
		*p = tscPlaces{}
	}
	(*p)[addr]++
	return (*p)[addr] >= stopsToLead
}

// never says that no jump can lead from a place to the agent.
func (p *tscPlaces) never(addr uint64) { (*p)[addr] = math.MinInt }

// leadTSC is called where an instruction, of size bytes, has been made to fault at rip. True says that the thread goes on in the stub of it.
func (t *thread) leadTSC(kind checkpoint.InstrKind, size uint64) (bool, error) {
	sp, addr := t.space(), t.regs.Rip
	led := t.led
	t.led = false
	switch {
	case kind != checkpoint.InstrRDTSC && kind != checkpoint.InstrRDTSCP, sp.agent == nil, len(t.sig.held) > 0, !t.agentFits(action{}):
		return false, nil
	case led: // it could not go on there
		return false, nil
	}
	s := sp.code.sites[addr]
	if s == nil || s.stub == 0 {
		if !sp.tsc.places.count(addr) || !t.session.tsc.make() {
			return false, nil
		}
		var err error
		if s, err = t.stubTSC(s, size); err != nil || s == nil {
			return false, err
		}
	}
	for _, other := range t.group().turns.threads {
		if other != t && other.space() == sp {
			other.stepAside(s)
		}
	}
	within := t.group().within(s, t)
	if !sp.code.clean { // else that is written before the thread goes on
		if err := s.write(sp, sp.underAgent(s, within)); err != nil {
			return false, err
		}
	}
	if within {
		return false, nil
	}
	t.regs.Rip, t.led = s.entry, true
	return true, t.setRegs(&t.regs)
}

// aside is where a thread stands whose turn is over, when that was behind RDTSC and is in the midst of the jump that another thread is to go by:
// in the stub, in front of the same instructions. All but the kernel takes it for where it was.
type aside struct{ rip, stub uint64 }

func (a aside) is() bool { return a.stub != 0 }

// stepAside has the thread, which does not run, make room for the jump of a site, if it stands in its midst. Threads that compute
// with RDTSC in a loop mostly stand there: a turn ends where the log can name the place, behind RDTSC that is.
func (t *thread) stepAside(s *site) {
	off := t.regs.Rip - s.behind()
	if t.aside.is() || t.call.in || t.call.pending || t.agent || int64(t.regs.Orig_rax) >= 0 || s.resumes == 0 || off > s.next || !s.within(t.regs.Rip) {
		return
	}
	t.aside = aside{t.regs.Rip, s.resumes + off}
	if t.setRegs(&t.regs) != nil { // killed meanwhile
		t.aside = aside{}
	}
}

// comeBack has the thread stand where it is again.
func (t *thread) comeBack() error {
	t.aside = aside{}
	return t.setRegs(&t.regs)
}

// stubTSC makes a stub for RDTSC or RDTSCP at rip, where HLT may be a site. There is none where no jump can lead from there.
func (t *thread) stubTSC(old *site, size uint64) (*site, error) {
	sp, addr := t.space(), t.regs.Rip
	s := sp.lookAtTSC(addr, size, old)
	if s == nil {
		sp.tsc.places.never(addr)
		return nil, nil
	}
	a, err := t.areaFor(addr)
	if err != nil || a == nil {
		return nil, err
	}
	switch {
	case old != nil && old.hasSlot:
		s.hasSlot, s.slot = true, old.slot
	case !sp.agent.giveSlot(s):
		sp.tsc.places.never(addr)
		return nil, nil
	}
	if old != nil {
		if err := old.write(sp, siteOwn); err != nil {
			return nil, err
		}
		sp.code.remove(old)
	}
	c := &t.session.tsc
	sp.agent.shared.TSCIs(c.tsc, c.time, c.rate)
	sp.addStub(s, a)
	return s, nil
}

// lookAtTSC finds out how RDTSC or RDTSCP at addr, of size bytes, can lead to the agent: a jump takes more room. nil says that it cannot.
func (sp *space) lookAtTSC(addr, size uint64, old *site) *site {
	code := make([]byte, len(lfence)+maxInsn+jumpSize)
	if sp.readMem(addr-uint64(len(lfence)), code) != len(code) {
		return nil
	}
	before, here := code[:len(lfence)], code[len(lfence):]
	if old != nil {
		here[0] = old.own[0] // HLT may be there
	}
	s := &site{addr: addr, kind: siteTSC, size: size}
	if n := movable(here[size:], jumpSize-size); n > 0 {
		s.jump, s.own, s.next = abi.Range{Addr: addr, Len: jumpSize}, here[:size+n], n
	} else if string(before) == lfence {
		s.jump, s.own, s.moved = abi.Range{Addr: addr - uint64(len(lfence)), Len: jumpSize}, code[:uint64(len(lfence))+size], before
	}
	switch {
	case s.jump.Len == 0, sp.mayChange(addr), sp.isTarget(s.jump.Addr+1, s.jump.Addr+jumpSize):
		return nil
	}
	for i := range s.jump.Len {
		if o := sp.code.inJump[s.jump.Addr+i]; o != nil && o.addr != addr {
			return nil
		}
	}
	return s
}

// lfence is the instruction that often stands before RDTSC, so that this is not executed early.
const lfence = "\x0f\xae\xe8"

// movable returns the size of the instructions at the start of code, need bytes at least, that do the same elsewhere; 0 where others are
// among them. It knows those that compilers write behind RDTSC, which join its halves.
func movable(code []byte, need uint64) (size uint64) {
	for size < need {
		n := simpleInsn(code[size:])
		if n == 0 {
			return 0
		}
		size += n
	}
	return size
}

// simpleInsn returns the size of the instruction at the start of code, 4 bytes at least, if it takes registers and numbers alone, and neither
// jumps nor faults; 0 for any other.
func simpleInsn(code []byte) (size uint64) {
	if bytes.HasPrefix(code, []byte(lfence)) {
		return uint64(len(lfence))
	}
	if code[0]&0xf0 == 0x40 { // REX
		code, size = code[1:], 1
	}
	if code[1]>>6 != 3 { // ModRM: an operand in memory
		return 0
	}
	switch code[0] {
	case 0x01, 0x03, 0x09, 0x0b, 0x21, 0x23, 0x29, 0x2b, 0x31, 0x33, 0x63, 0x85, 0x89, 0x8b: // ADD, OR, AND, SUB, XOR, MOVSXD, TEST, MOV
		return size + 2
	case 0x83, 0xc1: // ADD and the like, SHL and the like, by a byte
		return size + 3
	default:
		return 0
	}
}

// unenterInsn makes the registers of a thread that is entering the agent at offset rip, from the stub of RDTSC, those of a program
// before that instruction.
func (t *thread) unenterInsn(s *site, rip uint64, saved *agent.Regs) error {
	t.unenter(s, rip, saved)
	t.regs.Rip = s.addr
	t.regs.Rcx, t.regs.R11 = t.block.shared.OwnRegs()
	return t.setRegs(&t.regs)
}

// placedInsn puts a thread whose registers are those that the agent has saved at RDTSC, of size bytes, before or behind that.
func (t *thread) placedInsn(size uint64, goesOn bool) (next action, done bool, err error) {
	r, shared := &t.regs, t.block.shared
	r.Rcx, r.R11 = shared.OwnRegs()
	if t.block.noted {
		tsc, aux := shared.TSC()
		r.Rax, r.Rdx = tsc&math.MaxUint32, tsc>>32
		if size == rdtscpSize {
			r.Rcx = aux
		}
		t.sig.atExit, t.atSync = *r, true
		return action{}, false, t.setRegs(r)
	}
	r.Rip -= size
	return t.atInsn(goesOn)
}

// tscEvent is the event of RDTSC that the agent has done, where regs, but for RIP, are the registers before it.
func (s *session) tscEvent(r *agent.Record, regs *checkpoint.Regs) checkpoint.Event {
	regs.RIP -= r.Insn
	ev := checkpoint.Event{
		Kind: checkpoint.EventInstr, Instr: checkpoint.InstrRDTSC, RegHash: checkpoint.HashRegs(regs), Regs: s.debugRegs(regs),
		Out: [4]uint64{uint64(r.Result) & math.MaxUint32, regs.R[3], regs.R[1], uint64(r.Result) >> 32},
	}
	if r.Insn == rdtscpSize {
		ev.Instr, ev.Out[2] = checkpoint.InstrRDTSCP, uint64(r.Aux)
	}
	return ev
}

// atInsn has the thread, whose registers are those before RDTSC, execute that at this stop, if it is to go on. The agent would not do it, and
// may not for as long as the program leaves a flag set, or GS loaded.
func (t *thread) atInsn(goesOn bool) (next action, done bool, err error) {
	t.led = goesOn
	if err = t.setRegs(&t.regs); err == nil && goesOn {
		_, err = t.emulate()
	}
	return action{}, goesOn, err
}

// The sizes of the instructions.
const (
	maxInsn    = 15
	rdtscpSize = 3
)
