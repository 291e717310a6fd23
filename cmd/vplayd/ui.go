package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"vplay/checkpoint"
	"vplay/replay/debug/text"
)

// What the verbs share for talking to people: errors with hints, the log, a progress
// line and standard error, and numbers as text. Standard output is in stdout.go, and the
// errors' types are in main.go.

// printError writes an error, and its hint, to standard error.
func printError(err error) {
	fmt.Fprintf(stderr, "vplayd: error: %v\n", err)
	var limit *checkpoint.LimitError
	if errors.As(err, &limit) {
		err = withHint(err, exitDamaged, "it may be made to do harm; if you trust it, allow more: --limit %d", 2*limit.Limit)
	}
	var h hintError
	if errors.As(err, &h) && h.hint != "" {
		fmt.Fprintf(stderr, "vplayd: hint: %s\n", h.hint)
	}
}

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// logger builds the logger that the flags ask for; by default warnings only.
func logger(c *cobra.Command, component string) zerolog.Logger {
	spec, _ := c.Flags().GetString("log")
	format, _ := c.Flags().GetString("log-format")
	out := stderr
	if format == "console" || format == "" && isTerminal(os.Stderr) {
		out = zerolog.ConsoleWriter{
			Out: os.Stderr, NoColor: os.Getenv("NO_COLOR") != "", TimeFormat: "15:04:05.000", // it writes colours
			FormatPrepare: escapeEvent,
		}
	}
	level := zerolog.WarnLevel
	for _, part := range strings.Split(spec, ",") {
		name, value, found := strings.Cut(part, "=")
		if !found {
			name, value = "", part
		}
		if l, err := zerolog.ParseLevel(value); err == nil && value != "" && (name == "" || name == component) {
			level = l
		}
	}
	return zerolog.New(out).Level(level).With().Timestamp().Str("component", component).Logger()
}

// escapeEvent escapes the message of an event of the log. The console's writer
// quotes the values of all other fields.
func escapeEvent(event map[string]any) error {
	if message, ok := event[zerolog.MessageFieldName].(string); ok {
		event[zerolog.MessageFieldName] = text.Escape(message)
	}
	return nil
}

// progress is one line on a terminal's standard error, rewritten in place;
// elsewhere it prints nothing.
type progress struct {
	mu   sync.Mutex
	on   bool
	last time.Time
	text string
}

func newProgress(quiet bool) *progress {
	return &progress{on: !quiet && isTerminal(os.Stderr)}
}

// show replaces the line, at most ten times a second.
func (p *progress) show(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on || time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.last = time.Now()
	p.text = text.Escape(fmt.Sprintf(format, args...))
	fmt.Fprintf(os.Stderr, "\r\x1b[K%s", p.text)
}

// done removes the line.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on && p.text != "" {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

// bar draws a progress bar of 20 cells.
func bar(part float64) string {
	n := int(min(max(part, 0), 1) * 20)
	return strings.Repeat("#", n) + strings.Repeat("-", 20-n)
}

// size writes a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
}

// count writes a large number with thin groups.
func count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

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
