package gdbstub

import (
	"fmt"
	"strconv"

	"vplay/replay/debug/api"
)

// Stop replies: where the process is, why it stopped, and the registers that go along
// (gdb manual, appendix "Remote Serial Protocol", "Stop Reply Packets"). What makes it
// move is in resume.go.

func itoa(n int) string { return strconv.Itoa(n) }

// Signals that stand for stops which are not signals. SIGTRAP and SIGINT have
// the same number everywhere.
const (
	sigINT  = 2
	sigTRAP = 5
)

// expedited lists the registers that every stop reply carries: rbp, rsp, rip.
// With these gdb needs no g packet while it steps.
var expedited = [...]int{6, 7, 16}

// plainStop is the reply to "?", vAttach and vRun: where the process is, without
// an event, because what stopped it belongs to a command given before. The
// process of a recording that has ended is still there to look at.
func (s *session) plainStop(st api.Stop) reply {
	switch st.Kind {
	case api.StopSignal, api.StopInterrupted:
	default:
		st = api.Stop{Kind: api.StopStep, TID: st.TID}
	}
	return s.stopReply(st)
}

// stopReply writes a stop for the client.
func (s *session) stopReply(st api.Stop) reply {
	sig := sigTRAP
	switch st.Kind {
	case api.StopExited:
		return text(fmt.Sprintf("W%02x%s", st.Code&0xff, s.ofProcess()))
	case api.StopKilled:
		return text(fmt.Sprintf("X%02x%s", s.signal(st.Signo)&0xff, s.ofProcess()))
	case api.StopSignal:
		sig = s.signal(st.Signo)
	case api.StopInterrupted:
		sig = sigINT
	case api.StopReplayEnd:
		if s.srv.opt.RR {
			sig = rrEnd
		}
	case api.StopNoThread: // signal 0 is a stop for no reason: gdb takes no notice of a step of another thread
		sig = 0
	case api.StopReplayBegin:
		if s.srv.opt.RR {
			sig = rrBegin
		}
	default: // gdb knows the others as traps with a reason.
	}
	out := fmt.Appendf(nil, "T%02x", sig&0xff)
	tid, core := s.stopThread(st)
	if tid != 0 {
		out = s.appendExpedited(out, tid)
		out = fmt.Appendf(out, "thread:%s;core:%x;", s.threadID(tid), core)
	}
	return reply{data: append(out, s.reason(st)...)}
}

// librariesReply tells the client to read the list of libraries.
func (s *session) librariesReply(st api.Stop) reply {
	r := s.stopReply(api.Stop{Kind: api.StopStep, TID: st.TID})
	r.data = append(r.data, "library:;"...)
	return r
}

// ofProcess ends an exit reply.
func (s *session) ofProcess() string {
	if s.multiprocess {
		return ";process:" + hexOf(uint64(s.inferior.pid))
	}
	return ""
}

// stopThread returns the thread a stop is about and its CPU.
func (s *session) stopThread(st api.Stop) (tid, core int) {
	ts := s.threads()
	for _, t := range ts {
		if t.TID == st.TID {
			return t.TID, max(t.Core, 0)
		}
	}
	if len(ts) > 0 {
		return ts[0].TID, max(ts[0].Core, 0)
	}
	return 0, 0
}

// appendExpedited appends the registers of a stop reply.
func (s *session) appendExpedited(out []byte, tid int) []byte {
	regs, err := s.registers(tid)
	if err != nil {
		return out
	}
	d := s.description()
	for _, num := range expedited {
		if r := d.byNum[num]; r != nil && r.known(regs) {
			out = fmt.Appendf(out, "%02x:", num)
			out = append(r.appendHex(out, regs), ';')
		}
	}
	return out
}

// reason tells what kind of stop it is, as far as the client asked to know.
func (s *session) reason(st api.Stop) string {
	switch st.Kind {
	case api.StopBreakpoint:
		if s.swbreak {
			return "swbreak:;"
		}
	case api.StopHWBreakpoint:
		if s.hwbreak {
			return "hwbreak:;"
		}
	case api.StopWatchWrite:
		return "watch:" + hexOf(st.Addr) + ";"
	case api.StopWatchRead:
		return "rwatch:" + hexOf(st.Addr) + ";"
	case api.StopWatchAccess:
		return "awatch:" + hexOf(st.Addr) + ";"
	case api.StopExec:
		return "exec:" + hexText(st.Program) + ";"
	case api.StopReplayBegin:
		return "replaylog:begin;"
	case api.StopReplayEnd:
		return "replaylog:end;"
	case api.StopSyscallEntry:
		return fmt.Sprintf("syscall_entry:%x;", st.Syscall)
	case api.StopSyscallReturn:
		return fmt.Sprintf("syscall_return:%x;", st.Syscall)
	default: // The signal says it, or nothing is to be said.
	}
	return ""
}
