package script

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/mem/rangemap"
	"vplay/replay/observe"
)

// ranges() is a set of memory that a script changes as it goes, and on_access with it is told of accesses to what is in the set at that
// moment. The accesses are found by marks (mem.Marks), so that those to other memory cost nothing.

// rangeSet is the Starlark value.
type rangeSet struct {
	marks mem.Marks
	items rangemap.Map[rangeItem]
	hooks []*accessHook
	image int // the program that the set is of
}

// rangeItem is a range in it.
type rangeItem struct {
	start, end uint64
	value      starlark.Value
}

// Bounds implements rangemap.Value.
func (i rangeItem) Bounds() (start, end uint64) { return i.start, i.end }

// Cut implements rangemap.Value.
func (i rangeItem) Cut(start, end uint64) rangeItem { return rangeItem{start, end, i.value} }

// maxItems is how many ranges a set has.
const maxItems = 1 << 22

// newRanges is ranges().
func (r *run) newRanges() *starlark.Builtin {
	return starlark.NewBuiltin("ranges", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if err := starlark.UnpackArgs("ranges", args, kwargs); err != nil {
			return nil, err
		}
		if r.loaded || r.hooks.ranges != nil || r.hooks.heap != nil {
			return nil, errOneSet
		}
		r.hooks.ranges = &rangeSet{}
		return r.hooks.ranges, nil
	})
}

var errOneSet = errors.New("a script has one ranges(), made while it is loaded, or on_heap, which has a set of its own")

var _ starlark.HasAttrs = (*rangeSet)(nil)

// String implements starlark.Value.
func (s *rangeSet) String() string { return fmt.Sprintf("<ranges: %d>", s.items.Len()) }

// Type implements starlark.Value.
func (s *rangeSet) Type() string { return "ranges" }

// Freeze implements starlark.Value.
func (s *rangeSet) Freeze() {}

// Truth implements starlark.Value.
func (s *rangeSet) Truth() starlark.Bool { return s.items.Len() > 0 }

// Hash implements starlark.Value.
func (s *rangeSet) Hash() (uint32, error) { return 0, errors.New("ranges are no key") }

// AttrNames implements starlark.HasAttrs.
func (s *rangeSet) AttrNames() []string { return []string{"add", "find", "remove"} }

// Attr implements starlark.HasAttrs.
func (s *rangeSet) Attr(name string) (starlark.Value, error) {
	switch name {
	case "add", "remove":
		return starlark.NewBuiltin(name, s.change), nil
	case "find":
		return starlark.NewBuiltin(name, s.find), nil
	}
	return nil, nil //nolint:nilnil // this is how Starlark is told that there is none
}

// change is add(start, end, value=None), which has the range in the place of what was there, and remove(start, end).
func (s *rangeSet) change(_ *starlark.Thread, fn *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var from, to starlark.Int
	var value starlark.Value = starlark.None
	var err error
	isAdd := fn.Name() == "add"
	if isAdd {
		err = starlark.UnpackArgs(fn.Name(), args, kwargs, "start", &from, "end", &to, "value?", &value)
	} else {
		err = starlark.UnpackArgs(fn.Name(), args, kwargs, "start", &from, "end", &to)
	}
	if err != nil {
		return nil, err
	}
	start, ok := from.Uint64()
	end, also := to.Uint64()
	if !ok || !also || end < start {
		return nil, fmt.Errorf("%s: a range is START, END with START not above END", fn.Name())
	}
	switch {
	case start == end:
	case !isAdd:
		s.items = s.items.Replace(start, end)
		s.marks.Remove(start, end)
	case s.items.Len() >= maxItems:
		return nil, fmt.Errorf("add: a set has %d ranges at most", maxItems)
	default:
		s.items = s.items.Replace(start, end, rangeItem{start, end, value})
		s.marks.Add(start, end)
	}
	return starlark.None, nil
}

// find is find(address): (start, end, value) of the range that has it, or None.
func (s *rangeSet) find(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a, err := oneAddress("find", args, kwargs)
	if err != nil {
		return nil, err
	}
	i := s.items.Find(a)
	if i == nil {
		return starlark.None, nil
	}
	return starlark.Tuple{starlark.MakeUint64(i.start), starlark.MakeUint64(i.end), i.value}, nil
}

// follow has an observer tell of accesses to the set.
func (s *rangeSet) follow(r *run, ob *observe.Observer) {
	start, access, applied := ob.Start, ob.Access, ob.Applied
	ob.Marks = &s.marks
	ob.Start = func(v *observe.View) {
		if image := r.imageOf(v.Machine().Interval()); image != s.image { // it has memory of its own
			s.image, s.items = image, rangemap.Map[rangeItem]{}
			s.marks.Drop(0, mem.MaxUser)
		}
		if start != nil {
			start(v)
		}
	}
	ob.Access = func(v *observe.View, a *observe.Access) {
		if _, ok := s.marks.Next(a.Addr, a.Addr+uint64(a.Size)); ok {
			for _, h := range s.hooks {
				if a.Store && h.store || !a.Store && h.load {
					m := &moment{kind: "access", access: kept(a)}
					r.tell(h.f, v, m)
				}
			}
		}
		if access != nil {
			access(v, a)
		}
	}
	ob.Applied = func(v *observe.View, e *checkpoint.Event) {
		for i := range e.Maps { // the marks of what is unmapped are gone
			switch op := &e.Maps[i]; op.Kind {
			case checkpoint.MapOpMap, checkpoint.MapOpUnmap, checkpoint.MapOpMove:
				s.items = s.items.Replace(op.Start, op.End)
			case checkpoint.MapOpProtect, checkpoint.MapOpDrop: // It is the same memory.
			}
		}
		if applied != nil {
			applied(v, e)
		}
	}
}
