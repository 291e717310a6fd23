package debug

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/analysis/slice"
	"vplay/replay/debug/text"
)

// The branches of a slice that follows control dependences: in the row of their source line, with where they went,
// how often, and what was compared for that.

// SliceDecision is a conditional branch, or a jump or call to where a register or memory says, that led to rows of the slice.
type SliceDecision struct {
	Instruction string              `json:"instruction"`
	Position    checkpoint.Position `json:"position"`           // before the last time
	Compared    string              `json:"compared,omitempty"` // what it was decided by then
	// Ways are where it went as far as that led to something in the slice, the newest first.
	Ways []SliceWay `json:"ways"`
	// Left is how many ways there are beyond those.
	Left int `json:"left,omitempty"`
}

// SliceWay is where a branch went.
type SliceWay struct {
	IsTaken bool            `json:"taken"` // not to the instruction behind it
	To      loader.Location `json:"to"`
	Count   uint64          `json:"count"`
}

// decision is a branch under way.
type decision struct {
	v    *slice.Vertex
	ways []*slice.Decision // newest first
}

// maxWays is how many ways of a branch are shown.
const maxWays = 8

// decide gives the branches to their rows. A call of one function decides nothing itself: it is a row like others.
func (m *rowMaker) decide(list []slice.Decision) {
	of := map[*slice.Vertex]*decision{}
	for i := range list {
		v := list[i].Branch
		r := m.rows[v]
		if !v.IsDecision() || r == nil {
			continue
		}
		d := of[v]
		if d == nil {
			d = &decision{v: v}
			of[v], r.made = d, append(r.made, d)
		}
		d.ways = append(d.ways, &list[i])
	}
	for _, r := range m.byKey {
		if len(r.made) == 0 {
			continue
		}
		slices.SortFunc(r.made, func(a, b *decision) int { return cmp.Compare(a.v.PC, b.v.PC) })
		newest := r.made[0]
		for _, d := range r.made {
			if d.v.Newest.Compare(newest.v.Newest) > 0 {
				newest = d
			}
		}
		r.newest, r.pos, r.at = newest.v, newest.v.Newest, m.g.names().At(newest.v.PC)
	}
}

// decisions fills in the branches of the rows that are shown.
func (g *Cursor) decisions(ctx context.Context, s *Slice, order []*protoRow) error {
	type made struct {
		edge *slice.Edge
		to   *SliceDecision
		of   *slice.Vertex
	}
	var all []made
	for i, r := range order {
		row := &s.Rows[i]
		row.Decisions = make([]SliceDecision, len(r.made))
		for k, d := range r.made {
			to := &row.Decisions[k]
			to.Instruction, to.Position = Disassemble(Memory{g.mem()}, d.v.PC), d.v.Newest
			for _, w := range d.ways[:min(len(d.ways), maxWays)] {
				to.Ways = append(to.Ways, SliceWay{w.To != d.v.PC+uint64(d.v.Inst.Len), g.names().At(w.To), w.Count})
			}
			to.Left = len(d.ways) - len(to.Ways)
			if e := d.v.DecidedBy(); e != nil {
				all = append(all, made{e, to, d.v})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b made) int { return a.edge.Newest.Compare(b.edge.Newest) })
	at := make([]checkpoint.Position, len(all))
	for i := range all {
		at[i] = all[i].edge.Newest
	}
	var result slice.Result
	return g.t.Look(ctx, at, func(i int, m *replay.Machine) {
		in := &all[i].edge.To.Inst
		all[i].to.Compared = slice.Compared(m.CPU, in, &all[i].of.Inst, func(a uint64, b []byte) int {
			n, _ := m.Mem.Peek(a, b)
			return n
		})
		result = slice.ResultOf(m.CPU, in)
	}, func(i int, m *replay.Machine) {
		if d := all[i].to; d.Compared == "" {
			d.Compared = resultText(m, &result)
		}
	})
}

// String writes a decision: what was compared, and where it went how often.
func (d *SliceDecision) String() string {
	var b strings.Builder
	if d.Compared != "" {
		b.WriteString(d.Compared + ": ")
	}
	if len(d.Ways) > 0 {
		b.WriteString(d.Ways[0].String())
	}
	if len(d.Ways) > 1 {
		b.WriteString(" (")
		for i := range d.Ways {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s %s", text.Count(d.Ways[i].Count), d.Ways[i].String())
		}
		if d.Left > 0 {
			fmt.Fprintf(&b, ", and %d other ways", d.Left)
		}
		b.WriteString(")")
	}
	return b.String()
}

// String says which way it is.
func (w *SliceWay) String() string {
	if !w.IsTaken {
		return "not taken"
	}
	return fmt.Sprintf("taken to %s", wayName(&w.To))
}

// wayName names a place by its line, or else its address.
func wayName(l *loader.Location) string {
	if l.File != "" && l.Line > 0 {
		return text.Printable(fmt.Sprintf("%s:%d", l.File, l.Line))
	}
	return text.Printable(fmt.Sprintf("%#x %s", l.Addr, l))
}

// decisionsText writes the branches of a row.
func decisionsText(list []SliceDecision) string {
	var out []string
	for i := range list {
		s := list[i].String()
		if len(list) > 1 {
			s = list[i].Instruction + "  " + s
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}
