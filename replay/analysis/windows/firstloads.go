package windows

import (
	"context"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// What a recording would hold with first loads in the place of pages: for each interval by itself, and
// for the recording as one, and the code that was executed.

// FirstLoads is what logs of first loads take.
type FirstLoads struct {
	Instructions uint64 `json:"instructions"`
	Intervals    int    `json:"intervals"`
	Loads        uint64 `json:"loads"` // by the program
	// Each has a log for each interval, with which that can be replayed alone; Whole one that begins anew only where the
	// recording does not know what became of memory.
	Each  LoadLog `json:"each"`
	Whole LoadLog `json:"whole"`
	// Code are the bytes of the instructions that were executed, each once, in the order of their first execution.
	Code       int64 `json:"code_bytes"`
	CodeStored int64 `json:"code_stored"`
	// Pages are those that the intervals accessed or executed, with what was in them at the first access: each content
	// once, as a recording has them, without those of zeros. It is what a recording has for replay alone; there it has what
	// debuggers read besides.
	Pages       int64 `json:"page_bytes"`
	PagesStored int64 `json:"pages_stored"`
}

// MeasureFirstLoads replays the intervals of one process, in order, and measures logs of first loads. Memory is some
// 1.5 KiB for each page that is accessed, at most half of what the recording's budget allows. Errors: those of observe.Run, and
// *checkpoint.LimitError.
func MeasureFirstLoads(ctx context.Context, s *replay.Session, intervals []uint32, progress func(uint64)) (*FirstLoads, error) {
	x := newLoads(newRoom(s.Rec))
	if err := follow(ctx, s, intervals, progress, x); err != nil {
		return nil, err
	}
	x.logs[whole].end()
	x.codeBytes.flush()
	x.pageBytes.flush()
	x.Pages, x.PagesStored = x.pageBytes.bytes, x.pageBytes.small
	x.Each, x.Whole = x.logs[each].LoadLog, x.logs[whole].LoadLog
	x.Code, x.CodeStored = x.codeBytes.bytes, x.codeBytes.small
	return &x.FirstLoads, nil
}

// The logs.
const (
	each = iota
	whole
	numLogs
)

// bytesSet is a bit for each byte of a page.
type bytesSet [pageSize / 64]uint64

// add adds the n bytes at off, and reports whether one was not there.
func (s *bytesSet) add(off, n uint64) (isNew bool) {
	for n > 0 {
		part := min(n, 64-off%64)
		mask := (^uint64(0) >> (64 - part)) << (off % 64)
		isNew = isNew || s[off/64]&mask != mask
		s[off/64] |= mask
		off, n = off+part, n-part
	}
	return isNew
}

// fill adds all bytes.
func (s *bytesSet) fill() {
	for i := range s {
		s[i] = ^uint64(0)
	}
}

// knownPage says which bytes of a page replay knows, with each log.
type knownPage struct {
	known [numLogs]bytesSet
	in    uint32 // the interval that accessed it last, from 1
}

// codePage says which instructions of a page were executed, by their first bytes, and which bytes are logged.
type codePage struct {
	starts, bytes bytesSet
	in            uint32 // the interval that executed it last, from 1
}

// loads is a follower that logs first loads. Ticks of its tables are the numbers of intervals, from 1.
type loads struct {
	FirstLoads
	table *table[knownPage]
	code  *table[codePage]
	logs  [numLogs]loadLog

	codeBytes blocks
	isNew     [numLogs]bool // of the load that is looked at
	enters    bool          // it is the interval's first access to a page
	pageBytes blocks
	contents  map[uint64]struct{} // hashes of the pages in pageBytes
}

func newLoads(r *room) *loads {
	x := &loads{contents: map[uint64]struct{}{}}
	x.table = newTable(r, func(tick uint32) *knownPage {
		p := &knownPage{}
		if tick != 0 {
			p.known[whole].fill()
		}
		if tick == uint32(x.Intervals) { // zeros
			p.known[each].fill()
			p.in = tick
		}
		return p
	}, func(*knownPage) int64 { return numLogs*pageSize/8 + 128 })
	x.code = newTable(r, func(uint32) *codePage { return &codePage{} }, func(*codePage) int64 { return 2*pageSize/8 + 128 })
	return x
}

// begin implements follower.
func (x *loads) begin(_ *observe.View, goesOn bool) *observe.Observer {
	x.Intervals++
	if x.table.begin(goesOn); !goesOn {
		x.logs[whole].end()
	}
	x.code.begin(goesOn)
	for _, p := range x.table.pages {
		p.known[each] = bytesSet{}
	}
	return &observe.Observer{AllAccesses: true, Access: x.access, Instr: x.instruction, Applied: x.event}
}

// end implements follower.
func (x *loads) end(instructions uint64) {
	x.Instructions += instructions
	x.logs[each].end()
}

// access notes an access by the program.
func (x *loads) access(v *observe.View, a *observe.Access) {
	x.isNew, x.enters = [numLogs]bool{}, false
	err := x.table.each(v, a.Addr, uint64(a.Size), x.know)
	if err == nil && x.enters {
		err = x.keep(v, a)
	}
	if err != nil {
		v.Stop(err)
		return
	}
	if a.Store {
		return
	}
	x.Loads++
	for i := range x.logs {
		x.logs[i].load(a.Data, x.isNew[i])
	}
}

// know notes that n bytes of a page are known from now on, and in isNew what was not before.
func (x *loads) know(p *knownPage, off, n uint64) error {
	if p.in != uint32(x.Intervals) {
		p.in, x.enters = uint32(x.Intervals), true
	}
	return x.bring(p, off, n)
}

// bring is know for bytes that the log has.
func (x *loads) bring(p *knownPage, off, n uint64) error {
	for i := range p.known {
		if p.known[i].add(off, n) {
			x.isNew[i] = true
		}
	}
	return nil
}

// keep keeps the pages that an access is about, as they were before it.
func (x *loads) keep(v *observe.View, a *observe.Access) error {
	end := a.Addr + uint64(a.Size)
	for base := a.Addr &^ (pageSize - 1); base < end; base += pageSize {
		var page [pageSize]byte
		v.ReadMemory(base, page[:])
		if a.Store {
			for i, b := range a.Old {
				if at := a.Addr + uint64(i) - base; at < pageSize {
					page[at] = b
				}
			}
		}
		if err := x.keepPage(&page); err != nil {
			return err
		}
	}
	return nil
}

// contentSize is what an entry of contents takes, in bytes.
const contentSize = 32

// keepPage keeps the content of a page, unless it is zero or has been kept.
func (x *loads) keepPage(page *[pageSize]byte) error {
	h := checkpoint.HashPage(0, page[:])
	if _, has := x.contents[h]; has || h == 0 {
		return nil
	}
	if err := x.table.room.take(contentSize); err != nil {
		return err
	}
	x.contents[h] = struct{}{}
	x.pageBytes.write(page[:]...)
	return nil
}

// instruction logs the bytes of an instruction that is executed for the first time.
func (x *loads) instruction(v *observe.View, in *x86.Inst) {
	pc := v.CPU().RIP
	isNew, enters := false, false
	err := x.code.each(v, pc, 1, func(p *codePage, off, _ uint64) error {
		isNew, enters = p.starts.add(off, 1), p.in != uint32(x.Intervals)
		p.in = uint32(x.Intervals)
		return nil
	})
	if err == nil && enters {
		var page [pageSize]byte
		v.ReadMemory(pc&^(pageSize-1), page[:])
		err = x.keepPage(&page)
	}
	if err == nil && isNew {
		err = x.logCode(v, pc, int(in.Len))
	}
	if err != nil {
		v.Stop(err)
	}
}

// logCode logs the bytes of an instruction that are not logged.
func (x *loads) logCode(v *observe.View, pc uint64, n int) error {
	var b [15]byte
	left := b[:v.ReadMemory(pc, b[:min(n, len(b))])]
	return x.code.each(v, pc, uint64(len(left)), func(p *codePage, off, n uint64) error {
		for i := range n {
			if p.bytes.add(off+i, 1) {
				x.codeBytes.write(left[i])
			}
		}
		left = left[n:]
		return nil
	})
}

// event notes what an event has brought, which is in the log.
func (x *loads) event(v *observe.View, e *checkpoint.Event) {
	err := x.table.remap(e.Maps, uint32(x.Intervals))
	if err == nil && len(e.Maps) > 0 {
		err = x.code.remap(e.Maps, uint32(x.Intervals))
	}
	for i := range e.Writes {
		if err != nil {
			break
		}
		err = x.table.each(v, e.Writes[i].Addr, uint64(len(e.Writes[i].Data)), x.bring)
	}
	if err != nil {
		v.Stop(err)
	}
}
