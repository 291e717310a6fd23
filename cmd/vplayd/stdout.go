package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"vplay/replay/debug/text"
)

// Standard output. Errors, hints and progress go to standard error, in ui.go and progress.go.

// results is standard output, where the verbs print what they were asked for.
// It keeps the first error, so that a verb may print line after line without
// looking at each: run reports it in the end, and an exit code of 0 says that
// all was written.
type results struct {
	f    *os.File
	text text.Escaper // writes to f
	used bool
	err  error
}

// Write writes to the file. After an error it writes no more and returns that.
func (r *results) Write(b []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	r.used = true
	var n int
	if r.text.W == nil {
		r.text.W = r.f
	}
	n, r.err = r.text.Write(b)
	return n, r.err
}

// raw returns what writes to w without escapes: for a protocol, not for people.
func raw(w io.Writer) io.Writer {
	if r, ok := w.(*results); ok {
		return rawResults{r}
	}
	return w
}

// rawResults is results for bytes that are not text.
type rawResults struct{ r *results }

func (w rawResults) Write(b []byte) (int, error) {
	if w.r.err != nil {
		return 0, w.r.err
	}
	w.r.used = true
	var n int
	n, w.r.err = w.r.f.Write(b)
	return n, w.r.err
}

// lost returns nil when all that was printed was written, an exitError when
// nobody reads it any more, and else an error that says why it was not. It
// closes the file: some file systems say only then that they took nothing.
// Where there is no standard output, nothing printed is nothing lost.
func (r *results) lost() error {
	if err := r.f.Close(); r.err == nil && r.used {
		r.err = err
	}
	switch {
	case r.err == nil:
		return nil
	case errors.Is(r.err, syscall.EPIPE):
		// As if SIGPIPE had ended it, which it does unless that is ignored (os/signal).
		return exitError{exitPipe}
	}
	why := r.err
	var p *fs.PathError
	if errors.As(why, &p) {
		why = p.Err
	}
	return withHint(fmt.Errorf("cannot write to standard output: %w", why), exitFailed, "what was printed is not all there is")
}
