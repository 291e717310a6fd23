package dap

import (
	"errors"
	"fmt"

	"vplay/replay/debug/api"
)

// The numbers that stand for frames and groups of variables (Debug Adapter Protocol; its
// overview says that such a number is good until the program moves). What is in a group
// is in variable.go.

// handle is what a number stands for that the client was given: a frame, or a group
// of variables.
type handle struct {
	frame    *api.Frame
	children func(start, count int) []api.Value
}

// maxHandles bounds the handles of one position.
const maxHandles = 1 << 20

func (s *session) newHandle(h handle) (int, error) {
	if len(s.handles) >= maxHandles {
		return 0, errors.New("too many variables have been looked at here")
	}
	s.handles = append(s.handles, h)
	return s.base + len(s.handles) - 1, nil
}

func (s *session) handle(n int) (*handle, error) {
	if i := n - s.base; i >= 0 && i < len(s.handles) {
		return &s.handles[i], nil
	}
	return nil, fmt.Errorf("%d is not known, or of another position", n)
}

// frame returns the frame with an id, the innermost of the stopped thread for 0.
func (s *session) frame(id int) (*api.Frame, error) {
	if id == 0 {
		tid, err := s.thread(s.stop.TID)
		if err != nil {
			if tid, err = s.thread(0); err != nil {
				return nil, err
			}
		}
		if f := s.stack(tid); len(f) > 0 {
			return &f[0], nil
		}
		return nil, errors.New("there is no frame")
	}
	h, err := s.handle(id)
	if err != nil || h.frame == nil {
		return nil, fmt.Errorf("there is no frame %d at this position", id)
	}
	return h.frame, nil
}

// child finds a variable of a group by its name.
func (h *handle) child(name string) (api.Value, error) {
	if h.children != nil {
		for _, v := range h.children(0, 0) {
			if v.Name == name {
				return v, nil
			}
		}
	}
	return api.Value{}, fmt.Errorf("there is no %s", clip(name))
}
