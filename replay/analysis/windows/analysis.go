package windows

import (
	"fmt"
	"math"

	"vplay/checkpoint"
	"vplay/replay/observe"
)

// The analysis: each access and event changes the table, and what the table said before is
// counted for every bound.

// analysis is a follower that counts.
type analysis struct {
	table    *table[lastPage]
	counters []*counter
	tick     uint64 // instructions in a tick
	report   Report

	base  uint64 // instructions of the intervals before
	now   uint32 // the present tick, from 1
	until uint64 // the instruction at which the next tick begins
}

func newAnalysis(o *Options, r *room) *analysis {
	x := &analysis{tick: math.MaxUint64}
	for _, bound := range o.Bounds {
		x.tick = min(x.tick, max(bound/o.Points, 1))
	}
	for _, bound := range o.Bounds {
		x.counters = append(x.counters, newCounter(bound, x.tick, o.Points, o.Scan))
	}
	bounds := len(x.counters)
	x.table = newTable(r, func(tick uint32) *lastPage { return newLastPage(bounds, tick) }, (*lastPage).size)
	x.now, x.until = 1, x.tick
	return x
}

// begin implements follower.
func (x *analysis) begin(_ *observe.View, goesOn bool) *observe.Observer {
	x.table.begin(goesOn)
	x.report.Intervals++
	return &observe.Observer{Accesses: x.accesses, NoData: true, Applied: x.event}
}

// end implements follower.
func (x *analysis) end(instructions uint64) { x.base += instructions }

// at goes on to instruction number n of the interval. The error says that ticks do not last.
func (x *analysis) at(n uint64) error {
	n += x.base
	if n < x.until {
		return nil
	}
	tick := n/x.tick + 1
	if tick >= math.MaxUint32 {
		return fmt.Errorf("windows: the program runs for too long for cuts at each %d instructions", x.tick)
	}
	x.now, x.until = uint32(tick), tick*x.tick
	for _, c := range x.counters {
		c.advance((x.now - 1) / c.ratio)
	}
	return nil
}

// accesses counts accesses by instructions.
func (x *analysis) accesses(v *observe.View, list []observe.PastAccess) {
	for i := range list {
		if err := x.access(v, &list[i]); err != nil {
			v.Stop(err)
			return
		}
	}
}

func (x *analysis) access(v *observe.View, a *observe.PastAccess) error {
	size, do := uint64(a.Size), x.read
	if a.Store {
		x.report.Writes++
		x.report.WriteBytes += size
		do = x.write
	} else {
		x.report.Reads++
		x.report.ReadBytes += size
	}
	if err := x.at(a.Instr); err != nil {
		return err
	}
	return x.table.each(v, a.Addr, size, do)
}

// read counts a read of n bytes of a page.
func (x *analysis) read(p *lastPage, off, n uint64) error {
	i, j, err := x.cells(p, off, n)
	if err != nil {
		return err
	}
	for i < j {
		last := p.last[i]
		first := i
		for i < j && p.last[i] == last {
			p.last[i] = x.now
			i++
		}
		if last == x.now {
			continue
		}
		bytes := (i - first) << p.shift
		if last == 0 {
			x.report.Outside += bytes
		}
		for b, c := range x.counters {
			if c.read(last, bytes) && mark(&p.readIn[b], c.window()) {
				c.PagesRead++
			}
		}
	}
	return nil
}

// mark makes *last be window, and reports whether it was another.
func mark(last *uint32, window uint32) bool {
	was := *last
	*last = window
	return was != window
}

// write counts a write of n bytes of a page by the program.
func (x *analysis) write(p *lastPage, off, n uint64) error {
	i, j, err := x.cells(p, off, n)
	if err != nil {
		return err
	}
	for ; i < j; i++ {
		p.last[i] = x.now
		last := p.wrote[i]
		if last == x.now {
			continue
		}
		p.wrote[i] = x.now
		for b, c := range x.counters {
			if !c.written(last) {
				continue
			}
			c.UniqueWrites += 1 << p.shift
			if mark(&p.wroteIn[b], c.window()) {
				c.PagesWritten++
			}
		}
	}
	return nil
}

// bring notes bytes that an event stored: the log has them.
func (x *analysis) bring(p *lastPage, off, n uint64) error {
	i, j, err := x.cells(p, off, n)
	if err != nil {
		return err
	}
	for ; i < j; i++ {
		p.last[i] = x.now
	}
	return nil
}

// event takes what an event of the log has changed, v being behind it.
func (x *analysis) event(v *observe.View, e *checkpoint.Event) {
	if len(e.Maps) == 0 && len(e.Writes) == 0 {
		return
	}
	err := x.at(v.CPU().Retired)
	if err == nil {
		err = x.table.remap(e.Maps, x.now)
	}
	for i := range e.Writes {
		if err != nil {
			break
		}
		w := &e.Writes[i]
		x.report.LogBytes += uint64(len(w.Data))
		err = x.table.each(v, w.Addr, uint64(len(w.Data)), x.bring)
	}
	if err != nil {
		v.Stop(err)
	}
}

// finish returns the report.
func (x *analysis) finish() *Report {
	x.report.Instructions = x.base
	for _, c := range x.counters {
		last := (x.base - min(x.base, 1)) / c.Grain
		c.advance(uint32(last))
		x.report.Bounds = append(x.report.Bounds, c.finish(x.base > 0 && uint64(c.slot) == last))
	}
	return &x.report
}
