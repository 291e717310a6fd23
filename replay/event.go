package replay

import (
	"errors"
	"fmt"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/replay/sys"
	"vplay/replay/x86"
)

// What the machine does at an event of the log: system calls, trapped instructions,
// faults, signals. Registers are compared with the recorder's here. What a call does to
// memory and the map is in package sys, switches of threads are in thread.go.

// apply applies the event e, which is the next and due: it compares the
// registers with the recorder's and brings in what came from outside.
func (m *Machine) apply(e *checkpoint.Event) error {
	if m.OnEvent != nil {
		m.OnEvent(e)
	}
	before := e.Kind == checkpoint.EventEnter || e.Kind == checkpoint.EventFault
	if before {
		if err := m.compare(e); err != nil {
			return err
		}
	}
	switch e.Kind {
	case checkpoint.EventEnter:
		m.afterSyscall, m.inCall = false, true
		m.noteName(e)
	case checkpoint.EventFault:
		m.faulted = false
	case checkpoint.EventExit:
		if m.noXState && e.XState == nil {
			return m.diverged("the exit of a call without the thread's extended state", "", "")
		}
		m.inCall, m.noXState = false, false
		if e.Restart {
			m.CPU.RIP -= 2
			m.CPU.R[x86.RAX] = uint64(e.RestartNR)
		} else {
			m.CPU.R[x86.RAX] = uint64(e.Result)
		}
	case checkpoint.EventSched:
		if err := m.switchTo(e); err != nil {
			return err
		}
	case checkpoint.EventThread:
		if err := m.changeThread(e); err != nil {
			return err
		}
	case checkpoint.EventSignal, checkpoint.EventInstr, checkpoint.EventGap, checkpoint.EventEnd:
	}
	ctx := m.s.Rec.Budget().Context()
	if err := sys.Effects(ctx, m.spendOnEffects(), m.Mem, e, m.s.objects); err != nil {
		var limit *checkpoint.LimitError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &limit):
			return limit
		}
		return m.diverged(err.Error(), "", "")
	}
	if e.Regs != nil && (e.Kind == checkpoint.EventExit || e.Kind == checkpoint.EventSignal) {
		loader.SetRegs(&m.CPU.State, e.Regs)
	}
	if e.XState != nil && !before {
		if err := m.CPU.SetXState(e.XState, m.s.layout); err != nil {
			return m.diverged("extended state in the log: "+err.Error(), "", "")
		}
	}
	m.step += 1 + uint32(m.CPU.RepIter)
	m.CPU.RepIter = 0
	m.next++
	m.expectBusError()
	switch e.Kind {
	case checkpoint.EventExit, checkpoint.EventSignal, checkpoint.EventSched:
		if err := m.compare(e); err != nil {
			return err
		}
	case checkpoint.EventEnter, checkpoint.EventFault, checkpoint.EventInstr, checkpoint.EventGap, checkpoint.EventEnd, checkpoint.EventThread:
	}
	if m.OnApplied != nil {
		m.OnApplied(e)
	}
	return nil
}

// smallChange is the work of a call's changes of the map that is not charged, where they
// are no more than fewChanges: a program that makes many such calls has run as many
// instructions, and touched the pages.
const (
	smallChange = 1 << 14
	fewChanges  = 4
)

// spendOnEffects returns what charges what the next event changes, of the map and of memory,
// to the recording's budget, the first time that it is replayed: a file of a few kilobytes can
// have each event change all of a map.
func (m *Machine) spendOnEffects() func(int64) error {
	m.s.mu.Lock()
	isNew := m.next >= m.iv.charged
	m.iv.charged = max(m.iv.charged, m.next+1)
	m.s.mu.Unlock()
	all, free := int64(0), int64(0)
	e := &m.iv.Events[m.next]
	if e.Kind != checkpoint.EventSignal && len(e.Maps) <= fewChanges { // a signal is there without an instruction
		free = smallChange
	}
	return func(n int64) error {
		if m.s.Pool.Full() {
			return m.s.full(m.iv.ID)
		}
		if all += n; !isNew || all < free {
			return nil
		}
		return m.s.Rec.Budget().Spend(n, fmt.Sprintf("interval %d: changes of its memory", m.iv.ID))
	}
}

// compare checks an event's register hash against the present registers.
func (m *Machine) compare(e *checkpoint.Event) error {
	got := loader.Regs(&m.CPU.State)
	if checkpoint.HashRegs(&got) == e.RegHash {
		return nil
	}
	what := "registers at " + m.describe(e)
	if e.Regs != nil {
		if name, w, g, same := compareRegs(e.Regs, &got); !same {
			return m.diverged(name+" at "+m.describe(e), w, g)
		}
	}
	return m.diverged(what, fmt.Sprintf("hash %#x", e.RegHash), fmt.Sprintf("hash %#x", checkpoint.HashRegs(&got)))
}

// describe names an event for people.
func (m *Machine) describe(e *checkpoint.Event) string {
	n := fmt.Sprintf("event %d", m.next)
	switch e.Kind {
	case checkpoint.EventEnter:
		return n + ", the entry of " + sys.Name(e.NR)
	case checkpoint.EventExit:
		return n + ", the exit of " + sys.Name(e.NR)
	case checkpoint.EventSignal:
		return fmt.Sprintf("%s, signal %d", n, e.Signo)
	case checkpoint.EventFault:
		return fmt.Sprintf("%s, a fault with signal %d at address %#x", n, e.Signo, e.Addr)
	case checkpoint.EventInstr:
		return n + ", a trapped instruction"
	case checkpoint.EventSched:
		return fmt.Sprintf("%s, a switch to thread %d", n, e.TID)
	case checkpoint.EventThread:
		return fmt.Sprintf("%s, the %s of thread %d", n, e.Thread, e.TID)
	default:
		return n
	}
}

// atSyscall is called behind a SYSCALL instruction: the next event must be
// its entry.
func (m *Machine) atSyscall() error {
	m.step = 0
	if m.next < len(m.iv.Events) && m.iv.Events[m.next].Kind == checkpoint.EventEnter {
		m.afterSyscall = true
		return nil
	}
	return m.diverged("system call", m.expected(), sys.Name(int64(m.CPU.R[x86.RAX])))
}

// expected names what the log has next.
func (m *Machine) expected() string {
	if m.next < len(m.iv.Events) {
		return m.describe(&m.iv.Events[m.next])
	}
	return "the end of the interval"
}

// trappedKinds are the instructions that the log has, by how the CPU stops at them.
var trappedKinds = map[x86.Exit]checkpoint.InstrKind{
	x86.ExitRDTSC: checkpoint.InstrRDTSC, x86.ExitRDTSCP: checkpoint.InstrRDTSCP, x86.ExitCPUID: checkpoint.InstrCPUID, x86.ExitRandom: checkpoint.InstrRandom,
}

// trapped gives a trapped instruction its recorded result. A CPUID that the
// recorder could not trap is answered from the recorded CPU's table.
func (m *Machine) trapped(x x86.Exit) error {
	kind := trappedKinds[x]
	c := m.CPU
	// Some CPUIDs, or all, the recorder could not trap: then the next event can be another one's.
	untrapped := kind == checkpoint.InstrCPUID && !m.s.Rec.Manifest().CPU.Faulting
	if m.next < len(m.iv.Events) && m.iv.Events[m.next].Kind == checkpoint.EventInstr {
		e := &m.iv.Events[m.next]
		if e.Instr == kind && (!untrapped || m.hasRegsOf(e)) {
			if m.OnEvent != nil {
				m.OnEvent(e)
			}
			if err := m.compare(e); err != nil {
				return err
			}
			m.setOut(kind, e.Out)
			m.next++
			m.expectBusError()
			if m.OnApplied != nil {
				m.OnApplied(e)
			}
			return nil
		}
	}
	if m.next < len(m.iv.Events) && m.iv.Events[m.next].Kind == checkpoint.EventFault {
		// The program itself made the instruction fault (PR_SET_TSC,
		// ARCH_SET_CPUID).
		if m.hasRegsOf(&m.iv.Events[m.next]) {
			m.faulted = true
			return nil
		}
	}
	if untrapped {
		out := m.s.cpu.CPUID(uint32(c.R[x86.RAX]), uint32(c.R[x86.RCX]))
		m.setOut(kind, [4]uint64{uint64(out[0]), uint64(out[1]), uint64(out[2]), uint64(out[3])})
		return nil
	}
	if x == x86.ExitRandom { // the recorder has not seen it
		return m.unsupported()
	}
	return m.diverged("trapped instruction", m.expected(), fmt.Sprintf("instruction kind %d", kind))
}

// hasRegsOf reports whether the registers are those that an event was recorded with.
func (m *Machine) hasRegsOf(e *checkpoint.Event) bool {
	now := loader.Regs(&m.CPU.State)
	return checkpoint.HashRegs(&now) == e.RegHash
}

// setOut stores the result of a trapped instruction, as an event has it, and retires it.
func (m *Machine) setOut(kind checkpoint.InstrKind, out [4]uint64) {
	c := m.CPU
	if kind == checkpoint.InstrRandom {
		c.SetRandom(out[0], out[1] != 0)
		return
	}
	c.R[x86.RAX], c.R[x86.RDX] = out[0], out[3]
	if kind != checkpoint.InstrRDTSC {
		c.R[x86.RCX] = out[2]
	}
	if kind == checkpoint.InstrCPUID {
		c.R[x86.RBX] = out[1]
	}
	c.SkipInstruction()
}

// stackLimit is how far below its end a stack is grown on access. The log
// decides about faults, so this only bounds runaway growth.
const stackLimit = 64 << 20

// onFault is called with the fault of the instruction at RIP: the log decides
// what it means.
func (m *Machine) onFault() error {
	f := m.CPU.Fault
	if m.solver != nil && f.Kind == x86.FaultNotCaptured {
		if done, err := m.solver.read(f.Addr); done || err != nil {
			return err
		}
	}
	if m.isLogged(f) {
		m.faulted = true
		return nil
	}
	if f.Kind == x86.FaultBP || f.Kind == x86.FaultDB || f.Kind == x86.FaultOF {
		// A trap: the kernel sees the instruction as done, with rip behind it.
		before := m.CPU.State
		if m.CPU.SkipInstruction() && m.isLogged(f) {
			m.step, m.faulted = 0, true
			return nil
		}
		m.CPU.State = before
	}
	if nr, ok := abi.Vsyscall(m.CPU.RIP); ok && f.Access == x86.Exec {
		return m.vsyscall(nr)
	}
	switch f.Kind {
	case x86.FaultNotMapped:
		if m.Mem.Grow(f.Addr, stackLimit) {
			return nil
		}
	case x86.FaultBeyondEOF:
		m.allowAccess()
		return nil
	case x86.FaultNotCaptured:
		return m.notCaptured(f.Addr)
	case x86.FaultUD:
		// The log has no fault here, so the recorded CPU has executed it, whatever CPUID says.
		if m.CPU.LearnHidden() {
			return nil
		}
		// Bytes that no CPU known here executes, but the recorded one did.
		var b [15]byte
		n, _ := m.CPU.Bus.Fetch(m.CPU.RIP, b[:])
		if _, err := x86.DecodeInst(b[:n], m.CPU.RIP, m.CPU.ID); errors.Is(err, x86.ErrUndefined) {
			return &UnsupportedError{At: m.Position(), RIP: m.CPU.RIP, Bytes: b[:n]}
		}
	default: // The program did not have it.
	}
	if m.next < len(m.iv.Events) && m.iv.Events[m.next].Kind == checkpoint.EventFault && sameAddr(f, &m.iv.Events[m.next]) {
		if err := m.compare(&m.iv.Events[m.next]); err != nil { // it is the fault that was recorded, with other registers
			return err
		}
	}
	return m.diverged("a fault", m.expected(), fmt.Sprintf("%s at address %#x", f.Kind, f.Addr))
}

// vsyscall is called where the program fetches from the vsyscall page: the kernel
// does system call nr and returns to the caller. That counts as one instruction;
// rax is the number at the entry, as with SYSCALL.
func (m *Machine) vsyscall(nr int64) error {
	c := m.CPU
	if m.next < len(m.iv.Events) {
		e, rax := &m.iv.Events[m.next], c.R[x86.RAX]
		isEntry := e.Kind == checkpoint.EventEnter && e.NR == nr
		c.R[x86.RAX] = uint64(nr)
		if !isEntry {
			c.R[x86.RAX] = noSys // What the kernel leaves there when it cannot write to the program.
		}
		switch same := m.hasRegsOf(e); {
		case same && isEntry:
			c.Retired++
			m.step, m.afterSyscall = 0, true
			return nil
		case same && e.Kind == checkpoint.EventFault:
			m.faulted = true
			return nil
		}
		c.R[x86.RAX] = rax
	}
	return &UnsupportedError{At: m.Position(), RIP: c.RIP, Name: sys.Name(nr) + " through the vsyscall page, recorded without --vsyscall,"}
}

// noSys is -ENOSYS in a register.
const noSys = ^uint64(abi.ENOSYS) + 1

// isLogged reports whether the next event is the fault f at the present
// registers.
func (m *Machine) isLogged(f x86.Fault) bool {
	if m.next >= len(m.iv.Events) {
		return false
	}
	e := &m.iv.Events[m.next]
	if e.Kind != checkpoint.EventFault || !sameAddr(f, e) && !m.isForced(e) {
		return false
	}
	return m.hasRegsOf(e)
}

// isForced reports whether an event is the SIGSEGV that the kernel forces where it cannot write the frame of a signal: behind a
// fault whose handler has no stack. It has no address, and comes at the same place.
func (m *Machine) isForced(e *checkpoint.Event) bool {
	if si := abi.Siginfo(e.Siginfo); m.next == 0 || si.Signo() != abi.SIGSEGV || si.Code() != abi.SI_KERNEL {
		return false
	}
	before := &m.iv.Events[m.next-1]
	return before.Kind == checkpoint.EventFault && before.RegHash == e.RegHash
}

// mayFault reports whether the instruction at RIP can be the one that makes the
// next event, a fault.
func (m *Machine) mayFault() bool {
	if m.faulted || m.next >= len(m.iv.Events) || m.iv.Events[m.next].Kind != checkpoint.EventFault {
		return false
	}
	got := loader.Regs(&m.CPU.State)
	if _, ok := abi.Vsyscall(got.RIP); ok {
		got.R[x86.RAX] = noSys
	}
	return checkpoint.HashRegs(&got) == m.iv.Events[m.next].RegHash
}

// sameAddr reports whether a memory fault is at the recorded address. Other
// exceptions carry no address that replay could compare.
func sameAddr(f x86.Fault, e *checkpoint.Event) bool {
	switch f.Kind {
	case x86.FaultNotMapped, x86.FaultProtection, x86.FaultBeyondEOF:
		return f.Addr == e.Addr
	default:
		return true
	}
}
