package dap

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"vplay/replay/debug/api"
)

// The numbers that stand for frames and groups of variables (Debug Adapter Protocol; its
// overview says that such a number is good until the program moves). What is in a group
// is in variable.go.

// handle is what a number stands for that the client was given: a frame, or a group
// of variables.
type handle struct {
	isFrame  bool
	in       frameRef // the frame, or that of the variables
	radix    int      // of integers; 0 for what is usual
	children func(start, count int) []api.Value
	// named and indexed are how many of them there are; both 0 where nobody counted.
	named, indexed int
}

// page returns count children from start on, of those that a filter names: the indexed ones
// stand behind the others.
func (h *handle) page(filter string, start, count int) []api.Value {
	switch {
	case h.named+h.indexed == 0 || filter == "":
	case filter == "named":
		count = min(count, h.named-start)
	default:
		count = min(count, h.indexed-start)
		start += h.named
	}
	if count <= 0 {
		return nil
	}
	return h.children(start, count)
}

// frameRef is a frame of the present position: what it is may be read anew, when memory
// has been written to.
type frameRef struct{ tid, level int }

// maxHandles bounds the handles of one position.
const maxHandles = 1 << 20

func (s *session) newHandle(h handle) (int, error) {
	if len(s.handles) >= maxHandles {
		return 0, errors.New("too many variables have been looked at here")
	}
	s.handles = append(s.handles, h)
	return s.base + len(s.handles) - 1, nil
}

// errStale says that a number is of another position: clients ask with those that they
// had before the program moved, and expect no complaint.
var errStale = errors.New("the program has moved since")

// handle returns what a number stands for; the error of one of before is errStale.
func (s *session) handle(n int) (*handle, error) {
	i := n - s.base
	switch {
	case i >= 0 && i < len(s.handles):
		return &s.handles[i], nil
	case i < 0 && n >= firstHandle:
		return nil, errStale
	}
	return nil, fmt.Errorf("nothing here has the number %d", n)
}

// firstHandle is the lowest number.
const firstHandle = 1000

// frame returns the frame with an id, the innermost of the stopped thread for 0.
func (s *session) frame(id int) (*api.Frame, error) {
	ref, err := s.frameRef(id)
	if err != nil {
		return nil, err
	}
	return s.frameAt(ref)
}

// frameRef is frame, as what handles have.
func (s *session) frameRef(id int) (frameRef, error) {
	if id == 0 {
		return s.innermost()
	}
	h, err := s.handle(id)
	if err != nil {
		return frameRef{}, err
	}
	if !h.isFrame {
		return frameRef{}, fmt.Errorf("%d is no frame", id)
	}
	return h.in, nil
}

// frameAt returns a frame of the present position.
func (s *session) frameAt(ref frameRef) (*api.Frame, error) {
	frames := s.stack(ref.tid)
	if ref.level >= len(frames) {
		return nil, errNoFrame
	}
	return &frames[ref.level], nil
}

var errNoFrame = errors.New("there is no frame")

// innermost returns the innermost frame of the stopped thread.
func (s *session) innermost() (frameRef, error) {
	tid, err := s.thread(s.stop.TID)
	if err != nil {
		tid, err = s.thread(0)
	}
	return frameRef{tid: tid}, err
}

// child finds a variable of a group by its name, as the client was given it.
func (h *handle) child(name string) (api.Value, error) {
	if h.children == nil {
		return api.Value{}, errNoChild(name)
	}
	var list []api.Value
	if n, err := strconv.ParseUint(strings.Trim(name, "[]"), 10, 31); err == nil && strings.HasPrefix(name, "[") {
		list = h.children(int(n), 1) // an element, of which there may be millions
	}
	if len(list) == 0 || list[0].Name != name {
		list = h.children(0, 0)
	}
	unique(list)
	for _, v := range list {
		if v.Name == name {
			return v, nil
		}
	}
	return api.Value{}, errNoChild(name)
}

func errNoChild(name string) error { return fmt.Errorf("there is no %s", clip(name)) }

// unique makes the names of variables differ, as clients want it: of variables of the same
// name the first hides the others.
func unique(list []api.Value) {
	seen := map[string]int{}
	for i := range list {
		name := list[i].Name
		if seen[name]++; seen[name] > 1 && name != "" {
			list[i].Name = fmt.Sprintf("%s (outer %d)", name, seen[name]-1)
		}
	}
}
