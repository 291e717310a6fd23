package dap

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// The request stackTrace, and what its answer refers to: paths of source files on the
// client's side, and the numbers that stand for frames and groups of variables (Debug
// Adapter Protocol; its overview says that such a number is good until the program
// moves). What is in a group is in variable.go.

// maxFrames bounds a stack.
const maxFrames = 1000

// stack returns the frames of a thread at the present position.
func (s *session) stack(tid int) []api.Frame {
	if s.frames == nil || s.framesAt != tid {
		s.frames, s.framesAt = s.symbols.Stack(tid, maxFrames), tid
	}
	return s.frames
}

// Frame ids are those of the handles of frames: they die with the position.

func stackTrace(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.StackTraceArguments](raw)
	if err != nil {
		return nil, err
	}
	tid, err := s.thread(a.ThreadId)
	if err != nil {
		return nil, err
	}
	frames := s.stack(tid)
	from := min(max(a.StartFrame, 0), len(frames))
	to := len(frames)
	if a.Levels > 0 {
		to = min(to, from+min(a.Levels, maxFrames))
	}
	body := godap.StackTraceResponseBody{StackFrames: []godap.StackFrame{}, TotalFrames: len(frames)}
	for i := from; i < to; i++ {
		f := &frames[i]
		id, err := s.newHandle(handle{frame: f})
		if err != nil {
			return nil, err
		}
		out := godap.StackFrame{Id: id, Name: f.Function, InstructionPointerReference: hex(f.PC)}
		if out.Name == "" {
			out.Name = hex(f.PC)
			if f.Module != "" {
				out.Name += " in " + path.Base(f.Module)
			}
		}
		if f.File != "" {
			out.Source, out.Line, out.Column = s.source(f.File), f.Line-1+s.lineBase, s.lineBase
		} else {
			out.PresentationHint = "subtle"
		}
		body.StackFrames = append(body.StackFrames, out)
	}
	return body, nil
}

// source describes a recorded source file to the client.
func (s *session) source(file string) *godap.Source {
	p := file
	for _, m := range s.mappings {
		if rest, ok := under(p, m.From); ok {
			p = strings.TrimRight(m.To, `/\`) + rest
			break
		}
	}
	src := &godap.Source{Name: path.Base(strings.ReplaceAll(file, `\`, "/")), Path: p}
	if s.pathURI {
		src.Path = (&url.URL{Scheme: "file", Path: p}).String()
	}
	return src
}

// under returns what is left of p behind the folder dir; ok is false when p is not
// in it.
func under(p, dir string) (rest string, ok bool) {
	dir = strings.TrimRight(dir, `/\`)
	rest, ok = strings.CutPrefix(p, dir)
	return rest, ok && dir != "" && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}

// fromClient turns a client's path into the recorded one.
func (s *session) fromClient(p string) string {
	if u, err := url.Parse(p); err == nil && u.Scheme == "file" {
		p = u.Path
	}
	for _, m := range s.mappings {
		if rest, ok := under(p, m.To); ok {
			return strings.TrimRight(m.From, `/\`) + strings.ReplaceAll(rest, `\`, "/")
		}
	}
	return p
}

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
