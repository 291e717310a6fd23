package gdbstub

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vplay/replay/debug/api"
)

// Packets about threads: which there are, which one the next packets are about, its name
// and its thread-local storage; and how the protocol writes a thread, as TID or pPID.TID
// (gdb manual, appendix "Remote Serial Protocol", "Packets", thread-id).

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
