package replay

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay/mem"
)

// Joining: neighbouring intervals of a recording become one, so that what the later ones began with
// falls away. It is Netzer and Weaver's compaction: replay again with a greater bound on the way to any moment.
//
// Two intervals are joined where the second begins with exactly what replay of the first ends with: threads, the one that runs, the
// map, and every byte that both know. Whoever was recorded need not have noticed that an interval ended. So a forced end between
// them needs no name in the joined log: replay runs through it. But what comes at once at the second one's start, as a signal or a switch
// to another thread, can only be named where an event is; such intervals stay apart, as do those with a gap or an execve between them.

const (
	// joinedEvents and joinedLog bound what is joined: half of what an interval may have, and bytes of a log.
	joinedEvents = 1 << 20
	joinedLog    = 256 << 20
)

// learnt is what replaying an interval alone has told.
type learnt struct {
	insns   uint64
	end     *endPoint
	answers map[uint64]uint64
	joins   bool // with the next one
}

// learn replays intervals, and finds out which can be joined.
func (sl *slimmer) learn(ctx context.Context, ids []uint32) error {
	sl.learnt = map[uint32]*learnt{}
	next := map[uint32]*checkpoint.IntervalInfo{}
	last := map[programOf]uint32{}
	infos := sl.s.Rec.Intervals()
	for i := range infos {
		of := programOf{infos[i].PID, infos[i].Image}
		if id, ok := last[of]; ok {
			next[id] = &infos[i]
		}
		last[of] = infos[i].ID
	}
	o := VerifyOptions{check: func(m *Machine) error {
		if err := m.CheckEnd(); err != nil {
			return err
		}
		x := &learnt{insns: m.CPU.Retired, end: m.iv.endPoint(), answers: m.iv.found()}
		if n := next[m.iv.ID]; n != nil {
			var err error
			if x.joins, err = sl.joins(m, n.ID); err != nil {
				return err
			}
		}
		sl.mu.Lock()
		defer sl.mu.Unlock()
		sl.learnt[m.iv.ID] = x
		return nil
	}}
	if err := sl.verifyWith(ctx, sl.s, ids, false, o, func(Result) {}); err != nil {
		return err
	}
	sl.chain(next)
	return nil
}

// replayJoined is replayNoting for intervals of which some have been chosen to be joined. What does not replay when it is
// joined stays apart.
func (sl *slimmer) replayJoined(ctx context.Context, ids []uint32) error {
	whole := slices.DeleteFunc(slices.Clone(ids), sl.isAway)
	if err := sl.replayNoting(ctx, whole); err != nil {
		return err
	}
	var apart []uint32
	for head, parts := range sl.joined {
		if sl.touched[head] != nil {
			continue
		}
		apart = append(apart, parts...)
		delete(sl.joined, head)
		for _, id := range parts {
			delete(sl.away, id)
		}
		sl.failed = slices.DeleteFunc(sl.failed, func(r Result) bool { return r.Interval == head })
	}
	if len(apart) == 0 {
		return nil
	}
	return sl.replayNoting(ctx, apart)
}

// found returns the answers that are known of an interval.
func (iv *interval) found() map[uint64]uint64 {
	iv.answers.mu.Lock()
	defer iv.answers.mu.Unlock()
	if !iv.answers.known {
		return nil
	}
	return iv.answers.bits
}

// chain chooses what is joined: as many intervals as fit into the length, from the first on.
func (sl *slimmer) chain(next map[uint32]*checkpoint.IntervalInfo) {
	sl.joined, sl.away = map[uint32][]uint32{}, map[uint32]uint32{}
	for _, info := range sl.s.Rec.Intervals() {
		if sl.isAway(info.ID) || sl.learnt[info.ID] == nil {
			continue
		}
		ids := []uint32{info.ID}
		length, events, log := info.CPUTime, info.Events, info.LogRaw
		for id := info.ID; sl.learnt[id].joins; {
			n := next[id]
			length, events, log = length+n.CPUTime, events+n.Events, log+n.LogRaw
			if sl.learnt[n.ID] == nil || length > sl.o.Length || events > joinedEvents || log > joinedLog {
				break
			}
			id = n.ID
			ids = append(ids, id)
			sl.away[id] = info.ID
		}
		if len(ids) > 1 {
			sl.joined[info.ID] = ids
		}
	}
}

// joins reports whether interval next begins with what the machine has, which is at its interval's end.
func (sl *slimmer) joins(m *Machine, next uint32) (bool, error) {
	if k := m.iv.End.Kind; k != checkpoint.EndSync && k != checkpoint.EndForced || m.iv.FirstLoads {
		return false, nil // what the second one reads, the first one's start need not have
	}
	iv, err := sl.s.Rec.Interval(next)
	if err != nil {
		return false, nil //nolint:nilerr // it is damaged, and stays as it is
	}
	if iv.FirstLoads || len(iv.Start) == 0 || m.gone || checkpoint.Running(iv.Start).TID != m.tid || checkpoint.Running(iv.Start).InCall != m.inCall ||
		m.checkThreads(iv.Start) != nil || iv.StackLimit != m.iv.StackLimit || !reflect.DeepEqual(iv.Artefact, m.iv.Artefact) {
		return false, nil
	}
	if len(iv.Events) > 0 && !m.isTurnBegin() {
		switch iv.Events[0].Kind {
		case checkpoint.EventEnter, checkpoint.EventFault, checkpoint.EventInstr:
		default: // it comes at once
			return false, nil
		}
	}
	src, err := loader.NewSource(sl.s.Rec, next)
	if err != nil {
		return false, nil //nolint:nilerr // as above
	}
	then := loader.Space(sl.s.Pool, sl.s.Rec, iv, src)
	defer then.Close()
	if !slices.Equal(layout(m.Mem), layout(then)) {
		return false, nil
	}
	return sl.sameMemory(m, then, src)
}

// layout is a map with what replay asks of it: neighbours that are alike are one.
func layout(s *mem.Space) (out []mem.Region) {
	for at := range s.AddressMap().From(0) {
		r := *at
		r.Name, r.Fresh = "", false
		if r.Object == 0 {
			r.Offset = 0
		}
		if n := len(out); n > 0 && continues(&out[n-1], &r) {
			out[n-1].End = r.End
			continue
		}
		out = append(out, r)
	}
	return out
}

// continues reports whether r goes on where p ends.
func continues(p, r *mem.Region) bool {
	q := *p
	if q.End != r.Start || r.Object != 0 && q.Offset+q.End-q.Start != r.Offset {
		return false
	}
	q.Start, q.End, q.Offset = r.Start, r.End, r.Offset
	return q == *r
}

// sameMemory reports whether every byte that the machine and the next interval's start both know is the same: of the
// pages that the start has a record of, and of those that the machine has written.
func (sl *slimmer) sameMemory(m *Machine, then *mem.Space, src *loader.Source) (bool, error) {
	pages := map[uint64]bool{}
	for _, e := range src.Table() {
		pages[e.Addr] = true
	}
	m.Mem.Written(m.iv.start, func(key uint64, _, now *mem.Page) {
		for _, a := range m.addresses(key) {
			pages[a] = now != nil
		}
	})
	var x, y mem.Page
	var kx, ky mem.Mask
	look := pageCharge{m: m, what: "pages at the next interval's start"}
	for a := range pages {
		if err := look.at(m.Mem.IsWritten(a)); err != nil {
			return false, err
		}
		if !m.Mem.PeekRaw(a, &x, &kx) || !then.PeekRaw(a, &y, &ky) {
			continue // it is mapped on neither side
		}
		for i := range x {
			if x[i] != y[i] && kx.Has(i) && ky.Has(i) {
				return false, nil
			}
		}
	}
	return true, nil
}

// join returns the interval that intervals become; with all, its end has the pages that any of them has written, those that
// the last one has not as PageRemoved. The first's page table is its own.
func (sl *slimmer) join(ids []uint32, all bool) (*checkpoint.Interval, error) {
	first, err := sl.s.Rec.Interval(ids[0])
	if err != nil {
		return nil, err
	}
	out := *first
	var length time.Duration
	written := map[uint64]checkpoint.PageRef{}
	out.Events = nil
	for _, id := range ids {
		iv, err := sl.s.Rec.Interval(id)
		if err != nil {
			return nil, err
		}
		out.Events = append(out.Events, iv.Events...)
		out.End = iv.End
		length += iv.End.CPUTime
		for _, e := range iv.End.Pages {
			written[e.Addr] = e.Ref
			if id != ids[len(ids)-1] {
				written[e.Addr] = checkpoint.PageRef{Kind: checkpoint.PageRemoved} // it may be gone by then
			}
		}
	}
	out.End.CPUTime = length
	if all {
		out.End.Pages = tableOf(written)
	}
	return &out, nil
}

// whole returns the interval that iv becomes, ready to be replayed: iv where it is joined with none. Its end is
// known from its parts.
func (sl *slimmer) whole(iv *interval, all bool) *interval {
	ids := sl.joined[iv.ID]
	if ids == nil {
		return iv
	}
	raw, err := sl.join(ids, all)
	if err != nil { // it was read before: replay says what is wrong
		return iv
	}
	out := &interval{Interval: raw, src: iv.src, start: iv.start, first: iv.first, others: iv.others}
	out.answers.known = true
	var at uint64
	for _, id := range ids {
		x := sl.learnt[id]
		for n, bits := range x.answers {
			if out.answers.bits == nil {
				out.answers.bits = map[uint64]uint64{}
			}
			out.answers.bits[at+n] = bits
		}
		if x.end != nil {
			out.end = &endPoint{at + x.end.instr, x.end.rep}
		}
		at += x.insns
	}
	if !raw.End.Forced {
		out.end = nil
	}
	return out
}

// finalRows are the pages by which a process's final image differs from the start of its last interval, which may
// have been joined with others: then from theirs.
func (sl *slimmer) finalRows(last checkpoint.IntervalInfo, rows []checkpoint.PageEntry, mapped []checkpoint.Mapping) ([]checkpoint.PageEntry, error) {
	head := sl.head(last.ID)
	if head == last.ID {
		return rows, nil
	}
	was, err := sl.s.Rec.PageTable(head)
	if err != nil {
		return nil, err
	}
	now, err := sl.s.Rec.PageTable(last.ID)
	if err != nil {
		return nil, err
	}
	out := map[uint64]checkpoint.PageRef{}
	for _, e := range checkpoint.Changes(was, now) {
		if e.Ref.Kind == checkpoint.PageRemoved {
			// What is there now has no record. A final image has no row for that.
			e.Ref.Kind = checkpoint.PageAbsent
			if slices.ContainsFunc(mapped, func(m checkpoint.Mapping) bool { return m.Start <= e.Addr && e.Addr < m.End && m.Object == 0 }) {
				e.Ref.Kind = checkpoint.PageZero
			}
		}
		out[e.Addr] = e.Ref
	}
	for _, e := range rows {
		out[e.Addr] = e.Ref
	}
	return tableOf(out), nil
}

// tableOf returns pages in the order of their addresses.
func tableOf(pages map[uint64]checkpoint.PageRef) []checkpoint.PageEntry {
	out := make([]checkpoint.PageEntry, 0, len(pages))
	for _, a := range slices.Sorted(maps.Keys(pages)) {
		out = append(out, checkpoint.PageEntry{Addr: a, Ref: pages[a]})
	}
	return out
}

// head returns the interval that id is joined to, or id.
func (sl *slimmer) head(id uint32) uint32 {
	if head, ok := sl.away[id]; ok {
		return head
	}
	return id
}

// isAway reports whether id becomes part of another interval.
func (sl *slimmer) isAway(id uint32) bool { return sl.head(id) != id }
