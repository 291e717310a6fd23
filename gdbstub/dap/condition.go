package dap

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vplay/replay/debug/api"
)

// Conditions, hit counts and log messages of breakpoints. They are evaluated here, at a stop;
// which breakpoints there are is in breakpoint.go. Expressions are the symbols' business.

// conditions fills in what all kinds have, and says what is wrong with it.
func (b *breakpoint) conditions(condition, hits, message string) error {
	b.condition, b.message = strings.TrimSpace(condition), message
	var err error
	b.hits, err = parseHits(hits)
	return err
}

// hitCount is a condition on how often a breakpoint was hit.
type hitCount struct {
	op   string
	n    uint64
	seen uint64
}

// parseHits reads N, =N, >N, >=N, <N, <=N and %N, as VS Code's own debuggers have
// it; N alone is >=N.
func parseHits(text string) (h hitCount, err error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return h, nil
	}
	i := strings.IndexFunc(text, func(r rune) bool { return r >= '0' && r <= '9' })
	if i < 0 {
		return h, fmt.Errorf("the hit count %q is not understood", clip(text))
	}
	h.op = strings.TrimSpace(text[:i])
	if h.op == "" {
		h.op = ">="
	}
	h.n, err = strconv.ParseUint(text[i:], 10, 64)
	if err != nil || h.op == "%" && h.n == 0 || !slices.Contains([]string{"=", "==", ">", ">=", "<", "<=", "%"}, h.op) {
		return h, fmt.Errorf("the hit count %q is not understood", clip(text))
	}
	return h, nil
}

// holds counts a hit and reports whether it stops.
func (h *hitCount) holds() bool {
	h.seen++
	switch h.op {
	case "":
		return true
	case "=", "==":
		return h.seen == h.n
	case ">":
		return h.seen > h.n
	case ">=":
		return h.seen >= h.n
	case "<":
		return h.seen < h.n
	case "<=":
		return h.seen <= h.n
	}
	return h.seen%h.n == 0
}

// holds reports whether a stop at a breakpoint is one for the client: whether one
// of those that are there has its condition met. An expression that cannot be
// evaluated stops, and says why.
func (s *session) holds(stop *api.Stop) bool {
	s.breaks.hit, s.breaks.kind = nil, ""
	regs, err := s.target.Registers(stop.TID)
	if err != nil {
		return true
	}
	known := false
	for _, list := range s.breaks.groups {
		for _, b := range list {
			if !b.at(stop, regs.RIP) {
				continue
			}
			known = true
			if s.met(b, stop.TID) {
				s.breaks.hit, s.breaks.kind = append(s.breaks.hit, b.id), b.kind
			}
		}
	}
	slices.Sort(s.breaks.hit)
	return !known || len(s.breaks.hit) > 0
}

// at reports whether a stop is at the breakpoint.
func (b *breakpoint) at(stop *api.Stop, rip uint64) bool {
	if b.data.Len > 0 {
		return isBreak(stop.Kind) && stop.Kind != api.StopBreakpoint && stop.Kind != api.StopHWBreakpoint && stop.Addr == b.data.Addr
	}
	return slices.Contains(b.addrs, rip) && (stop.Kind == api.StopBreakpoint || stop.Kind == api.StopHWBreakpoint)
}

// met evaluates a breakpoint's condition, counts the hit, and writes its message.
func (s *session) met(b *breakpoint, tid int) bool {
	if b.condition == "" && b.message == "" {
		return b.hits.holds()
	}
	frames := s.symbols.Stack(tid, 1)
	if len(frames) == 0 {
		return true
	}
	if b.condition != "" {
		v, err := s.symbols.Eval(&frames[0], b.condition)
		switch {
		case err != nil:
			s.later(fmt.Sprintf("condition %s: %v", b.condition, err))
			return true
		case !v.IsNumber:
			s.later("condition " + b.condition + ": it is no number")
			return true
		case v.Bits == 0:
			return false
		}
	}
	if !b.hits.holds() {
		return false
	}
	if b.message != "" {
		s.later(s.interpolate(b.message, &frames[0]))
		return false
	}
	return true
}

// later shows a text: the client's console takes it while the program runs.
func (s *session) later(text string) {
	if s.move != nil {
		s.move.say(text)
		return
	}
	s.output(text + "\n")
}

// interpolate replaces the expressions in braces of a log message.
func (s *session) interpolate(message string, f *api.Frame) string {
	var b strings.Builder
	for b.Len() < 1<<16 {
		before, rest, ok := strings.Cut(message, "{")
		b.WriteString(before)
		expr, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			b.WriteString(rest)
			break
		}
		if v, err := s.symbols.Eval(f, expr); err != nil {
			fmt.Fprintf(&b, "<%v>", err)
		} else {
			b.WriteString(v.Text)
		}
		message = after
	}
	return b.String()
}
