package gdbstub

import (
	"slices"
	"strings"

	"vplay/replay/debug/api"
)

// Small packets about the connection and the process: the handshake, and which signals
// and system calls to report (gdb manual, appendix "Remote Serial Protocol", "General
// Query Packets"). Those about threads are in threads.go. A packet that reads memory,
// registers or documents, or moves the target, has a file of its own.

// supported is the handshake. The reply offers what the session serves; it
// does not offer non-stop, tracepoints and fork events.
func (s *session) supported(arg string) reply {
	for f := range strings.SplitSeq(arg, ";") {
		switch f {
		case "multiprocess+":
			s.multiprocess = true
		case "swbreak+":
			s.swbreak = true
		case "hwbreak+":
			s.hwbreak = true
		case "exec-events+":
			s.execEvents = true
		case "no-resumed+":
			s.noResumed = true
		case "error-message+":
			s.errorMessages = true
		}
	}
	out := "PacketSize=" + hexOf(MaxPacket) + ";QStartNoAckMode+;multiprocess+;swbreak+;hwbreak+;" +
		"exec-events+;vContSupported+;ReverseStep+;ReverseContinue+;ConditionalBreakpoints+;QPassSignals+;QCatchSyscalls+;" +
		"qXfer:features:read+;qXfer:auxv:read+;qXfer:exec-file:read+;qXfer:threads:read+;" +
		"qXfer:libraries-svr4:read+;qXfer:siginfo:read+;binary-upload+"
	if _, ok := s.target.(api.DivertTarget); ok {
		out += ";qXfer:siginfo:write+"
	}
	if s.errorMessages {
		out += ";error-message+"
	}
	return text(out)
}

// startNoAck ends acknowledgements, after its own reply.
func (s *session) startNoAck(string) reply {
	r := text("OK")
	r.noAck = true
	return r
}

// symbol declines to look symbols up.
func (s *session) symbol(string) reply { return replyOK }

// nonStop takes only what is so already.
func (s *session) nonStop(arg string) reply {
	if arg == "0" {
		return replyOK
	}
	return s.fail("a replay has no non-stop mode")
}

// extend switches to the extended protocol: the connection outlives the
// process, and the client takes it by vAttach or vRun. Were a process reported
// at once, gdb's attach would begin by killing it.
func (s *session) extend(string) reply {
	if !s.extended {
		s.extended = true
		s.live = false
		clear(s.taken)
	}
	return replyOK
}

// why answers "?".
func (s *session) why(string) reply {
	if !s.live {
		return text("W00")
	}
	s.use(s.stopPID)
	s.start()
	return s.plainStop(s.stop)
}

// generalThread returns the thread that register packets are about; 0 if there is
// no process.
func (s *session) generalThread() int {
	ts := s.threads()
	wanted := []int{s.general.tid, s.stop.TID}
	if s.inferior.pid != s.stopPID {
		wanted[1] = s.target.Stop().TID
	}
	for _, want := range wanted {
		if slices.ContainsFunc(ts, func(t api.Thread) bool { return t.TID == want }) {
			return want
		}
	}
	if len(ts) == 0 {
		return 0
	}
	return ts[0].TID
}

// isAttached answers whether quitting detaches (1) or kills (0).
func (s *session) isAttached(arg string) reply {
	if arg != "" {
		if n, ok := parseHexInt(arg); !ok || !s.holds(n) && s.live {
			return replyError
		}
	}
	switch {
	case !s.live:
		return replyError
	case s.target.Process().Attached:
		return text("1")
	}
	return text("0")
}

// maxListed bounds lists of signals and system calls.
const maxListed = 1024

// parseHexList parses hex numbers separated by semicolons.
func parseHexList(arg string) ([]int, bool) {
	var out []int
	for f := range strings.SplitSeq(arg, ";") {
		if f == "" {
			continue
		}
		n, ok := parseHexInt(f)
		if !ok || len(out) == maxListed {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}

// passSignals answers QPassSignals:SIG;SIG… with signal numbers in hex.
func (s *session) passSignals(arg string) reply {
	list, ok := parseHexList(arg)
	if !ok {
		return replyError
	}
	s.pass = nil
	for _, g := range list {
		if n := s.linuxSignal(g); n != 0 {
			s.pass = append(s.pass, n)
		}
	}
	slices.Sort(s.pass)
	s.pass = slices.Compact(s.pass)
	return replyOK
}

// catchSyscalls answers QCatchSyscalls:0, QCatchSyscalls:1 and
// QCatchSyscalls:1;NR;NR… with system call numbers in hex.
func (s *session) catchSyscalls(arg string) reply {
	on, rest, _ := strings.Cut(arg, ";")
	list, ok := parseHexList(rest)
	if !ok || on != "0" && on != "1" {
		return replyError
	}
	slices.Sort(list)
	s.catchAll = on == "1" && len(list) == 0
	s.catch = nil
	if on == "1" {
		s.catch = slices.Compact(list)
	}
	return replyOK
}

// signal translates a signal for the client, linuxSignal one from it. lldb
// uses the numbers of the target's system.
func (s *session) signal(linux int) int {
	if s.lldb {
		return linux & 0xff
	}
	return gdbSignal(linux)
}

func (s *session) linuxSignal(n int) int {
	if s.lldb {
		return n
	}
	return linuxSignal(n)
}
