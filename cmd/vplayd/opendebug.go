package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/replay"
	"vplay/replay/debug"
)

// How a recording is opened for a debugger, or for a command that asks as one does: at a
// process, with symbol files and a bound on memory, in the sandbox, for one cursor or for
// all processes. Opening the file is in open.go.

// openServed opens a recording for a server, which stands where --at says.
func openServed(c *cobra.Command, path string, f serveFlags, before prepare) (*debug.Inferiors, func(), error) {
	d, closeAll, err := openDebug(c, []string{path}, f, before)
	if err != nil {
		return nil, nil, err
	}
	target, err := d.NewInferiors()
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	learnt := learn(c, d, path, f.index)
	done := func() {
		learnt()
		target.Close()
		closeAll()
	}
	if f.at != "" && f.at != "end" {
		if err := target.Seek(c.Context(), f.at); err != nil {
			done()
			return nil, nil, withHint(fmt.Errorf("--at %s: %w", f.at, err), exitUsage, atHint)
		}
	}
	return target, done, nil
}

// prepare is what is done once a recording is open, and before it is worked with. It
// gets what symbol files need of a sandbox.
type prepare func(*replay.Session, sandbox.Access) error

// openDebug opens a recording for debuggers, at the process that --process names. The function before may be nil.
func openDebug(c *cobra.Command, args []string, f serveFlags, before prepare) (*debug.Session, func(), error) {
	symbols, err := f.symbols.open()
	if err != nil {
		return nil, nil, err
	}
	s, _, done, err := openSession(c, args)
	if err != nil {
		return nil, nil, err
	}
	pid, err := processOf(c, s.Rec)
	if err != nil {
		done()
		return nil, nil, err
	}
	freeHeap()
	memory := f.budget() // reads /proc
	if before != nil {
		if err := before(s, f.symbols.access(symbols, s.Rec)); err != nil {
			done()
			return nil, nil, err
		}
	}
	d, err := debug.OpenProcess(s, pid, memory, symbols.Of(s.Rec))
	if err != nil {
		done()
		return nil, nil, err
	}
	d.RunScript = runForDebugger
	return d, func() {
		d.Close()
		done()
	}, nil
}

// openTarget opens a recording for one front end, or a command that asks as one does.
func openTarget(c *cobra.Command, args []string, f serveFlags, before prepare) (*debug.Cursor, func(), error) {
	d, done, err := openDebug(c, args, f, before)
	if err != nil {
		return nil, nil, err
	}
	g, err := d.NewCursor()
	if err != nil {
		done()
		return nil, nil, err
	}
	return g, func() {
		g.Close()
		done()
	}, nil
}

// openAt opens a recording for a command that asks at a moment, as its flag --at names it.
func openAt(c *cobra.Command, path, at string, f serveFlags) (*debug.Cursor, func(), error) {
	return openMoment(c, path, at, f, func(_ *replay.Session, a sandbox.Access) error { return enterSandbox(c, a) })
}

// openMoment is openAt with what is done before the recording is worked with.
func openMoment(c *cobra.Command, path, at string, f serveFlags, before prepare) (*debug.Cursor, func(), error) {
	g, done, err := openTarget(c, []string{path}, f, before)
	if err != nil {
		return nil, nil, err
	}
	if at != "end" {
		err = g.Monitor(c.Context(), "seek "+at, io.Discard)
		if err != nil {
			err = withHint(err, exitUsage, "--at takes a position I:N.S, begin, end, 50%%, or \"event N\"")
		} else {
			err = c.Context().Err()
		}
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return g, done, nil
}
