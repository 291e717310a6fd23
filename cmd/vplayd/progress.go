package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"vplay/replay/debug/text"
)

// One line on the terminal that says how far a long work is.

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
