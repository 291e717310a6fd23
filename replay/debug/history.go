package debug

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/debug/api"
	"vplay/replay/debug/text"
)

// The history as a whole, as timelines of editors draw it. It comes from the log alone:
// nothing is replayed, so that it is there at once, and a system call shows the addresses
// that it was given and not what was there. Intervals have shares of the time as "seek 50%"
// has them.

// share is an interval's part of the recorded time.
type share struct {
	info     checkpoint.IntervalInfo
	from, to float64
	image    int
	first    int // the number of its first event, as "seek event" counts: from the image's beginning
	number   int // and from the recording's
}

// shares divides the time of the process among its intervals.
func (d *Session) shares() []share {
	var out []share
	all, number := 0.0, 0
	for n := range d.images {
		events := 0
		for _, info := range d.images[n].infos {
			out = append(out, share{info: info, from: all, image: n, first: events, number: number})
			all += max(float64(info.CPUTime), 1)
			events += info.Events
			number += info.Events
			out[len(out)-1].to = all
		}
	}
	for i := range out {
		out[i].from, out[i].to = out[i].from/all, out[i].to/all
	}
	return out
}

// at returns where event n of the interval is, 0 <= n <= its number of events.
func (s *share) at(n int) float64 {
	if s.info.Events == 0 {
		return s.from
	}
	return s.from + (s.to-s.from)*float64(n)/float64(s.info.Events)
}

// moment returns where a position is that has next events and a share of the interval's
// instructions before it. Between two events the instructions tell, as far as they can;
// isAt says that the next event is what happens next.
func (s *share) moment(next int, instr float64, isAt bool) float64 {
	if s.info.Events == 0 {
		return s.from + (s.to-s.from)*instr
	}
	if isAt {
		return s.at(next)
	}
	n := min(max(instr*float64(s.info.Events), float64(next-1), 0), float64(next))
	return s.from + (s.to-s.from)*n/float64(s.info.Events)
}

// isAtCall reports whether the program is about to make a system call.
func (g *Cursor) isAtCall() bool {
	var b [2]byte
	n, _ := g.mem().Peek(g.state().RIP, b[:])
	return n == len(b) && b == [2]byte{0x0f, 0x05}
}

// Moment implements api.HistoryTarget.
func (g *Cursor) Moment() api.Moment {
	all := g.session.shares()
	m := api.Moment{Position: g.Position(), At: 1, Place: shortPlace(g)}
	if m.Position == "end" {
		if n := len(all); n > 0 {
			m.Event = all[n-1].number + all[n-1].info.Events
		}
		return m
	}
	p := g.cur.Position()
	for _, s := range all {
		if s.info.ID == p.Interval {
			next := len(g.cur.Machine().Past(s.info.Events))
			m.Event = s.number + next
			m.At = s.moment(next, g.t.Share(p), g.isAtCall())
		}
	}
	return m
}

// shortPlace names where the program stands: its function, and its source line.
func shortPlace(g *Cursor) string {
	l := g.names().At(g.state().RIP)
	out := l.Function
	if out == "" {
		out = fmt.Sprintf("%#x", l.Addr)
	}
	if l.File != "" {
		out += fmt.Sprintf(" %s:%d", path.Base(strings.ReplaceAll(l.File, `\`, "/")), l.Line)
	}
	return text.Printable(out)
}

// History implements api.HistoryTarget. Errors: those of an interval that cannot be read.
func (g *Cursor) History(ctx context.Context, from, to float64, most int) (*api.History, error) {
	if !(0 <= from && from < to && to <= 1) || most < 1 {
		return nil, fmt.Errorf("bad part of the recorded time: %g to %g, %d events", from, to, most)
	}
	h := newHistorian(from, to, most)
	h.image = g.image
	all := g.session.shares()
	events := 0
	for i := range all {
		h.out.Intervals = append(h.out.Intervals, api.HistoryInterval{ID: all[i].info.ID, From: all[i].from, To: all[i].to, Events: all[i].info.Events})
		if all[i].from < to && all[i].to > from {
			events += all[i].info.Events
		}
	}
	for i := range all {
		s := &all[i]
		if s.from >= to || s.to < from || s.to == from && from > 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if events > maxHistoryEvents {
			h.summary(s)
			continue
		}
		iv, err := g.s.Rec.Interval(s.info.ID)
		if err != nil {
			return nil, err
		}
		h.interval(s, iv)
	}
	h.thinSignals(most)
	for _, tid := range slices.SortedFunc(maps.Keys(h.seen), cmp.Compare) {
		h.out.Threads = append(h.out.Threads, api.HistoryThread{TID: int(tid), Name: text.Printable(h.names[tid])})
	}
	return h.out, nil
}

// maxHistoryEvents bounds the events of the log that are read for one answer: a tenth of a
// second's work. Of more, the intervals have a mark each.
const maxHistoryEvents = 500_000

// historian goes through the intervals and fills in the history.
type historian struct {
	out     *api.History
	image   int     // the present one: "seek event" counts its events
	gap     float64 // marks and turns that are closer are one
	names   map[checkpoint.TID]string
	seen    map[checkpoint.TID]bool
	last    map[series]int // the newest mark of each, as an index
	signals int            // and faults, of the marks
}

func newHistorian(from, to float64, most int) *historian {
	return &historian{
		out: &api.History{From: from, To: to}, gap: (to - from) / float64(most),
		names: map[checkpoint.TID]string{}, seen: map[checkpoint.TID]bool{}, last: map[series]int{},
	}
}

// summary tells no more of an interval than its list of intervals does.
func (h *historian) summary(s *share) {
	h.mark(api.HistoryMark{
		At: s.from, Event: s.number, Kind: checkpoint.EventEnter.String(), Text: fmt.Sprintf("interval %d", s.info.ID), Count: s.info.Events, Seek: fmt.Sprintf("%d:0", s.info.ID),
	})
}

// interval tells what happened in an interval.
func (h *historian) interval(s *share, iv *checkpoint.Interval) {
	for _, list := range [][]checkpoint.Context{iv.Start, iv.End.Contexts} {
		for i := range list {
			if list[i].Name != "" {
				h.names[list[i].TID] = list[i].Name
			}
		}
	}
	runs, since := checkpoint.TID(0), s.from
	if len(iv.Start) > 0 {
		runs = iv.Start[0].TID // it runs first
	}
	for n := range iv.Events {
		e := &iv.Events[n]
		at := s.at(n)
		if e.Kind == checkpoint.EventSched {
			h.turn(runs, since, at)
			runs, since = e.TID, at
		}
		if what := historyText(e); what != "" && at >= h.out.From && at <= h.out.To {
			seek := fmt.Sprintf("event %d", s.first+n)
			if s.image != h.image {
				seek = fmt.Sprintf("%d:0", s.info.ID)
			}
			h.mark(api.HistoryMark{At: at, Event: s.number + n, TID: int(e.TID), Kind: e.Kind.String(), Text: text.Printable(what), Count: 1, Seek: seek})
		}
	}
	h.turn(runs, since, s.to)
}

// series are the marks that can stand for each other.
type series struct {
	tid        int
	kind, name string
}

// mark adds a mark, or counts it with the one before of the same thread and kind. A signal, or
// a fault, has its own.
func (h *historian) mark(m api.HistoryMark) {
	h.seen[checkpoint.TID(m.TID)] = true
	if isSignal(&m) {
		h.signals++
		h.out.Marks = append(h.out.Marks, m)
		return
	}
	h.out.Marks = h.join(h.out.Marks, h.last, &m, series{m.TID, m.Kind, ""})
}

// join appends a mark to a list, or counts it with the newest one of its series where they are
// too close to be told apart.
func (h *historian) join(list []api.HistoryMark, last map[series]int, m *api.HistoryMark, of series) []api.HistoryMark {
	if i, ok := last[of]; ok && m.At-list[i].At < h.gap {
		list[i].Count += m.Count
		return list
	}
	last[of] = len(list)
	return append(list, *m)
}

// isSignal reports whether a mark is that of a signal or a fault.
func isSignal(m *api.HistoryMark) bool {
	return m.Kind == checkpoint.EventSignal.String() || m.Kind == checkpoint.EventFault.String()
}

// thinSignals counts close signals of a thread and a number together where there are more than
// most: a profiler's timer has thousands, of which no one matters. The newest one keeps its
// own mark, for the program may have died of it.
func (h *historian) thinSignals(most int) {
	if h.signals <= most {
		return
	}
	marks, last := h.out.Marks, map[series]int{}
	newest := len(marks) - 1
	for !isSignal(&marks[newest]) {
		newest--
	}
	out := marks[:0]
	for i := range marks {
		m := marks[i]
		if !isSignal(&m) || i == newest {
			out = append(out, m)
			continue
		}
		name, _, _ := strings.Cut(m.Text, " {") // "--- SIGPROF {si_signo=..."
		out = h.join(out, last, &m, series{m.TID, m.Kind, name})
	}
	h.out.Marks = out
}

// turn adds a turn, or makes the one before longer where it is the same thread's, or where
// this one cannot be seen.
func (h *historian) turn(tid checkpoint.TID, from, to float64) {
	from, to = max(from, h.out.From), min(to, h.out.To)
	if tid == 0 || to <= from {
		return
	}
	h.seen[tid] = true
	if i := len(h.out.Turns) - 1; i >= 0 {
		last := &h.out.Turns[i]
		if from-last.To < h.gap && (last.TID == int(tid) || to-from < h.gap) {
			last.To = to
			return
		}
	}
	h.out.Turns = append(h.out.Turns, api.HistoryTurn{TID: int(tid), From: from, To: to})
}

// historyText writes an event that people look for, as strace does; "" for the others: the
// result of a call has no place of its own, and turns are drawn otherwise.
func historyText(e *checkpoint.Event) string {
	switch e.Kind {
	case checkpoint.EventEnter:
		return abi.Format(noMemory{}, e.NR, e.Args)
	case checkpoint.EventSignal, checkpoint.EventFault:
		if s := SignalText(e); s != "" {
			return s
		}
		return e.Text()
	case checkpoint.EventInstr:
		return instrText(e)
	case checkpoint.EventThread:
		return e.Text()
	default:
		return ""
	}
}

// noMemory is a guest of which nothing is known.
type noMemory struct{}

func (noMemory) ReadAt(uint64, []byte) int { return 0 }
