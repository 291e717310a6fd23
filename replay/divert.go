package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/mem"
	"vplay/replay/sys"
	"vplay/replay/x86"
)

// Diversion is a copy of a process at one position of its recording that runs away
// from it: a debugger calls functions and changes variables in it, and throws it
// away. Making one takes about a millisecond, whatever the size of the process, for
// memory is shared until it is written.
//
// The recording, the machine and the timeline it comes from do not notice it.
// System calls are answered by a model (see systemCalls), never by the host. What
// the copy needs and the recording lacks stops it with a [DiversionError]; the
// copy then stands before the instruction that needs it.
//
// A Diversion is used by one goroutine. Its registers and memory may be read and
// changed between runs; Close gives the memory back.
type Diversion struct {
	CPU *x86.CPU
	Mem *mem.Space

	// Output receives what the copy writes to its terminal and pipes. It must not
	// keep b.
	Output func(b []byte)
	// Missing, when set, is asked for memory that the recording lacks: it fills
	// page, which belongs at the page-aligned address a, and returns how many of
	// its bytes it knows. It must give what the program had there.
	Missing func(a uint64, page []byte) int
	// Limit, when it is not 0, is the count of retired instructions (CPU.Retired) at which
	// Run stops with StopLimit.
	Limit uint64

	s      *Session
	pid    int32
	tid    checkpoint.TID               // of the thread that runs
	others map[checkpoint.TID]x86.State // the threads that do not run, by number
	from   checkpoint.Position
	events []checkpoint.Event // of the interval, up to the position of the copy

	hits    []mem.Hit
	stop    *DiversionStop // what a system call makes of the run
	failed  error
	brk     uint64
	mask    uint64 // of blocked signals
	random  uint64
	refused map[int64]bool // calls that were answered with ENOSYS
	code    *DebugCode     // nil: there is none
}

// DiversionStop says why a run of a diversion ended.
type DiversionStop struct {
	// Reason is StopLimit after a step and at Diversion.Limit, StopBreak, StopWatch with Hits, StopSignal
	// with Signo and Siginfo, StopInterrupt, or StopEnd: the program exited with Code.
	Reason  Reason
	Hits    []mem.Hit
	Signo   int32
	Siginfo []byte // siginfo_t, 128 bytes
	Code    int
}

// DiversionError says why a diversion cannot go on.
type DiversionError struct {
	From checkpoint.Position // where it left the recording
	RIP  uint64
	Addr uint64 // the byte that was not captured; 0 for other reasons
	What string
}

func (e *DiversionError) Error() string {
	return fmt.Sprintf("the call cannot go on at %#x: %s", e.RIP, e.What)
}

// Divert makes a diversion of the machine at the current position.
func (m *Machine) Divert() *Diversion {
	at := Thread{TID: m.tid, State: m.CPU.State}
	return m.s.divert(m.Mem, m.iv.PID, &at, m.Threads(), m.Position(), m.iv.Events[:m.next])
}

// Divert makes a diversion of the final image, with nothing replayed.
func (s *Session) Divert(f *FinalImage) *Diversion {
	var from checkpoint.Position
	if infos := s.Rec.LastImageOf(f.PID); len(infos) > 0 {
		from.Interval = infos[len(infos)-1].ID
	}
	return s.divert(f.Mem, f.PID, f.Current(), f.Threads, from, nil)
}

// divert makes a diversion of a process with the given memory, that runs the thread at
// first. all are its threads, from is where it leaves the recording, past the interval's events
// up to there.
func (s *Session) divert(space *mem.Space, pid int32, at *Thread, all []Thread, from checkpoint.Position, past []checkpoint.Event) *Diversion {
	snap := space.Snapshot()
	d := &Diversion{s: s, pid: pid, refused: map[int64]bool{}}
	d.Mem = snap.Open()
	snap.Release()
	d.CPU = x86.New(bus{d.Mem}, s.cpu)
	d.leave(at, all, from, past)
	d.Mem.OnFlush = func(start, end uint64) {
		for _, c := range d.processors() {
			c.FlushTLBRange(start, end)
		}
	}
	d.Mem.OnHit = func(h mem.Hit) {
		if h.Access == mem.Store && !h.Changed && h.Watch.Kind&mem.WatchRead == 0 {
			return // as gdb has it: a store of what was there
		}
		d.hits = append(d.hits, h)
		d.CPU.Attention()
	}
	return d
}

// leave has the diversion leave the recording with these threads.
func (d *Diversion) leave(at *Thread, all []Thread, from checkpoint.Position, past []checkpoint.Event) {
	d.tid, d.from, d.events = at.TID, from, past
	d.brk, d.mask, d.random = 0, 0, 0
	d.others = map[checkpoint.TID]x86.State{}
	for i := range all {
		if t := &all[i]; t.TID != at.TID {
			d.others[t.TID] = t.State
		}
	}
	d.CPU.State = at.State
	d.CPU.RepIter = 0
}

// Renew throws away what the diversion holds and makes it one of the machine at its current
// position, as Divert does. It is for who makes thousands: code stays decoded. The
// machine is one of the same session and process; system calls that were answered with ENOSYS
// are not told of again.
func (d *Diversion) Renew(m *Machine) {
	snap := m.Mem.Snapshot()
	d.Mem.Restore(snap)
	snap.Release()
	at := Thread{TID: m.tid, State: m.CPU.State}
	d.CPU = d.processors()[0]
	d.leave(&at, m.Threads(), m.Position(), m.iv.Events[:m.next])
	for _, c := range d.processors() {
		c.FlushTLB()
	}
}

// Close gives the diversion's memory back.
func (d *Diversion) Close() { d.Mem.Close() }

// TID returns the thread that the diversion executes.
func (d *Diversion) TID() checkpoint.TID { return d.tid }

// State returns the registers of a thread; ok is false when there is no such thread.
func (d *Diversion) State(tid checkpoint.TID) (st x86.State, ok bool) {
	if tid == d.tid {
		return d.CPU.State, true
	}
	st, ok = d.others[tid]
	return st, ok
}

// Switch makes a thread the one that the diversion executes; the one that it executed
// before stays where it is. It reports whether there is that thread.
func (d *Diversion) Switch(tid checkpoint.TID) bool {
	if tid == d.tid {
		return true
	}
	st, ok := d.others[tid]
	if !ok {
		return false
	}
	delete(d.others, tid)
	d.others[d.tid] = d.CPU.State
	d.tid, d.CPU.State = tid, st
	d.CPU.RepIter = 0
	return true
}

// From returns where the diversion left the recording.
func (d *Diversion) From() checkpoint.Position { return d.from }

// Write stores b at a as a debugger does: where memory is mapped, whatever its
// protection. It stores nothing when a byte has no place.
func (d *Diversion) Write(a uint64, b []byte) error {
	if f := d.Mem.Inject(a, b); f.Kind != mem.FaultNone {
		return fmt.Errorf("nothing is mapped at %#x", f.Addr)
	}
	return nil
}

// Run executes until something stops the diversion. A breakpoint at the present
// RIP counts, unless skip is set. When ctx ends it stops within a few
// milliseconds with StopInterrupt. The error is a *DiversionError, of debug code also
// a *StoreError or one of DebugCode.Crossed.
func (d *Diversion) Run(ctx context.Context, skip bool) (DiversionStop, error) {
	defer d.interruptible(ctx)()
	d.CPU.SkipBreak = skip
	for {
		stop, err := d.execute(ctx, false)
		if stop != nil || err != nil {
			return orNone(stop), err
		}
	}
}

// Step executes one instruction, or one iteration of a REP instruction. Errors
// and ctx are as for Run.
func (d *Diversion) Step(ctx context.Context) (DiversionStop, error) {
	defer d.interruptible(ctx)()
	for {
		before, retired := d.CPU.RepIter, d.CPU.Retired
		stop, err := d.execute(ctx, true)
		if stop != nil || err != nil {
			return orNone(stop), err
		}
		if d.CPU.Retired != retired || d.CPU.RepIter != before {
			return DiversionStop{Reason: StopLimit}, nil
		}
	}
}

func orNone(s *DiversionStop) DiversionStop {
	if s == nil {
		return DiversionStop{}
	}
	return *s
}

// interruptible makes the end of ctx stop the processor; what it returns ends
// that.
func (d *Diversion) interruptible(ctx context.Context) func() {
	list := d.processors()
	stop := context.AfterFunc(ctx, func() {
		for _, c := range list {
			c.Interrupt()
		}
	})
	return func() {
		if stop() {
			return
		}
		for _, c := range list {
			c.Interrupted()
		}
	}
}

// execute runs up to the next exit of the processor and handles it. A nil stop
// means that the run goes on.
func (d *Diversion) execute(ctx context.Context, step bool) (*DiversionStop, error) {
	if ctx.Err() != nil {
		return &DiversionStop{Reason: StopInterrupt}, nil //nolint:nilerr // it is the stop
	}
	d.hits = d.hits[:0]
	c := d.CPU
	var x x86.Exit
	if step {
		x = c.Step()
	} else {
		limit := d.Limit
		if limit == 0 {
			limit = ^uint64(0)
		}
		x = c.Run(limit)
	}
	err := d.exit(x)
	stop := d.stop
	d.stop = nil
	switch {
	case stop != nil || err != nil:
		return stop, err
	case x == x86.ExitBreak && c.RepIter == 0:
		return &DiversionStop{Reason: StopBreak}, nil
	case x == x86.ExitLimit:
		return &DiversionStop{Reason: StopLimit}, nil
	case x == x86.ExitBreak: // between two iterations
		c.SkipBreak = true
	case len(d.hits) > 0:
		return &DiversionStop{Reason: StopWatch, Hits: d.hits}, nil
	}
	return nil, nil
}

// exit handles what made the processor leave. It sets d.stop where that ends the
// run.
func (d *Diversion) exit(x x86.Exit) error {
	c := d.CPU
	switch x {
	case x86.ExitSyscall:
		return d.systemCall(int64(c.R[x86.RAX]), 2)
	case x86.ExitRDTSC, x86.ExitRDTSCP, x86.ExitCPUID, x86.ExitRandom:
		d.trapped(x)
	case x86.ExitFault:
		return d.fault()
	case x86.ExitUnsupported:
		b, name := c.Undefined()
		u := UnsupportedError{RIP: c.RIP, Bytes: b, Name: name}
		return d.cannot(u.what())
	case x86.ExitNone, x86.ExitLimit, x86.ExitBreak, x86.ExitAttention:
	}
	return nil
}

// cannot is the error for what the diversion lacks.
func (d *Diversion) cannot(what string) error {
	return &DiversionError{From: d.from, RIP: d.CPU.RIP, What: what}
}

// supply asks for the page of the byte at a, which the recording lacks, and
// reports whether the byte is known now. What the recording holds of the page stays.
func (d *Diversion) supply(a uint64) bool {
	if d.Missing == nil {
		return false
	}
	base := a &^ (mem.PageSize - 1)
	var page, old [mem.PageSize]byte
	known := d.Missing(base, page[:])
	for i := 0; i < known; i++ {
		n, f := d.Mem.Peek(base+uint64(i), old[i:])
		if i += n; i < known && f.Kind == mem.FaultNotCaptured {
			d.Mem.Inject(base+uint64(i), page[i:i+1])
		}
	}
	return a-base < uint64(known)
}

// notCaptured is the error for a byte that the recording lacks.
func (d *Diversion) notCaptured(a uint64) error {
	return &DiversionError{
		From: d.from, RIP: d.CPU.RIP, Addr: a,
		What: fmt.Sprintf("it needs the byte at %#x, which the recording does not hold", a),
	}
}

// trapped answers RDTSC, RDTSCP and CPUID as the recorded CPU would. Time goes
// on from the last one that the program saw, an instruction a tick. Random numbers are made of that count.
func (d *Diversion) trapped(x x86.Exit) {
	c := d.CPU
	if x == x86.ExitRandom {
		c.SetRandom((c.Retired+1)*0x9e3779b97f4a7c15, true)
		return
	}
	if x == x86.ExitCPUID {
		o := d.s.cpu.CPUID(uint32(c.R[x86.RAX]), uint32(c.R[x86.RCX]))
		c.R[x86.RAX], c.R[x86.RBX], c.R[x86.RCX], c.R[x86.RDX] = uint64(o[0]), uint64(o[1]), uint64(o[2]), uint64(o[3])
		c.SkipInstruction()
		return
	}
	var tsc, aux uint64
	for i := len(d.events) - 1; i >= 0; i-- {
		if e := &d.events[i]; e.Kind == checkpoint.EventInstr && e.Instr != checkpoint.InstrCPUID {
			tsc, aux = e.Out[3]<<32|e.Out[0], e.Out[2]
			break
		}
	}
	tsc += c.Retired
	c.R[x86.RAX], c.R[x86.RDX] = tsc&0xffffffff, tsc>>32
	if x == x86.ExitRDTSCP {
		if d.s.cpu.TSCAux != nil {
			aux = uint64(*d.s.cpu.TSCAux)
		}
		c.R[x86.RCX] = aux
	}
	c.SkipInstruction()
}

// faultSignals says which signal Linux makes of a fault, with which si_code; hasAddr
// that si_addr is the address of the access, and not of the instruction or none
// (linux, arch/x86/kernel/traps.c and mm/fault.c).
var faultSignals = map[x86.FaultKind]struct {
	signo   abi.Signal
	code    int32
	hasAddr bool
}{
	x86.FaultNotMapped:  {abi.SIGSEGV, abi.SEGV_MAPERR, true},
	x86.FaultProtection: {abi.SIGSEGV, abi.SEGV_ACCERR, true},
	x86.FaultBeyondEOF:  {abi.SIGBUS, abi.BUS_ADRERR, true},
	x86.FaultNonCanon:   {abi.SIGSEGV, abi.SI_KERNEL, false},
	x86.FaultGP:         {abi.SIGSEGV, abi.SI_KERNEL, false},
	x86.FaultOF:         {abi.SIGSEGV, abi.SI_KERNEL, false},
	x86.FaultSS:         {abi.SIGBUS, abi.SI_KERNEL, false},
	x86.FaultAC:         {abi.SIGBUS, abi.BUS_ADRALN, false},
	x86.FaultDE:         {abi.SIGFPE, abi.FPE_INTDIV, false},
	x86.FaultMF:         {abi.SIGFPE, abi.SI_KERNEL, false},
	x86.FaultXM:         {abi.SIGFPE, abi.SI_KERNEL, false},
	x86.FaultUD:         {abi.SIGILL, abi.ILL_ILLOPN, false},
	x86.FaultBP:         {abi.SIGTRAP, abi.SI_KERNEL, false},
	x86.FaultDB:         {abi.SIGTRAP, abi.TRAP_TRACE, false},
}

// fault handles an exception of the copy: its stack grows, or it stops with the
// signal. Signal handlers are not run.
func (d *Diversion) fault() error {
	c := d.CPU
	f := c.Fault
	if nr, ok := abi.Vsyscall(c.RIP); ok && f.Access == x86.Exec {
		return d.vsyscall(nr)
	}
	if d.crosses(f) {
		return d.cross()
	}
	if d.code.runs(d) && f.Access == x86.Store && f.Kind == x86.FaultProtection && !d.code.has(f.Addr) {
		return &StoreError{RIP: c.RIP, Addr: f.Addr}
	}
	switch f.Kind {
	case x86.FaultNotCaptured:
		if d.supply(f.Addr) {
			return nil
		}
		return d.notCaptured(f.Addr)
	case x86.FaultNotMapped:
		if d.Mem.Grow(f.Addr, stackLimit) {
			return nil
		}
	case x86.FaultUD:
		var b [15]byte
		n, _ := c.Bus.Fetch(c.RIP, b[:])
		if _, err := x86.DecodeInst(b[:n], c.RIP, c.ID); errors.Is(err, x86.ErrUndefined) {
			u := UnsupportedError{RIP: c.RIP, Bytes: b[:n]}
			return d.cannot(u.what())
		}
	case x86.FaultBP, x86.FaultDB, x86.FaultOF: // traps: rip is behind the instruction
		c.SkipInstruction()
	default:
	}
	s := faultSignals[f.Kind]
	addr := c.RIP
	switch {
	case s.hasAddr:
		addr = f.Addr
	case s.code == abi.SI_KERNEL:
		addr = 0
	}
	d.signal(s.signo, s.code, addr)
	return nil
}

// signal ends the run with a signal.
func (d *Diversion) signal(signo abi.Signal, code int32, addr uint64) {
	info := make([]byte, abi.SizeofSiginfo)
	le := binary.LittleEndian
	le.PutUint32(info, uint32(signo))
	le.PutUint32(info[8:], uint32(code))
	le.PutUint64(info[16:], addr)
	d.stop = &DiversionStop{Reason: StopSignal, Signo: int32(signo), Siginfo: info}
}

// vsyscall does what the kernel does for a call of the vsyscall page.
func (d *Diversion) vsyscall(nr int64) error {
	c := d.CPU
	var ret [8]byte
	if f := d.Mem.Read(c.R[x86.RSP], ret[:]); f.Kind != mem.FaultNone {
		d.signal(abi.SIGSEGV, abi.SEGV_MAPERR, f.Addr)
		return nil
	}
	if err := d.systemCall(nr, 0); err != nil {
		return err
	}
	c.RIP = binary.LittleEndian.Uint64(ret[:])
	c.R[x86.RSP] += 8
	c.Retired++
	return nil
}

// systemCall answers system call nr; the instruction that made it has length
// bytes, and RIP is behind it.
func (d *Diversion) systemCall(nr int64, length uint64) error {
	c := d.CPU
	args := [6]uint64{c.R[x86.RDI], c.R[x86.RSI], c.R[x86.RDX], c.R[x86.R10], c.R[x86.R8], c.R[x86.R9]}
	result := -int64(abi.ENOSYS)
	if d.code.runs(d) {
		result, d.stop = d.code.Syscall(nr, args)
	} else if call := systemCalls[nr]; call != nil {
		result = call(d, args)
	} else if !d.refused[nr] {
		d.refused[nr] = true
		d.print(fmt.Appendf(nil, "vplay: %s gets ENOSYS: outside the recording there is nothing to answer it\n", sys.Name(nr)))
	}
	if err := d.failed; err != nil { // stand before the call
		d.failed = nil
		c.RIP -= length
		c.Retired--
		return err
	}
	c.R[x86.RAX] = uint64(result)
	return nil
}

// print gives the user a text.
func (d *Diversion) print(b []byte) {
	if d.Output != nil && len(b) > 0 {
		d.Output(b)
	}
}
