package debug

import (
	"context"
	"math"
	"sort"
	"time"

	"vplay/checkpoint"
	"vplay/replay/debug/api"
)

// Session time: which positions of several processes are at the same moment. Positions count
// instructions of one process, and say nothing about another one. What orders the processes is
// the session's one stream of events: each event has a number there. Between two events of one process those of the
// others are in that order, and no more is known, nor could a program tell.

// sessionTime is a place in the session's stream of events.
type sessionTime struct {
	seq uint64 // of the last event, of any process, that has happened
	// Where events have no number, wall stands for seq: the wall time at which the
	// interval began. It is zero at the end, behind everything.
	unnumbered bool
	wall       time.Time
}

// sessionTime returns the time at which the cursor stands: that of the last event of its
// process, or that before the first one. The error is that the log cannot be read.
func (g *Cursor) sessionTime() (sessionTime, error) {
	all := g.intervals()
	last, n := len(all)-1, -1
	if !g.isAtEnd() {
		m := g.cur.Machine()
		last = sort.Search(len(all), func(i int) bool { return all[i].ID >= m.Interval() })
		n = len(m.Past(math.MaxInt32))
	}
	for i := last; i >= 0; i-- {
		events, err := g.s.Events(all[i].ID)
		if err != nil {
			return sessionTime{}, err
		}
		if i < last || n < 0 {
			n = len(events)
		}
		if n > 0 {
			return g.sessionTimeOf(&all[last], events[n-1].Seq, events[n-1].Seq > 0), nil
		}
	}
	first, err := g.firstSeq(all, last)
	return g.sessionTimeOf(&all[last], max(first, 1)-1, first > 0), err
}

// sessionTimeOf returns the time of an event in an interval.
func (g *Cursor) sessionTimeOf(in *checkpoint.IntervalInfo, seq uint64, numbered bool) sessionTime {
	m := sessionTime{seq: seq, unnumbered: !numbered, wall: in.WallTime}
	if g.isAtEnd() {
		m.wall = time.Time{}
	}
	return m
}

// isAtEnd reports whether the cursor is at the end of its process.
func (g *Cursor) isAtEnd() bool { return g.final != nil || g.isLastImage() && g.cur.AtEnd() }

// intervals lists those of the process, of all programs that it was.
func (g *Cursor) intervals() (all []checkpoint.IntervalInfo) {
	for i := range g.session.images {
		all = append(all, g.session.images[i].infos...)
	}
	return all
}

// firstSeq returns the number of the first event in the intervals from i on, 0 when
// there is none.
func (g *Cursor) firstSeq(all []checkpoint.IntervalInfo, i int) (uint64, error) {
	for ; i < len(all); i++ {
		if all[i].Events == 0 {
			continue
		}
		events, err := g.s.Events(all[i].ID)
		if err != nil || len(events) == 0 {
			return 0, err
		}
		return events[0].Seq, nil
	}
	return 0, nil
}

// place moves the cursor to a session time: before the first event of its process
// that comes later, and to the end when none does. That takes as long as it takes to
// replay the stretch of an interval.
func (g *Cursor) place(ctx context.Context, now sessionTime) error {
	all := g.intervals()
	i, event, err := g.later(all, now)
	if err != nil {
		return err
	}
	g.Undivert()
	g.goal = nil
	if i == len(all) {
		if g.isAtEnd() {
			return nil
		}
		return g.seek(ctx, where{kind: whereEnd}, true)
	}
	g.dropFinal()
	if n := g.imageOf(all[i].ID); n != g.image {
		if err := g.enter(ctx, n, false); err != nil {
			return err
		}
	}
	p := checkpoint.Position{Interval: all[i].ID}
	if event > 0 {
		found, err := g.t.EventPositions(ctx, p.Interval, event, event+1, nil)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			p = found[0]
		}
	}
	if err := g.cur.Seek(ctx, p); err != nil {
		return err
	}
	g.reported, g.moved = nowhere, true
	g.stop = api.Stop{Kind: api.StopStep, TID: g.tid()}
	return nil
}

// later returns the interval and the event in it before which a process stands at a
// session time: event 0 is the interval's beginning, an interval behind the last one the end.
func (g *Cursor) later(all []checkpoint.IntervalInfo, now sessionTime) (interval, event int, err error) {
	if now.unnumbered {
		if now.wall.IsZero() {
			return len(all), 0, nil
		}
		return sort.Search(len(all), func(i int) bool { return all[i].WallTime.After(now.wall) }), 0, nil
	}
	// The last interval whose first event has happened; those without events are like
	// the next one.
	n := sort.Search(len(all), func(i int) bool {
		first, failed := g.firstSeq(all, i)
		if failed != nil {
			err = failed
		}
		return first == 0 || first > now.seq
	})
	if err != nil {
		return 0, 0, err
	}
	if n > 0 {
		n--
		events, err := g.s.Events(all[n].ID)
		if err != nil {
			return 0, 0, err
		}
		event = sort.Search(len(events), func(i int) bool { return events[i].Seq > now.seq })
		if event < len(events) {
			return n, event, nil
		}
		n++
	}
	if first, err := g.firstSeq(all, n); err != nil || first == 0 {
		return len(all), 0, err
	}
	return n, 0, nil
}
