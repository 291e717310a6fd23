package debug

import (
	"context"
	"fmt"

	"vplay/checkpoint"
	"vplay/replay/debug/api"
	"vplay/replay/debug/text"
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
	return AbortMessage(g.names(), Memory{g.mem()})
}
