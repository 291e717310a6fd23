package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"vplay/checkpoint"
	"vplay/replay/debug/text"
)

// What vplayd says to people on standard error: an error with its hint, and lines, escaped.
// Standard output is in stdout.go, the errors' types are in main.go.

// printError writes an error, and its hint, to standard error.
func printError(err error) {
	fmt.Fprintf(stderr, "vplayd: error: %v\n", err)
	var limit *checkpoint.LimitError
	if errors.As(err, &limit) {
		err = withHint(err, exitDamaged, "%s", limitHint(limit))
	}
	var h hintError
	if !errors.As(err, &h) && isDamage(err) { // found where a part was read, long after the file was opened
		err = withHint(err, exitDamaged, damageHint)
	}
	if errors.As(err, &h) && h.hint != "" {
		fmt.Fprintf(stderr, "vplayd: hint: %s\n", h.hint)
	}
}

// isDamage reports whether an error says that a recording is damaged.
func isDamage(err error) bool {
	var damage *checkpoint.FormatError
	return errors.As(err, &damage)
}

// damageHint says what to do about a recording that is damaged.
const damageHint = "copy it again from where it was recorded"

// limitHint says what to do about a recording that asks for more than it may.
func limitHint(err *checkpoint.LimitError) string {
	return fmt.Sprintf("it may be made to do harm; if you trust it, allow more: --limit %dM", 2*err.Limit>>20)
}

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// stderr is standard error as all of vplayd writes to it but through cobra, a line
// at a time, escaped.
var stderr io.Writer = lines{}

type lines struct{}

// Write implements io.Writer. p is whole characters.
func (lines) Write(p []byte) (int, error) {
	if _, err := io.WriteString(os.Stderr, text.Escape(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
