package gdbstub

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"vplay/replay/debug/api"
)

// Diversions. A client changes registers and memory to call a function of the
// program, or because its user wants to; a recording cannot change. So the first
// write that changes something makes a copy of the process at the present position,
// and all reads see the copy. It ends, and is gone, when the user moves on.
//
// What has to be recognised is a resume that is part of a call, which runs in the
// copy, from one by which the user moves on. Clients bracket a call in different
// ways (gdb by siginfo, lldb by QSaveRegisterState), and gdb reads siginfo for
// other reasons, too. What a call cannot do without is the same for all: the stack
// pointer is below where it was, on top of the stack is the address the function
// shall return to, and there waits a breakpoint. A call begins with a resume in
// that state, and is over when the registers have been written back. Until then
// every resume forward belongs to it: a breakpoint within the function stops, the
// user looks around, steps, and goes on. Between calls the copy stays, for gdb
// calls malloc for the string of `call puts("x")` first.
//
// A user who moves on with a change of theirs, by "set var", "set $rax", "return"
// or out of an unfinished call, is told that it is dropped. Writes of what is there
// already change nothing: gdb writes registers back now and then.

// diversion is a session's view of its target's copy.
type diversion struct {
	on     bool
	tid    int           // the thread that the copy runs
	origin api.Registers // of tid in the recording

	running   bool // a call has begun and its registers are not written back
	called    bool // a call has been made
	bracket   bool // siginfo was read: what is written next may belong to a call
	changed   bool // the user changed something
	tentative bool // something was written that may belong to a call
	moved     bool // RIP was written since the last stop
	over      bool // the copy cannot go on from here

	saved map[int]api.Registers // QSaveRegisterState
	next  int                   // the last number given out
}

// divert makes sure that there is a copy. The error's text is for the user.
func (s *session) divert() error {
	t, ok := s.target.(api.DivertTarget)
	switch {
	case !ok:
		return api.ErrNotSupported
	case s.div.on:
		return nil
	}
	tid := s.generalThread()
	regs, err := s.registers(tid)
	if err != nil {
		return err
	}
	if err := t.Divert(func(b []byte) { s.console(string(b)) }); err != nil {
		return err
	}
	s.forget()
	s.div = diversion{on: true, tid: tid, origin: *regs, bracket: s.div.bracket, saved: s.div.saved, next: s.div.next}
	return nil
}

// wrote notes that something was changed. Between calls it may be the client's
// doing; in a call everything is.
func (v *diversion) wrote() {
	switch {
	case v.running:
	case v.bracket || v.called:
		v.tentative = true
	default:
		v.changed = true
	}
}

// undivert drops the copy, if there is one.
func (s *session) undivert() {
	if s.div.on {
		s.div.on = false
		s.target.(api.DivertTarget).Undivert()
		s.forget()
	}
	s.div = diversion{}
}

// siginfoRead notes that a client read siginfo, as gdb does before a call.
func (v *diversion) siginfoRead() { v.bracket, v.tentative = true, false }

// writtenBack ends a call when the registers are what they were before it.
func (v *diversion) writtenBack(now *api.Registers) {
	if v.running && now.GPR == v.origin.GPR && now.RIP == v.origin.RIP {
		v.running, v.called, v.over, v.moved = false, true, false, false
	}
}

// leave is called for a resume. It reports whether the recording moves: then the
// copy has been dropped, and the user was told if that loses something.
func (s *session) leave(r api.Resume) bool {
	v := &s.div
	switch {
	case !v.on:
		v.bracket = false
		return true
	case r.Dir == api.Forward && s.rr.calling:
		return false
	case r.Dir == api.Forward && (!v.over || v.moved) && (v.running || s.beginsCall()):
		return false
	}
	lost := v.changed || v.tentative || v.running
	s.undivert()
	if lost {
		s.console("vplay: what was changed is dropped; the recording goes on from where it stood\n")
	}
	return true
}

// leaveOthers drops the copies of the other processes, for which time goes on, too.
func (s *session) leaveOthers() {
	now := s.inferior.pid
	s.each(func() {
		if s.inferior.pid != now && s.div.on {
			s.leave(api.Resume{Dir: api.Backward})
		}
	})
}

// beginsCall reports whether the copy stands where a function begins that the
// client has prepared a call of.
func (s *session) beginsCall() bool {
	regs, err := s.registers(s.div.tid)
	if err != nil || regs.GPR[gprRSP] >= s.div.origin.GPR[gprRSP] {
		return false
	}
	b, err := s.read(regs.GPR[gprRSP], 8)
	if err != nil || len(b) < 8 {
		return false
	}
	to := binary.LittleEndian.Uint64(b)
	for k := range s.breaks {
		if k.addr == to && k.kind <= api.BreakHardware {
			return true
		}
	}
	return false
}

// resumeDiverted runs the copy and reports its stop.
func (s *session) resumeDiverted(r api.Resume) reply {
	v := &s.div
	skip := !v.moved
	v.running, v.moved, v.bracket, v.tentative, v.over = true, false, false, false, false
	s.forget()
	var stop api.Stop
	var err error
	ok := s.await("call", func(ctx context.Context) {
		stop, err = s.target.(api.DivertTarget).ResumeDiverted(ctx, r, skip)
	})
	if s.closed != nil {
		return reply{silent: true}
	}
	switch {
	case !ok:
		return s.endDiversion("internal error, see the log of the server")
	case stop.Kind == api.StopExited:
		return s.endDiversion(fmt.Sprintf("the program called exit(%d) in the call, which ends with that", stop.Code))
	case err != nil:
		s.console("vplay: " + err.Error() + "\n")
		v.over = true
		if stop.Kind == api.StopNone {
			stop = api.Stop{Kind: api.StopSignal, Signo: sigTRAP, TID: v.tid}
		}
	case stop.Kind == api.StopSignal && stop.Signo != sigTRAP:
		v.over = true
	}
	if stop.Note != "" {
		s.console(strings.TrimSuffix(stop.Note, "\n") + "\n")
	}
	s.stoppedAt(stop)
	return s.stopReply(stop)
}

// endDiversion drops the copy for a reason and reports where the recording stands.
func (s *session) endDiversion(why string) reply {
	s.console("vplay: " + why + "; the recording stands where it stood\n")
	s.undivert()
	s.stoppedAt(s.target.Stop())
	return s.plainStop(api.Stop{Kind: api.StopStep, TID: s.stop.TID})
}

// writeSiginfo answers qXfer:siginfo:write::OFFSET:DATA with the number of bytes
// taken. gdb writes siginfo back when a call is done; there is no signal to change.
func (s *session) writeSiginfo(arg string) reply {
	_, rest, _ := strings.Cut(arg, ":") // the annex is empty
	off, data, ok := strings.Cut(rest, ":")
	if _, can := s.target.(api.DivertTarget); !can {
		return reply{}
	}
	if _, hex := parseHex(off); !ok || !hex || !s.live {
		return replyError
	}
	if s.srv.opt.RR {
		s.rrCalled()
	}
	return text(hexOf(uint64(len(data))))
}

// allocate answers lldb's _M SIZE,PERMISSIONS.
func (s *session) allocate(arg string) reply {
	if s.srv.opt.RR { // rr has no such packet, and Delve would write to what it gets
		return reply{}
	}
	if !strings.HasPrefix(arg, "M") && !strings.HasPrefix(arg, "m") {
		return reply{}
	}
	t, ok := s.target.(api.DivertTarget)
	if !ok || !s.live {
		return reply{}
	}
	if arg[0] == 'm' {
		addr, ok := parseHex(arg[1:])
		if !ok || !s.div.on || t.FreeMemory(addr) != nil {
			return replyError
		}
		return replyOK
	}
	size, perms, _ := strings.Cut(arg[1:], ",")
	n, ok := parseHex(size)
	if !ok || n == 0 {
		return replyError
	}
	prot := 0
	for i, c := range "rwx" {
		if strings.ContainsRune(perms, c) {
			prot |= 1 << i
		}
	}
	if err := s.divert(); err != nil {
		return s.fail(err.Error())
	}
	addr, err := t.AllocateMemory(n, prot)
	if err != nil {
		return s.fail(err.Error())
	}
	s.forget()
	return text(hexOf(addr))
}

// maxSaved bounds the register states a client has saved.
const maxSaved = 64

// saveRegisters answers lldb's QSaveRegisterState[;thread:TID;] with a number.
func (s *session) saveRegisters(arg string) reply {
	tid, ok := s.threadSuffix(arg)
	if _, can := s.target.(api.DivertTarget); !can {
		return reply{}
	}
	regs, err := s.registers(tid)
	if !ok || err != nil || len(s.div.saved) >= maxSaved {
		return replyError
	}
	if s.div.saved == nil {
		s.div.saved = map[int]api.Registers{}
	}
	s.div.next++
	s.div.saved[s.div.next] = *regs
	s.div.siginfoRead()
	return text(itoa(s.div.next))
}

// restoreRegisters answers QRestoreRegisterState:NUMBER[;thread:TID;].
func (s *session) restoreRegisters(arg string) reply {
	number, suffix, _ := strings.Cut(arg, ";")
	tid, ok := s.threadSuffix(suffix)
	n := 0
	for _, c := range number {
		if c < '0' || c > '9' || n > 1<<20 {
			return replyError
		}
		n = 10*n + int(c-'0')
	}
	regs, have := s.div.saved[n]
	if !ok || !have {
		return replyError
	}
	delete(s.div.saved, n)
	return s.setRegisters(tid, &regs)
}

// threadSuffix reads thread:TID; and gives the general thread without one.
func (s *session) threadSuffix(arg string) (tid int, ok bool) {
	arg = strings.TrimSuffix(arg, ";")
	id, has := strings.CutPrefix(arg, "thread:")
	if !has {
		return s.generalThread(), arg == "" && s.generalThread() != 0
	}
	t, ok := s.parseThread(id)
	return t.tid, ok && t.tid != 0 && s.useThread(t)
}
