package debug

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/replay/debug/api"
	"vplay/replay/debug/text"
	"vplay/replay/x86"
)

// What front ends show of where a cursor is, and of how far a movement is.

// Position implements api.PositionTarget: I:N.S, or "end".
func (g *Cursor) Position() string {
	if g.final != nil || g.isLastImage() && g.cur.AtEnd() {
		return "end" // whether anything was replayed or not
	}
	return g.cur.Position().String()
}

// When returns the present position, of which Position says "end" at the end. It replays to the
// end for that, the first time. Errors are those of a movement.
func (g *Cursor) When(ctx context.Context) (checkpoint.Position, error) {
	if err := g.leaveFinal(ctx); err != nil {
		return checkpoint.Position{}, err
	}
	return g.cur.Position(), nil
}

// Progress implements api.ProgressTarget.
func (g *Cursor) Progress() func() (share float64, words string) {
	t := g.t
	return func() (float64, string) {
		p := t.Progress()
		if p.Of == 0 {
			return 0, ""
		}
		return float64(p.Intervals) / float64(p.Of), fmt.Sprintf("%d of %s known", p.Intervals, text.Plural(p.Of, "interval"))
	}
}

// Reason implements api.ReasonTarget.
func (g *Cursor) Reason() string {
	if g.stop.Kind != api.StopSignal {
		return ""
	}
	if s := AbortMessage(g.names(), Memory{g.mem()}); s != "" {
		return s
	}
	info, err := g.Siginfo(g.tid())
	if si := abi.Siginfo(info); err == nil && si.IsFault() {
		if si.Addr() != 0 {
			return ""
		}
		return refusedAddress(g.state(), Memory{g.mem()})
	}
	if !g.isLastImage() || g.Position() != "end" {
		return ""
	}
	f, err := g.s.FinalOf(g.session.process.PID)
	if err != nil {
		return ""
	}
	defer f.Mem.Close()
	c := FindCaughtFault(g.s, f, loader.NewResolver(f.Maps, Memory{Space: f.Mem}, g.moduleFiles()))
	if c == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("because of %s, which it caught (event %d)\n%s", c.Signal, c.Event, cmp.Or(c.NotCanonical, c.Misaligned)))
}

// refusedAddress says which address an instruction was refused because of, where the signal names none.
func refusedAddress(st *x86.State, m Memory) string {
	var b [15]byte
	n := m.ReadMemory(st.RIP, b[:])
	return cmp.Or(NotCanonical(st, m, b[:n]), Misaligned(st, b[:n]))
}
