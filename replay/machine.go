package replay

import (
	"fmt"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// The machine: its state, where it stands in the log, and the loop that executes up to
// the next stop. What an event does is in event.go, how the interval ends in end.go,
// the other threads are in thread.go, snapshots in snapshot.go.

// Reason says why a run stopped.
type Reason uint8

// The reasons to stop.
const (
	StopLimit     Reason = 1 + iota // the position asked for was reached
	StopBreak                       // at a breakpoint, before its instruction
	StopWatch                       // an instruction or event touched watched bytes: see Machine.Hits
	StopSignal                      // a signal is about to be delivered: see Machine.Pending
	StopSyscall                     // before the entry or after the exit of a call asked for
	StopEnd                         // at the end of the interval
	StopInterrupt                   // interrupted from outside
	StopSwitch                      // the thread asked for goes on, or has ended: see Catch.Thread
)

// Machine is one process of a recording at one position of an interval.
type Machine struct {
	CPU *x86.CPU
	Mem *mem.Space

	s    *Session
	iv   *interval
	tid  checkpoint.TID // of the thread that runs
	name string         // that the thread that runs has given itself
	next int            // index of the next event
	step uint32         // events applied at the present count

	afterSyscall bool // SYSCALL retired, its enter event is due
	inCall       bool // between enter and exit
	faulted      bool // the next event is the fault of the instruction at RIP
	ended        bool // a forced end is here
	allowed      bool // see allowAccess

	others   threads // those that do not run
	noXState bool    // the extended state is not known: the exit of the call has it
	gone     bool    // the thread that ran has ended

	breaks map[uint64]struct{}
	// pass, when set, is asked at a breakpoint of the user's whether to stop.
	pass       func(*Machine) bool
	conditions *x86.Conditions // see stops.conditions
	hits       []mem.Hit
	// everyStore makes watched stores that change nothing hits as well; without it
	// they are none, as with a debugger's own watchpoints.
	everyStore bool
	search     *endSearch // for a forced end, nil when none is under way
	// endFirst makes the machine find a forced end before it goes behind the
	// last event.
	endFirst bool
	// guess makes instructions that ask which state components are in use hear that
	// none is beyond what the state says; asked is how many there were, and doubted
	// are the pages, by address, that this may make others. solver, when set, looks for the answers.
	guess   bool
	asked   uint64
	doubted map[uint64]bool
	solver  *solver
	// endOnly says that nobody looks at the way to the interval's end, so that the
	// solver's way there will do.
	endOnly bool
	// onSave, when set, is called with each instruction that asks, before it is executed by known answers.
	onSave func(x86.InUse)
	// release gives Session.Engine's engine back; nil when the machine has none of it.
	release func()
	// executed is how many instructions RunToEnd executed, those of machines that
	// looked for answers included.
	executed uint64

	// OnEvent, when set, is called before an event is applied, and OnApplied behind it. The
	// machine may be read and saved then. Outside of this package that is package observe's alone.
	OnEvent, OnApplied func(*checkpoint.Event)
	// Catch are the events that Run stops at.
	Catch Catch
}

// Catch are events of the log that Machine.Run stops at, as a debugger catches them.
type Catch struct {
	Signal bool // before a signal's frame is built
	// Syscall, when set, says which calls: before the enter and after the exit event.
	Syscall func(nr int64) bool
	// Thread, when it is not 0, is a thread: behind each event that lets it go on. Exit is one behind whose end Run stops.
	Thread, Exit checkpoint.TID
}

// Machine returns a machine at the start of interval id; Close gives it back.
// Errors: checkpoint.ErrNoInterval, *checkpoint.FormatError for what the file
// holds damaged or without sense.
func (s *Session) Machine(id uint32) (*Machine, error) {
	iv, err := s.interval(id)
	if err != nil {
		return nil, err
	}
	return s.machine(iv, s.Engine, nil), nil
}

// MachineBy is Machine with an engine of its own; a nil maker means the interpreter.
func (s *Session) MachineBy(id uint32, maker EngineMaker) (*Machine, error) {
	iv, err := s.interval(id)
	if err != nil {
		return nil, err
	}
	return s.machine(iv, maker, nil), nil
}

// machine returns a machine at the start of iv, which executes by what maker makes. cpu,
// when not nil, is the processor of a machine that nobody uses any more.
func (s *Session) machine(iv *interval, maker EngineMaker, cpu *x86.CPU) *Machine {
	m := &Machine{s: s, iv: iv, breaks: map[uint64]struct{}{}, CPU: cpu}
	m.attach(iv.start.Open(), maker)
	m.resume(iv.first)
	m.others = iv.others
	m.expectBusError()
	return m
}

// attach joins a space to a processor of its own, with the engine that maker makes; nil means the interpreter.
func (m *Machine) attach(space *mem.Space, maker EngineMaker) {
	m.Mem = space
	if m.CPU == nil {
		m.CPU = new(x86.CPU)
	}
	m.CPU.Renew(bus{space}, m.s.cpu)
	m.engage(maker)
	m.CPU.AskInUse = true
	space.OnFlush = m.CPU.FlushTLBRange
	space.OnFull = m.CPU.Interrupt
	space.OnHit = func(h mem.Hit) {
		if h.Access == mem.Store && !h.Changed && h.Watch.Kind&mem.WatchRead == 0 && !m.everyStore {
			return
		}
		m.Hit(h)
	}
}

// engage has the engine execute that maker makes, if it makes one.
func (m *Machine) engage(maker EngineMaker) {
	if maker == nil {
		return
	}
	if e, release := maker(m.CPU); e != nil {
		m.CPU.SetEngine(e)
		m.release = release
	}
}

// Hit has Run stop with StopWatch behind what is executed, as at a hit of a watch. It is for Mem.OnAccess.
func (m *Machine) Hit(h mem.Hit) {
	m.hits = append(m.hits, h)
	m.CPU.Attention()
}

// Close gives the machine's memory back.
func (m *Machine) Close() {
	m.interpret()
	m.Mem.Close()
}

// interpret has the interpreter execute from here on.
func (m *Machine) interpret() {
	if m.release != nil {
		m.CPU.SetEngine(x86.BlockEngine{})
		m.release()
		m.release = nil
	}
}

// ExecuteBy has e execute from the next Run on, or from behind the event that is being applied.
func (m *Machine) ExecuteBy(e x86.Engine) {
	m.interpret()
	m.CPU.SetEngine(e)
}

// TraceBy has e execute from the next Run on, or with e.Units the engine that the machine has, if that can.
func (m *Machine) TraceBy(e *x86.TraceEngine) {
	if u, ok := m.CPU.Engine().(x86.UnitEngine); ok && e.Units != nil {
		u.Trace(e)
		m.CPU.SetEngine(u)
		return
	}
	m.ExecuteBy(e)
}

// Interval returns the ID of the interval the machine is in.
func (m *Machine) Interval() uint32 { return m.iv.ID }

// Record returns what the recording says of the page at page-aligned address a, at
// the interval's start; ok is false where it says nothing.
func (m *Machine) Record(a uint64) (ref checkpoint.PageRef, ok bool) { return m.iv.src.Record(a) }

// Position returns the current position.
func (m *Machine) Position() checkpoint.Position {
	return checkpoint.Position{
		Interval: m.iv.ID,
		Instr:    m.CPU.Retired,
		Step:     m.step + uint32(min(m.CPU.RepIter, 1<<31)),
	}
}

// Hits returns the watch hits of the last run that stopped with StopWatch.
func (m *Machine) Hits() []mem.Hit { return m.hits }

// Pending returns the event that is due before the next instruction, or nil.
func (m *Machine) Pending() *checkpoint.Event {
	if e := m.due(); e != nil {
		return e
	}
	return nil
}

// due returns the next event when it is to be applied before any further
// instruction.
func (m *Machine) due() *checkpoint.Event {
	if m.next >= len(m.iv.Events) {
		return nil
	}
	e := &m.iv.Events[m.next]
	switch e.Kind {
	case checkpoint.EventEnter:
		if m.afterSyscall {
			return e
		}
	case checkpoint.EventFault:
		if m.faulted {
			return e
		}
	case checkpoint.EventInstr:
	case checkpoint.EventExit:
		if m.inCall {
			return e
		}
	default:
		return e
	}
	return nil
}

// AtEnd reports whether the machine stands at the end of its interval.
func (m *Machine) AtEnd() bool {
	if m.next < len(m.iv.Events) {
		return false
	}
	if !m.iv.End.Forced {
		return true
	}
	return m.ended
}

// SetBreakpoints replaces the set of addresses at which Run stops.
func (m *Machine) SetBreakpoints(addrs []uint64) {
	m.breaks = make(map[uint64]struct{}, len(addrs))
	for _, a := range addrs {
		m.breaks[a] = struct{}{}
	}
	m.armBreaks()
}

// AddBreakpoint adds an address to those at which Run stops, for less than SetBreakpoints takes.
func (m *Machine) AddBreakpoint(a uint64) {
	if _, has := m.breaks[a]; !has {
		m.breaks[a] = struct{}{}
		m.CPU.AddBreakpoint(a)
	}
}

// RemoveBreakpoint takes an address away that AddBreakpoint added.
func (m *Machine) RemoveBreakpoint(a uint64) {
	delete(m.breaks, a)
	if m.search == nil || m.search.want.Regs.RIP != a {
		m.CPU.RemoveBreakpoint(a)
	}
}

// HitEveryStore makes watched stores that change nothing hits as well.
func (m *Machine) HitEveryStore() { m.everyStore = true }

// armBreaks gives the processor the breakpoints, and the place of a forced
// end while it is looked for.
func (m *Machine) armBreaks() {
	all := make([]uint64, 0, len(m.breaks)+1)
	for a := range m.breaks {
		all = append(all, a)
	}
	if m.search != nil {
		rip := m.search.want.Regs.RIP
		if _, ok := m.breaks[rip]; !ok {
			all = append(all, rip)
		}
	}
	m.CPU.SetBreakpoints(all)
	m.CPU.Pass = nil
	if m.pass != nil && len(m.breaks) > 0 {
		m.CPU.Pass = m.passes
	}
	m.CPU.Conditions = m.conditionsApart()
	m.CPU.Sieve = nil
	m.search.sift()
}

// conditionsApart returns the conditions of the user's breakpoints, if the processor may pass all of these by itself: it must
// not pass the place of a forced end that is looked for.
func (m *Machine) conditionsApart() *x86.Conditions {
	if m.CPU.Pass == nil || m.search != nil && m.conditions.Of(m.search.want.Regs.RIP) != nil {
		return nil
	}
	return m.conditions
}

// passes reports whether a breakpoint at RIP, which the processor has come to, is
// one of the user's alone whose condition refuses it.
func (m *Machine) passes() bool {
	if m.search.isHere() {
		return false
	}
	return !m.pass(m)
}

// Target is a place within an interval at which a run stops: the count Instr
// with at least Step steps taken at it.
type Target struct {
	Instr uint64
	Step  uint32
}

// Never is a target that no run reaches.
var Never = Target{Instr: ^uint64(0)}

// reached reports whether the machine is at or beyond t.
func (m *Machine) reached(t Target) bool {
	p := m.Position()
	return p.Instr > t.Instr || p.Instr == t.Instr && p.Step >= t.Step
}

// Run executes until t is reached or something else stops it. With skip, a
// breakpoint at the present RIP is not reported. The errors are
// *DivergenceError, *NotCapturedError and *UnsupportedError: the machine then
// stands at the last good position.
func (m *Machine) Run(t Target, skip bool) (Reason, error) {
	m.hits = m.hits[:0]
	for {
		if m.reached(t) {
			return StopLimit, nil
		}
		if e := m.due(); e != nil {
			if r := m.stopAt(e); r != 0 {
				return r, nil
			}
			if err := m.apply(e); err != nil {
				return 0, err
			}
			if r := m.stopAfter(e); r != 0 {
				return r, nil
			}
			continue
		}
		if err := m.prepareEnd(); err != nil {
			return 0, err
		}
		if m.AtEnd() {
			return StopEnd, nil
		}
		r, err := m.execute(t, &skip)
		if err == nil && m.s.Pool.Full() {
			err = m.s.full(m.iv.ID)
		}
		if r != 0 || err != nil {
			return r, err
		}
	}
}

// full is the error of an interval whose program has more memory than the budget.
func (s *Session) full(id uint32) error {
	return &checkpoint.LimitError{File: s.Rec.File(), Part: fmt.Sprintf("interval %d: the program's memory", id), Limit: s.Rec.Budget().Memory()}
}

// stopAt says whether Run stops before the due event e.
func (m *Machine) stopAt(e *checkpoint.Event) Reason {
	if e.Kind == checkpoint.EventSignal && m.Catch.Signal {
		return StopSignal
	}
	if e.Kind == checkpoint.EventFault && m.Catch.Signal {
		return StopSignal
	}
	return 0
}

// stopAfter says whether Run stops behind the event e just applied.
func (m *Machine) stopAfter(e *checkpoint.Event) Reason {
	if len(m.hits) > 0 {
		return StopWatch
	}
	if e.Kind == checkpoint.EventSched && m.Catch.Thread != 0 && e.TID == m.Catch.Thread {
		return StopSwitch
	}
	if e.Kind == checkpoint.EventThread && e.Thread == checkpoint.ThreadExit && m.Catch.Exit != 0 && e.TID == m.Catch.Exit {
		return StopSwitch
	}
	if m.Catch.Syscall != nil && (e.Kind == checkpoint.EventEnter || e.Kind == checkpoint.EventExit) && m.Catch.Syscall(e.NR) {
		return StopSyscall
	}
	return 0
}

// Apply applies the event that is due, a signal's included. The error is a
// *DivergenceError where the machine is not as the event says, or another when
// no event is due.
func (m *Machine) Apply() error {
	e := m.due()
	if e == nil {
		return fmt.Errorf("replay: no event is due at %s", m.Position())
	}
	m.hits = m.hits[:0]
	return m.apply(e)
}

// execute runs instructions up to the next thing that concerns the log.
func (m *Machine) execute(t Target, skip *bool) (Reason, error) {
	c := m.CPU
	limit := m.limit(t)
	before := c.Retired
	if m.takeAllowance() {
		defer m.expectBusError()
		limit, *skip = before, true
	}
	c.SkipBreak = *skip
	var x x86.Exit
	if c.Retired >= limit {
		// Only REP iterations are left to take.
		if _, hit := m.breaks[c.RIP]; hit && !*skip {
			return m.atBreak(skip)
		}
		x = c.Step()
	} else {
		x = c.Run(limit)
	}
	if x == x86.ExitInUse {
		var err error
		if x, err = m.inUse(); err != nil || m.endOnly && m.AtEnd() {
			return 0, err
		}
	}
	if c.Retired != before {
		m.step = 0
	}
	*skip = false
	switch x {
	case x86.ExitNone, x86.ExitLimit:
		if len(m.hits) > 0 { // a single step does not stop for attention
			return StopWatch, nil
		}
		return m.overrun()
	case x86.ExitAttention:
		if len(m.hits) > 0 {
			return StopWatch, nil
		}
		if c.Interrupting() {
			return StopInterrupt, nil
		}
		return 0, nil
	case x86.ExitBreak:
		return m.atBreak(skip)
	case x86.ExitSyscall:
		return 0, m.atSyscall()
	case x86.ExitRDTSC, x86.ExitRDTSCP, x86.ExitCPUID, x86.ExitRandom:
		m.step = 0
		return 0, m.trapped(x)
	case x86.ExitFault:
		return 0, m.onFault()
	case x86.ExitUnsupported:
		return 0, m.unsupported()
	}
	return 0, fmt.Errorf("replay: the processor stopped for an unknown reason %d", x)
}

// unsupported is the error of an instruction at which the processor stopped because replay cannot execute it.
func (m *Machine) unsupported() error {
	b, name := m.CPU.Undefined()
	return &UnsupportedError{At: m.Position(), RIP: m.CPU.RIP, Bytes: b, Name: name}
}

// limit is the count up to which the processor may run in one go.
func (m *Machine) limit(t Target) uint64 {
	limit := t.Instr
	if m.next >= len(m.iv.Events) && m.iv.End.Forced && m.search == nil {
		if e := m.iv.endPoint(); e != nil {
			limit = min(limit, e.instr)
		}
	}
	return min(limit, limitOf(m.iv.End.CPUTime)+1)
}

// overrun reports a program that ran past all that its interval can hold.
func (m *Machine) overrun() (Reason, error) {
	if m.CPU.Retired <= limitOf(m.iv.End.CPUTime) {
		return 0, nil
	}
	if m.next >= len(m.iv.Events) && m.iv.End.Forced {
		return 0, m.diverged("end of the interval not found by state", "", "")
	}
	return 0, m.diverged("no event reached in the CPU time of the interval",
		fmt.Sprintf("%v", m.iv.End.CPUTime), fmt.Sprintf("%d instructions", m.CPU.Retired))
}

// atBreak handles a breakpoint of the user's, or the place of a forced end.
func (m *Machine) atBreak(skip *bool) (Reason, error) {
	if m.search.isHere() {
		found, err := m.search.match()
		if err != nil {
			return 0, err
		}
		if found {
			return 0, nil
		}
		if _, user := m.breaks[m.CPU.RIP]; !user {
			*skip = true
			return 0, nil
		}
	}
	if m.CPU.RepIter > 0 { // between two iterations: the instruction was stopped at before
		*skip = true
		return 0, nil
	}
	return StopBreak, nil
}

// stepOne executes one instruction or one REP iteration, with no event due.
func (m *Machine) stepOne() error {
	m.hits = m.hits[:0]
	p := m.Position()
	for m.Position() == p && !m.faulted && !m.afterSyscall {
		skip := true
		if _, err := m.execute(Target{Instr: m.CPU.Retired}, &skip); err != nil {
			return err
		}
	}
	return nil
}

// TID returns the thread the machine executes.
func (m *Machine) TID() checkpoint.TID { return m.tid }

// Applied returns the event applied last in this interval, or nil.
func (m *Machine) Applied() *checkpoint.Event {
	if m.next == 0 {
		return nil
	}
	return &m.iv.Events[m.next-1]
}

// Past returns the last n events applied in this interval, oldest first. The
// caller must not change them.
func (m *Machine) Past(n int) []checkpoint.Event {
	return m.iv.Events[max(0, m.next-n):m.next]
}
