package dap

import (
	"path"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// The request stackTrace: the frames of a thread. Paths of their source files are in
// source.go, the numbers of frames in handle.go.

// maxFrames bounds a stack.
const maxFrames = 1000

// stack returns the frames of a thread at the present position.
func (s *session) stack(tid int) []api.Frame {
	f, ok := s.frames[tid]
	if !ok {
		f = s.symbols.Stack(tid, maxFrames)
		s.frames[tid] = f
	}
	return f
}

func stackTrace(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.StackTraceArguments](raw)
	if err != nil {
		return nil, err
	}
	tid, err := s.thread(a.ThreadId)
	if err != nil { // it has ended, or not begun
		return godap.StackTraceResponseBody{StackFrames: []godap.StackFrame{}}, nil //nolint:nilerr // it has no frames
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
		id, err := s.newHandle(handle{isFrame: true, in: frameRef{tid, i}})
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
			out.Source, out.Line, out.Column = s.source(f.File), f.Line-1+s.lineBase, s.columnBase
		} else {
			out.PresentationHint = "subtle"
		}
		body.StackFrames = append(body.StackFrames, out)
	}
	return body, nil
}
