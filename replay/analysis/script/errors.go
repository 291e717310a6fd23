package script

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Mistakes of scripts, as people read them: "FILE:LINE:COLUMN: what", and the calls that led there.

// Error is a mistake in a script, or what it said with fail().
type Error struct {
	At    string // file, line and column; "" when it is not known
	What  string
	Calls []string // the calls that led there, the innermost first, with their places
}

// Error returns the place and what is wrong, with a line for each further call.
func (e *Error) Error() string {
	s := e.What
	if e.At != "" {
		s = e.At + ": " + s
	}
	for _, c := range e.Calls {
		s += "\n  called from " + c
	}
	return s
}

// maxCalls is how many calls an Error has.
const maxCalls = 10

// scriptError makes an Error of one of Starlark's.
func scriptError(err error) error {
	var (
		eval      *starlark.EvalError
		syn       syntax.Error
		names     resolve.ErrorList
		scriptErr *Error
	)
	switch {
	case errors.As(err, &scriptErr):
		return err
	case errors.As(err, &syn):
		return &Error{At: syn.Pos.String(), What: syn.Msg}
	case errors.As(err, &names) && len(names) > 0:
		e := &Error{At: names[0].Pos.String(), What: names[0].Msg}
		if n := len(names) - 1; n > 0 {
			e.What += fmt.Sprintf(" (and %d more)", n)
		}
		return e
	case errors.As(err, &eval):
		e := &Error{What: strings.TrimPrefix(eval.Msg, "fail: ")}
		for i := len(eval.CallStack) - 1; i >= 0 && len(e.Calls) < maxCalls; i-- {
			f := eval.CallStack[i]
			if f.Pos.Filename() == "<builtin>" {
				continue
			}
			place := f.Pos.String()
			if e.At == "" {
				e.At = place
				if f.Name != "<toplevel>" {
					e.What = "in " + f.Name + ": " + e.What
				}
				continue
			}
			e.Calls = append(e.Calls, f.Name+" "+place)
		}
		return e
	}
	return err
}
