package gdbstub

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"vplay/replay/debug/api"
)

// A client's conversation: its state, the table of packets, and how one is read and answered.
// The packets themselves are in files by topic (memory.go, resume.go, query.go and so on).

// session is one client's conversation. One goroutine runs it; the target is
// called from there, or from the goroutine of await while the session waits.
type session struct {
	srv    *Server
	target api.Target
	conn   *conn
	ctx    context.Context

	pending []event // came in while the target ran
	closed  error   // why the connection ended, nil while it is open

	// What the client said about itself.
	multiprocess, swbreak, hwbreak, execEvents, noResumed, errorMessages, errorStrings, lldb, extended bool

	*inferior                   // the process that the target is about
	inferiors map[int]*inferior // by process id, those that the client has asked about
	taken     map[int]bool      // the client holds these
	filesOf   int               // vFile:setfs: whose files are meant; 0 = any

	toldOthers bool     // the client's user knows that there are other processes
	live       bool     // the client holds a process
	attached   bool     // the client has held the process since the last letting go
	stop       api.Stop // the last stop
	stopPID    int      // its process
	held       held     // a stop that is reported when the client resumes
	withheld   withheld
	general    threadRef // Hg; 0 = that of the stop
	resumed    threadRef // Hc; 0 = any
	selected   selection
	pass       []int
	catchAll   bool
	catch      []int
	files      files
	doc        document
	threadPage int // how many ids qfThreadInfo has given out
	rr         rrState
	panics     int
	exit       bool   // a monitor command asked for the end of the server
	job        *job   // a monitor command that runs on between packets, or nil
	onPacket   func() // called by await when a packet comes, which then ends what it waits for; nil: it waits
}

// reply is the answer to a packet. The zero reply is the empty packet, which
// says "not supported".
type reply struct {
	data   []byte
	silent bool // send nothing
	noAck  bool // acknowledgements end after this reply
}

var replyOK = text("OK")

// replyError is the reply for all errors that have no text.
var replyError = text("E01")

func text(s string) reply { return reply{data: []byte(s)} }

// handler answers one packet; arg is the payload after the name.
type handler func(s *session, arg string) reply

// maxPending bounds what a client may send while the target runs.
const maxPending = 64

// errTooMany ends the session of a client that exceeds maxPending.
var errTooMany = fmt.Errorf("%w: too many packets while the target runs", ErrPacketTooLong)

// run converses until the connection ends.
func (s *session) run() error {
	defer s.end()
	s.live, s.attached = true, true
	s.start()
	for {
		ev := s.next()
		switch ev.kind {
		case evClosed:
			return s.closed
		case evPacket:
			if err := s.answer(ev.data); err != nil {
				return err
			}
			if s.exit {
				return api.ErrExit
			}
		default: // an interrupt that came when nothing but perhaps a job ran
			s.endJob()
		}
	}
}

// next waits for the next event.
func (s *session) next() event {
	if s.closed != nil { // nobody waits for what is still pending
		return event{kind: evClosed}
	}
	if len(s.pending) > 0 {
		ev := s.pending[0]
		s.pending = s.pending[1:]
		return ev
	}
	select {
	case ev := <-s.conn.events:
		if ev.kind == evClosed {
			s.closed = ev.err
		}
		return ev
	case <-s.conn.done: // closed from our side: the reader's last word may be lost
		s.closed = net.ErrClosed
		return event{kind: evClosed}
	}
}

// answer handles one packet and sends the reply.
func (s *session) answer(payload []byte) error {
	start := time.Now()
	r := s.handle(string(payload))
	if s.srv.log.Enabled(s.ctx, slog.LevelDebug) {
		s.srv.log.Debug("packet", "in", printable(payload), "out", printable(r.data), "silent", r.silent, "took", time.Since(start))
	}
	if r.silent {
		return nil
	}
	if r.noAck { // before the reply: the next packet may follow it at once
		s.conn.noAck.Store(true)
	}
	return s.conn.packet(r.data)
}

// handle is the dispatcher: packet in, reply out. A panic becomes E01.
func (s *session) handle(packet string) (r reply) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(packet, p)
			r = replyError
		}
	}()
	if s.job != nil && !isJobPacket(packet) {
		s.endJob()
	}
	s.selected.packet()
	s.useGeneral()
	h, arg := lookup(packet)
	if h == nil {
		return reply{}
	}
	r = h(s, arg)
	if len(r.data) > MaxPacket { // the handlers bound what they build
		return replyError
	}
	return r
}

// panicked logs a panic in a handler or in the target.
func (s *session) panicked(what string, p any) {
	s.panics++
	s.srv.log.Error("panic", "packet", clip(what, 80), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// printable returns the beginning of a payload for the log.
func printable(b []byte) string {
	q := strconv.QuoteToASCII(string(b[:min(len(b), 160)]))
	return q[1 : len(q)-1]
}

// clip shortens a text.
func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

// letters holds the packets named by one byte.
var letters map[byte]handler

// names holds the q, Q, v and j packets: the name goes up to the first of ":;,".
var names map[string]handler

func init() { // not literals: handlers refer to the tables through handle
	letters = map[byte]handler{
		'!': (*session).extend,
		'?': (*session).why,
		'_': (*session).allocate,
		'A': refuseRun,
		'b': (*session).back,
		'c': (*session).resumeC,
		'C': (*session).signalC,
		'D': (*session).detach,
		'g': (*session).readRegisters,
		'G': (*session).writeRegisters,
		'H': (*session).setThread,
		'k': (*session).kill,
		'm': (*session).readMemory,
		'M': (*session).writeMemoryHex,
		'p': (*session).readRegister,
		'P': (*session).writeRegister,
		'R': (*session).restart,
		's': (*session).resumeS,
		'S': (*session).signalS,
		'T': (*session).threadAlive,
		'x': (*session).readMemoryBinary,
		'X': (*session).writeMemoryBinary,
		'z': (*session).clearBreak,
		'Z': (*session).setBreak,
	}
	names = map[string]handler{
		"qSupported":            (*session).supported,
		"QStartNoAckMode":       (*session).startNoAck,
		"qC":                    (*session).currentThread,
		"qCRC":                  (*session).crc,
		"qfThreadInfo":          (*session).firstThreads,
		"qsThreadInfo":          (*session).nextThreads,
		"qThreadExtraInfo":      (*session).threadName,
		"qAttached":             (*session).isAttached,
		"qXfer":                 (*session).xfer,
		"qRcmd":                 (*session).monitor,
		"qRRCmd":                (*session).rrCommand,
		"qSearch":               (*session).search,
		"qSymbol":               (*session).symbol,
		"qGetTLSAddr":           (*session).tlsAddress,
		"QPassSignals":          (*session).passSignals,
		"QCatchSyscalls":        (*session).catchSyscalls,
		"QNonStop":              (*session).nonStop,
		"QSaveRegisterState":    (*session).saveRegisters,
		"QRestoreRegisterState": (*session).restoreRegisters,
		"qHostInfo":             (*session).hostInfo,
		"qProcessInfo":          (*session).processInfo,
		"qMemoryRegionInfo":     (*session).memoryRegion,
		"QEnableErrorStrings": func(s *session, _ string) reply {
			s.lldb, s.errorStrings = true, true
			return replyOK
		},
		"vCont":   (*session).vCont,
		"vCont?":  func(*session, string) reply { return text("vCont;c;C;s;S;t;r") },
		"vKill":   (*session).vKill,
		"vAttach": (*session).vAttach,
		"vRun":    (*session).vRun,
		"vFile":   (*session).vFile,
	}
}

// lookup finds the handler of a packet and the rest after its name. A nil
// handler means that the packet is not known, as vMustReplyEmpty is on purpose.
func lookup(packet string) (handler, string) {
	if packet == "" {
		return nil, ""
	}
	switch packet[0] {
	case 'q', 'Q', 'v', 'j':
		name, rest := packet, ""
		if i := strings.IndexAny(packet, ":;,"); i >= 0 {
			name, rest = packet[:i], packet[i+1:]
		}
		return names[name], rest
	}
	return letters[packet[0]], packet[1:]
}

// await runs f while the connection is watched: an interrupt, the end of the
// connection and the end of the server cancel its context. It reports whether
// f returned without a panic.
func (s *session) await(what string, f func(ctx context.Context)) bool {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		f(ctx)
	}()
	events, gone := s.conn.events, s.conn.done
	for {
		select {
		case <-gone:
			s.closed = net.ErrClosed
			events, gone = nil, nil
			cancel()
		case p := <-done:
			if p != nil {
				s.panicked(what, p)
			}
			return p == nil
		case ev := <-events:
			switch {
			case ev.kind == evInterrupt:
				cancel()
			case ev.kind == evClosed:
				s.closed = ev.err
				events, gone = nil, nil
				cancel()
			case len(s.pending) < maxPending:
				s.pending = append(s.pending, ev)
				if s.onPacket != nil {
					s.onPacket()
					cancel()
				}
			default: // no client does that
				s.closed = errTooMany
				events, gone = nil, nil
				s.conn.close()
				cancel()
			}
		}
	}
}

// letGo ends the client's hold on the process.
func (s *session) letGo() {
	s.endJob()
	if !s.attached {
		return
	}
	s.live, s.attached = false, false
	s.each(func() {
		s.guard("end the diversion", s.undivert)
		s.clearBreaks()
	})
	s.filesOf = 0
	clear(s.taken)
	s.pass, s.catch, s.catchAll, s.held, s.withheld = nil, nil, false, held{}, withheld{}
	s.general, s.resumed, s.selected = threadRef{}, threadRef{}, selection{}
	s.forget()
	s.guard("detached", s.target.Detached)
}

// clearBreaks takes all breakpoints from the target.
func (s *session) clearBreaks() {
	for k, b := range s.breaks {
		s.guard("clear breakpoint", func() {
			if err := s.target.ClearBreakpoint(b); err != nil {
				s.srv.log.Warn("clear breakpoint", "addr", "0x"+hexOf(b.Addr), "err", err)
			}
		})
		delete(s.breaks, k)
	}
}

// end lets go of everything when the conversation is over.
func (s *session) end() {
	s.letGo()
	s.guard("close files", s.files.closeAll)
	s.conn.close()
}

// guard calls f outside of handle and survives its panic.
func (s *session) guard(what string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(what, p)
		}
	}()
	f()
}

// forget drops what was computed for the position before.
func (s *session) forget() { s.doc = document{} }

// refuse is an error with a text, for packets whose reply is checked by
// clients as a whole: gdb shows the text after E.
func (s *session) refuse(msg string) reply {
	switch {
	case s.lldb && s.errorStrings:
		return text("E01;" + hexText(msg))
	case s.lldb:
		return replyError
	}
	return text("E." + clean(msg))
}

// fail is an error with a text where the client said that it takes one.
func (s *session) fail(msg string) reply {
	if s.errorMessages || s.errorStrings {
		return s.refuse(msg)
	}
	return replyError
}

// clean makes a text fit for an error reply: one line, nothing to escape.
func clean(msg string) string {
	msg = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || needsEscape(byte(r)) {
			return ' '
		}
		return r
	}, msg)
	return clip(msg, 400)
}
