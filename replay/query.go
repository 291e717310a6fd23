package replay

import (
	"context"

	"vplay/checkpoint"
	"vplay/replay/mem"
)

// Queries look into the past without moving the cursor. They draw on the same
// segments as backward movements, so that they cost milliseconds once the indexer has
// been through, and are complete before it has. Their results carry positions
// that Seek takes.

// Access is an access to memory: one instruction, one iteration of a REP string
// instruction, or what an event did (the effect of a system call, a signal's
// frame).
type Access struct {
	At    checkpoint.Position // the settled position before it
	After checkpoint.Position // the position behind it
	PC    uint64              // RIP at At
	Hit   mem.Hit             // the first watched byte it touched, and how
}

// LastAccess returns the newest access to w before the position before; ok is
// false when there is none. Stores that change nothing count.
func (t *Timeline) LastAccess(ctx context.Context, w mem.Watch, before checkpoint.Position) (a Access, ok bool, err error) {
	all, err := t.Accesses(ctx, []mem.Watch{w}, before, 1)
	if err != nil || len(all) == 0 {
		return Access{}, false, err
	}
	return all[0], true, nil
}

// Accesses returns up to n accesses to the watched ranges before a position, the
// newest first. Stores that change nothing count.
func (t *Timeline) Accesses(ctx context.Context, ws []mem.Watch, before checkpoint.Position, n int) ([]Access, error) {
	found, err := t.ask(ctx, stops{watches: ws, everyStore: true}, t.index.begin, before, newest, n)
	out := make([]Access, 0, len(found))
	for i := range found {
		c := &found[i]
		out = append(out, Access{At: c.pos, After: c.after, PC: c.pc, Hit: c.stop.Hits[0]})
	}
	return out, err
}

// FirstExec returns the first position at or after the position from at which the
// instruction at addr is about to be executed; ok is false when it never is.
func (t *Timeline) FirstExec(ctx context.Context, addr uint64, from checkpoint.Position) (p checkpoint.Position, ok bool, err error) {
	found, err := t.ask(ctx, executing([]uint64{addr}, nil), from, future, oldest, 1)
	if err != nil || len(found) == 0 {
		return p, false, err
	}
	return found[0].pos, true, nil
}

// Execs returns up to n positions before a position at which an instruction at one
// of addrs is about to be executed, the newest first. filter, when not nil, is
// asked at each and may refuse it, on several goroutines at once.
func (t *Timeline) Execs(ctx context.Context, addrs []uint64, filter func(*Machine) bool, before checkpoint.Position, n int) ([]checkpoint.Position, error) {
	found, err := t.ask(ctx, executing(addrs, filter), t.index.begin, before, newest, n)
	return positions(found), err
}

// ExecsFrom is Execs from a position on, the oldest first.
func (t *Timeline) ExecsFrom(ctx context.Context, addrs []uint64, filter func(*Machine) bool, from checkpoint.Position, n int) ([]checkpoint.Position, error) {
	found, err := t.ask(ctx, executing(addrs, filter), from, future, oldest, n)
	return positions(found), err
}

func executing(addrs []uint64, filter func(*Machine) bool) stops {
	q := stops{breaks: make(map[uint64]struct{}, len(addrs)), filter: filter}
	for _, a := range addrs {
		q.breaks[a] = struct{}{}
	}
	return q
}

func positions(found []candidate) []checkpoint.Position {
	out := make([]checkpoint.Position, 0, len(found))
	for i := range found {
		out = append(out, found[i].pos)
	}
	return out
}

// ask is search for queries. The error is ctx's when that ended it.
func (t *Timeline) ask(ctx context.Context, q stops, from, to checkpoint.Position, o order, n int) ([]candidate, error) {
	t.pause()
	defer t.resume()
	if n <= 0 {
		return nil, nil
	}
	q.noSignals = true
	s := &search{index: t.index, q: q, o: o, n: n}
	found, err := s.find(ctx, from, to)
	if err == nil {
		err = ctx.Err()
	}
	return found, err
}

// Pages is what was touched in a stretch of execution: the addresses of pages for
// private memory, numbers above the user half for pages that have several.
type Pages struct {
	From, To                checkpoint.Position
	Read, Written, Executed []uint64 // sorted; the caller must not change them
}

// Segments returns what the indexer has learnt so far, in order.
func (t *Timeline) Segments() []Pages {
	c := t.index
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Pages
	for _, id := range c.intervals {
		for _, s := range c.of(id).segments {
			out = append(out, Pages{s.from, s.to, s.read, s.written, s.code.pages()})
		}
	}
	return out
}
