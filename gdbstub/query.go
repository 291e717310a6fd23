package gdbstub

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vplay/replay/debug/api"
)

// Small packets about the connection and the process: the handshake, threads,
// thread-local storage, and which signals and system calls to report (gdb manual,
// appendix "Remote Serial Protocol", "General Query Packets"). A packet that reads
// memory, registers or documents, or moves the target, has a file of its own.

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

// allThreads lists the threads of all processes that are held.
func (s *session) allThreads() []api.Thread {
	var all []api.Thread
	now := s.inferior.pid
	for _, pid := range s.pids() {
		if s.holds(pid) && s.use(pid) {
			all = append(all, s.threads()...)
		}
	}
	s.use(now)
	return all
}

// threads lists the threads of the process that the target is about, with sane ids.
func (s *session) threads() []api.Thread {
	if !s.holds(s.inferior.pid) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.target.Threads()), func(t api.Thread) bool { return t.TID <= 0 })
}

// threadID writes the id of a thread of the process that the target is about, as the
// client reads it.
func (s *session) threadID(tid int) string { return s.writeThread(threadRef{s.inferior.pid, tid}) }

func (s *session) writeThread(t threadRef) string {
	if s.multiprocess {
		return fmt.Sprintf("p%x.%x", t.pid, t.tid)
	}
	return hexOf(uint64(t.tid))
}

// parseThread reads a thread id: TID, pPID or pPID.TID, hex; 0 and -1 mean any
// and all and come back as 0. It reports false for a wrong one, such as one of a
// process that is not there.
func (s *session) parseThread(arg string) (t threadRef, ok bool) {
	if strings.HasPrefix(arg, "p") {
		pid, thread, hasThread := strings.Cut(arg[1:], ".")
		arg = "-1"
		if hasThread {
			arg = thread
		}
		if pid != "-1" && pid != "0" {
			if t.pid, ok = parseHexInt(pid); !ok || !slices.Contains(s.pids(), t.pid) {
				return threadRef{}, false
			}
		}
	}
	if arg == "-1" {
		return t, true
	}
	t.tid, ok = parseHexInt(arg)
	return t, ok
}

// useThread makes the process of a thread the one that the target is about. It reports
// whether the thread is there; any is.
func (s *session) useThread(t threadRef) bool {
	if t.pid != 0 && !s.use(t.pid) {
		return false
	}
	return t.tid == 0 || s.exists(t.tid)
}

// setThread answers Hg and Hc. Without a process any of "any" is right.
func (s *session) setThread(arg string) reply {
	if arg == "" {
		return replyError
	}
	t, ok := s.parseThread(arg[1:])
	if !ok || !s.useThread(t) {
		return replyError
	}
	switch arg[0] {
	case 'g':
		s.general = t
	case 'c':
		s.resumed = t
	default:
		return reply{}
	}
	return replyOK
}

// exists reports whether a thread is there.
func (s *session) exists(tid int) bool {
	return slices.ContainsFunc(s.threads(), func(t api.Thread) bool { return t.TID == tid })
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

// threadAlive answers T.
func (s *session) threadAlive(arg string) reply {
	t, ok := s.parseThread(arg)
	if !ok || t.tid == 0 || !s.useThread(t) {
		return replyError
	}
	s.selected.asked(threadRef{s.inferior.pid, t.tid}, len(s.allThreads()))
	return replyOK
}

// currentThread answers qC.
func (s *session) currentThread(string) reply {
	tid := s.generalThread()
	if tid == 0 {
		return replyError
	}
	return text("QC" + s.threadID(tid))
}

// firstThreads and nextThreads list ids, a packet at a time.
func (s *session) firstThreads(string) reply {
	s.threadPage = 0
	return s.nextThreads("")
}

func (s *session) nextThreads(string) reply {
	ts := s.allThreads()
	if s.threadPage >= len(ts) {
		s.selected.lists = true
		return text("l")
	}
	out := []byte{'m'}
	for i, t := range ts[s.threadPage:] {
		if len(out) > MaxPacket-64 {
			break
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, s.writeThread(threadRef{t.PID, t.TID})...)
		s.threadPage++
	}
	return reply{data: out}
}

// threadName answers qThreadExtraInfo.
func (s *session) threadName(arg string) reply {
	want, ok := s.parseThread(arg)
	if !ok || !s.useThread(want) {
		return replyError
	}
	for _, t := range s.threads() {
		if t.TID == want.tid {
			name := t.Name
			if name == "" {
				name = "thread " + strconv.Itoa(t.TID)
			}
			return text(hexText(clip(name, 256)))
		}
	}
	return replyError
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

// tlsAddress answers qGetTLSAddr:thread,offset,lm.
func (s *session) tlsAddress(arg string) reply {
	t, ok := s.target.(api.TLSTarget)
	if !ok {
		return reply{}
	}
	f := strings.Split(arg, ",")
	if len(f) != 3 {
		return replyError
	}
	of, ok1 := s.parseThread(f[0])
	off, ok2 := parseHex(f[1])
	lm, ok3 := parseHex(f[2])
	if !ok1 || !ok2 || !ok3 || of.tid == 0 || !s.useThread(of) {
		return replyError
	}
	addr, err := t.TLSAddress(of.tid, off, lm)
	if err != nil {
		return s.fail(err.Error())
	}
	return text(hexOf(addr))
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
