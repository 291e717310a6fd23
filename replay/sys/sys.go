// Package sys applies the recorded effects of the outside world to a guest:
// changes of its memory map and bytes that came in. The recorder lists every
// effect, so nothing here knows what a system call means; no call is ever
// executed on the machine that replays.
package sys

import (
	"context"
	"errors"
	"fmt"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/replay/mem"
)

// Effects applies an event's map changes, then its writes. spend is called with what they
// have gone through, in bytes of work. The error names the first effect that does not fit
// the guest's memory, or is ctx's or spend's: one event may change all of a map of 65,000
// mappings many thousand times, or have millions of writes.
func Effects(ctx context.Context, spend func(int64) error, s *mem.Space, e *checkpoint.Event, objects map[uint32]checkpoint.Object) error {
	if len(e.Maps) > 0 {
		if err := changeMap(ctx, spend, s, e.Maps, objects); err != nil {
			return err
		}
	}
	for i, w := range e.Writes {
		if i%manyWrites == manyWrites-1 {
			if err := errors.Join(ctx.Err(), spend(manyWrites*writeWork)); err != nil {
				return err
			}
		}
		if f := inject(s, w.Addr, w.Data); f.Kind != mem.FaultNone {
			return fmt.Errorf("the log writes %d bytes at %#x, where nothing is mapped at %#x", len(w.Data), w.Addr, f.Addr)
		}
	}
	return nil
}

const (
	// writeWork is what one write takes, however short, in bytes of work.
	writeWork = 32
	// manyWrites is how many of an event are charged at once; the last that are fewer
	// are free.
	manyWrites = 1024
)

// changeMap makes the changes of the map of an event, and asks before each, and within
// those that take long, whether it may go on.
func changeMap(ctx context.Context, spend func(int64) error, s *mem.Space, ops []checkpoint.MapOp, objects map[uint32]checkpoint.Object) error {
	before := s.Work()
	charge := func() error {
		if n := s.Work() - before; n > 0 {
			if err := spend(n); err != nil {
				return err
			}
			before += n
		}
		return ctx.Err()
	}
	s.Charge = charge
	defer func() { s.Charge = nil }()
	for i := range ops {
		op := &ops[i]
		if err := charge(); err != nil {
			return err
		}
		if !isRange(op.Start, op.End) || op.Kind == checkpoint.MapOpMove && !isRange(op.New, op.NewEnd) {
			return fmt.Errorf("the log changes the map at %#x-%#x, which is no range of pages that a program has", op.Start, op.End)
		}
		if op.Start < op.End {
			if err := mapOp(s, op, objects); err != nil {
				return err
			}
		}
	}
	return charge()
}

// isRange reports whether [start, end) is a range of whole pages of the user half.
func isRange(start, end uint64) bool {
	return start <= end && end <= mem.MaxUser && start%mem.PageSize == 0 && end%mem.PageSize == 0
}

// stackGrowth is how far the kernel's own writes may extend a stack.
const stackGrowth = 64 << 20

// inject writes as the kernel does, which extends the stack for signal frames.
func inject(s *mem.Space, a uint64, b []byte) mem.Fault {
	f := s.Inject(a, b)
	if f.Kind == mem.FaultNotMapped && s.Grow(f.Addr, stackGrowth) {
		f = s.Inject(a, b)
	}
	return f
}

// mapOp makes one change of the map. The error is that of s.Charge.
func mapOp(s *mem.Space, op *checkpoint.MapOp, objects map[uint32]checkpoint.Object) error {
	switch op.Kind {
	case checkpoint.MapOpMap:
		m := op.Map
		m.Start, m.End = op.Start, op.End
		s.Map(loader.Region(&m, objects, true))
	case checkpoint.MapOpUnmap:
		s.Unmap(op.Start, op.End)
	case checkpoint.MapOpProtect:
		s.Protect(op.Start, op.End, op.Prot)
	case checkpoint.MapOpMove:
		return s.Move(op.Start, op.End, op.New, op.NewEnd)
	case checkpoint.MapOpDrop:
		s.Drop(op.Start, op.End)
	}
	return nil
}

// Name returns the name of system call nr.
func Name(nr int64) string {
	if c, ok := abi.Lookup(nr); ok {
		return c.Name
	}
	return fmt.Sprintf("system call %d", nr)
}
