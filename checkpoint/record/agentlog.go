//go:build linux && amd64

package record

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/record/agent"
)

// The log of the agent. What it has written to its ring is kept as it is, and becomes events when the
// interval is written: to make two events of each call takes several times as long as to copy the
// bytes, and most intervals are dropped from the ring unwritten.

// agentCalls are calls that the agent has made, and RDTSC, one behind the other.
type agentCalls struct {
	behind int // how many of the interval's events come before them
	tid    checkpoint.TID
	seg    checkpoint.Regs // has the segment registers, which do not change
	seq    numbering       // before the first
	now    int64           // of CLOCK_MONOTONIC when the ring was read: no call was later
	count  int
	data   []byte // of the ring
	from   *logPortion
	maps   map[int][]checkpoint.MapOp // what calls have done to the memory map, by which of the calls it is
	files  map[int32]*leasedFile      // that calls refer to, by descriptor
	held   []*leasedFile              // of these, those that must be there as long as the log is
}

// logRing logs the calls that the agent has made since the last stop.
func (t *thread) logRing() error {
	g, s := t.group(), t.session
	l := agentCalls{
		behind: len(g.cur.rec.Events), tid: checkpoint.TID(t.tid), seg: regsOf(&t.regs), seq: g.numbering(), now: monotonic(),
	}
	seq := l.seq
	a, worth := t.space().agent, int32(-1)
	var err, merr error
	insns := 0
	clone := func(b []byte) (c []byte) { c, l.from = s.logMemory.clone(b); return c }
	l.data, err = t.block.shared.Take(clone, func(r *agent.Record) {
		defer func() { l.count++ }()
		l.number(&seq, r)
		if r.Insn != 0 {
			insns++
			return
		}
		e := t.space().ofAgent(r, &l)
		if r.Refers && e == nil {
			e = l.refer(a, &r.Written)
			g.cur.referred += int64(r.Written.Len)
			s.result.Stats.Referred += r.Written.Len
		}
		if merr == nil {
			merr = e
		}
		worth = max(worth, a.followFiles(r))
	})
	err = errors.Join(err, merr)
	if l.count == 0 {
		s.logMemory.release(l.from)
		return err
	}
	a.referTo(t.space(), worth)
	g.lastNumber = seq.last
	g.cur.calls = append(g.cur.calls, l)
	calls := l.count - insns
	g.cur.made += 2*calls + insns
	g.cur.bytes += int64(len(l.data))
	s.result.Stats.Calls += uint64(calls)
	s.result.Stats.AgentCalls += uint64(calls)
	s.result.Stats.Instrs += uint64(insns)
	s.result.Stats.AgentInstrs += uint64(insns)
	s.result.Stats.Events += uint64(2*calls + insns)
	return err
}

// ofAgent has the model of the memory map, and the log l, follow a call that the agent has made.
func (sp *space) ofAgent(r *agent.Record, l *agentCalls) error {
	switch r.Regs[0] {
	case unix.SYS_MMAP, unix.SYS_BRK, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE:
	default:
		return nil // nearly all
	}
	if isError(r.Result) {
		return nil
	}
	c := call{nr: int64(r.Regs[0]), args: r.Regs.Args(), byAgent: true}
	if !sp.mayReturn(&c, uint64(r.Result)) {
		return fmt.Errorf("%w: %s(%#x, %#x, %#x, %#x) = %#x", errAgentMap, abi.Name(c.nr), c.args[0], c.args[1], c.args[2], c.args[3], uint64(r.Result))
	}
	var ev checkpoint.Event
	if err := sp.mapEffects(&c, &ev, r.Result); err != nil {
		return err
	}
	if len(ev.Maps) > 0 {
		if l.maps == nil {
			l.maps = map[int][]checkpoint.MapOp{}
		}
		l.maps[l.count] = ev.Maps
	}
	return nil
}

// errAgentMap says that what the agent has logged cannot be: the program can write to its memory.
var errAgentMap = errors.New("the agent's log has a change of memory that cannot be")

// mayReturn reports whether a call on memory, of those that the agent makes, can have returned ret.
func (sp *space) mayReturn(c *call, ret uint64) bool {
	switch c.nr {
	case unix.SYS_BRK:
		return ret == sp.brk || ret == c.args[0] && ret < abi.TaskSize
	case unix.SYS_MUNMAP, unix.SYS_MADVISE:
		return ret == 0 && sp.isOwn(c.args[0], c.args[1])
	case unix.SYS_MREMAP:
		return ret == c.args[0] && sp.isOwn(c.args[0], c.args[1]) && agent.IsShrunk(&c.args)
	}
	size := pageUp(c.args[1])
	return agent.IsNewMemory(&c.args) && ret&pageMask == 0 && size > 0 && ret < abi.TaskSize && size <= abi.TaskSize-ret
}

// isOwn reports whether memory is the program's alone, of no file, and not executed.
func (sp *space) isOwn(start, n uint64) bool {
	end := start + pageUp(n)
	return start&pageMask == 0 && start < end && end <= abi.TaskSize && !sp.maps.anyIn(start, end, func(m *mapping) bool { return !isOwnMemory(m) })
}

// isOwnMemory reports whether a mapping is such memory.
func isOwnMemory(m *mapping) bool {
	return m.private() && m.Object == 0 && m.Prot&checkpoint.ProtExec == 0
}

// number returns the numbers of a call's entry and exit. RDTSC has the latter alone.
func (l *agentCalls) number(seq *numbering, r *agent.Record) (enter, exit uint64) {
	if r.Insn == 0 {
		enter = seq.next(rightBehind)
	}
	return enter, seq.next(min(max(r.Time, rightBehind), l.now)) // the program can write another time to the agent's memory
}

// appendEvents appends the events of each call, in order. They refer to the bytes of the log.
func (s *session) appendEvents(list []checkpoint.Event, l *agentCalls) (_ []checkpoint.Event, err error) {
	seq, at := l.seq, 0
	agent.Records(l.data, func(r *agent.Record) {
		regs := l.seg
		copy(regs.R[:], r.Regs[:16])
		regs.RIP, regs.RFLAGS, regs.FSBase = r.Regs[agent.RIP], r.Regs[agent.RFLAGS], r.Regs[agent.FS]
		if r.Insn != 0 {
			at++
			ev := s.tscEvent(r, &regs)
			ev.TID = l.tid
			_, ev.Seq = l.number(&seq, r)
			list = append(list, ev)
			return
		}
		nr := int64(regs.R[0])
		enter := s.enterEvent(nr, r.Regs.Args(), &regs)
		after := regs
		after.R[0] = uint64(r.Result)
		exit := checkpoint.Event{Kind: checkpoint.EventExit, NR: nr, Result: r.Result, RegHash: checkpoint.HashRegs(&after), Regs: s.debugRegs(&after)}
		enter.TID, exit.TID = l.tid, l.tid
		enter.Seq, exit.Seq = l.number(&seq, r)
		exit.Maps = l.maps[at]
		at++
		for _, o := range r.Outs {
			exit.Writes = append(exit.Writes, checkpoint.MemWrite{Addr: o.Addr, Data: o.Data})
		}
		if r.Refers && err == nil {
			w := checkpoint.MemWrite{Addr: r.Written.Addr}
			w.Data, err = l.files[r.Written.FD].read(r.Written.Offset, r.Written.Len)
			exit.Writes = []checkpoint.MemWrite{w}
		}
		list = append(list, enter, exit)
	})
	return list, err
}

// asWritten returns the interval as it is written: its events with those of the agent's calls among them.
func (s *session) asWritten(l *interval) (*checkpoint.Interval, error) {
	if len(l.calls) == 0 {
		return &l.rec, nil
	}
	rec := l.rec
	rec.Events = make([]checkpoint.Event, 0, l.eventCount())
	from := 0
	for i := range l.calls {
		c := &l.calls[i]
		rec.Events = append(rec.Events, l.rec.Events[from:c.behind]...)
		from = c.behind
		var err error
		if rec.Events, err = s.appendEvents(rec.Events, c); err != nil {
			return nil, err
		}
	}
	rec.Events = append(rec.Events, l.rec.Events[from:]...)
	return &rec, nil
}
