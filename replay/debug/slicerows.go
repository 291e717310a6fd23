package debug

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/analysis/slice"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// A slice in rows: the instructions of a source line are one, and those without a line are
// a row each. Each row has a position to go to, and what the instruction made there.

// Slice is where a value came from.
type Slice struct {
	What string `json:"of"` // the value, as it was asked for
	// Rows are by how far they are from the value: the first is the value itself. What it was made of
	// comes before what only decided where that was loaded from or stored to; with control dependences these count as three rows further.
	Rows []SliceRow `json:"rows"`
	// Left is how many rows there are beyond those asked for.
	Left int `json:"left"`
	// Instructions is how many executed instructions are in the slice, of Executed. Values of them made the value.
	Instructions uint64 `json:"instructions"`
	Values       uint64 `json:"values"`
	// Controls is how many only decided that others were executed; 0 where that was not asked for.
	Controls uint64 `json:"controls,omitempty"`
	Executed uint64 `json:"executed"`
	// From is how far back the program was looked at: to the recording's start, or to where
	// everything was explained.
	From        checkpoint.Position `json:"from"`
	IsExplained bool                `json:"explained"` // nothing was there when the recording began
	// Missing says why names and lines of some rows are missing; empty when none are.
	Missing string `json:"missing,omitempty"`
}

// SliceRow is a line, an instruction, or a source of a slice.
type SliceRow struct {
	Number int    `json:"number"` // from 0
	Kind   string `json:"kind"`   // "value", "code", "branch", "call", "signal", "gap", "start"
	// Position is before the last time of Count.
	Position    checkpoint.Position `json:"position"`
	Count       uint64              `json:"count"`
	At          *loader.Location    `json:"at,omitempty"`          // of code and branches
	Instruction string              `json:"instruction,omitempty"` // the one of Position
	Result      string              `json:"result,omitempty"`      // what it made
	Stored      uint64              `json:"stored,omitempty"`      // the address of Result, where that is in memory
	Source      string              `json:"source,omitempty"`      // of others: what it is
	Needs       []int               `json:"needs,omitempty"`       // numbers of rows that made its value, newest first
	Addresses   []int               `json:"addresses,omitempty"`   // and of those that made an address of it alone
	Controls    []int               `json:"controls,omitempty"`    // and of those that decided that it was executed
	IsAddress   bool                `json:"address,omitempty"`     // the value was made without it: it decided where something was loaded or stored
	IsControl   bool                `json:"control,omitempty"`     // it decided that something was executed
	Decisions   []SliceDecision     `json:"decisions,omitempty"`   // of a branch, in the order of addresses
}

// rowKey tells rows apart.
type rowKey struct {
	function, file string
	line           int
	role           slice.Role
	v              *slice.Vertex // where there is no line
}

// rowMaker makes rows of a graph.
type rowMaker struct {
	g     *Cursor
	each  bool // instruction is a row, whatever its line
	rows  map[*slice.Vertex]*protoRow
	byKey map[rowKey]*protoRow
}

// protoRow is a row under way.
type protoRow struct {
	key    rowKey
	at     loader.Location
	newest *slice.Vertex
	pos    checkpoint.Position
	count  uint64
	needs  map[*protoRow]rowNeed
	number int
	made   []*decision // its branches
}

// rowNeed is what a row needs of another: newest is that one's last time for it.
type rowNeed struct {
	newest checkpoint.Position
	role   slice.Role // the lowest
}

// rows puts a slice in rows, of which it gives the most. With each every instruction has a row:
// of an origin the one that made the value matters, not the line's last.
func (g *Cursor) rows(ctx context.Context, s *slice.Slice, what string, most int, each bool) (*Slice, error) {
	m := rowMaker{g: g, each: each, rows: map[*slice.Vertex]*protoRow{}, byKey: map[rowKey]*protoRow{}}
	for _, v := range append([]*slice.Vertex{s.Root}, s.Vertices...) {
		if !v.IsSave() {
			m.add(v)
		}
	}
	m.decide(s.Decisions)
	for v, r := range m.rows {
		m.need(r, v)
	}
	order := m.order(m.rows[s.Root])
	if s.Decisions != nil {
		order = m.nearest(order)
	}
	out := &Slice{What: what, Instructions: s.Instances, Values: s.Values, Controls: s.Controls, Executed: s.Executed, From: s.From, IsExplained: s.IsExplained}
	out.Left = max(0, len(order)-most-1)
	order = order[:min(len(order), most+1)]
	for i, r := range order {
		out.Rows = append(out.Rows, m.row(r, i, len(order), what))
	}
	if err := g.decisions(ctx, out, order); err != nil {
		return nil, err
	}
	err := g.results(ctx, out, order)
	if limit := g.names().Limited(); limit != nil {
		out.Missing = limit.Error()
	}
	return out, err
}

// add gives a vertex its row.
func (m *rowMaker) add(v *slice.Vertex) {
	k := rowKey{v: v}
	var at loader.Location
	if v.Kind == slice.Instruction {
		if at = m.g.names().At(v.PC); at.File != "" && at.Line > 0 && !m.each {
			k = rowKey{function: at.Function, file: at.File, line: at.Line, role: v.Role}
		}
	}
	r := m.byKey[k]
	if r == nil {
		r = &protoRow{key: k, at: at, newest: v, pos: v.Newest, needs: map[*protoRow]rowNeed{}, number: -1}
		m.byKey[k] = r
	}
	if v.Newest.Compare(r.pos) > 0 {
		r.newest, r.pos, r.at = v, v.Newest, at
	}
	r.count = max(r.count, v.Count)
	m.rows[v] = r
}

// need joins the row of v to those of what v needs.
func (m *rowMaker) need(r *protoRow, v *slice.Vertex) {
	for _, e := range v.Needs {
		to := m.rows[e.To]
		if to == nil || to == r {
			continue
		}
		n, ok := r.needs[to]
		if !ok {
			n = rowNeed{e.Newest, e.Role}
		}
		if n.role = min(n.role, e.Role); e.Newest.Compare(n.newest) > 0 {
			n.newest = e.Newest
		}
		r.needs[to] = n
	}
}

// order numbers the rows: by how many addresses and decisions are between them and root, then by how far
// they are, of equals the newest first.
func (m *rowMaker) order(root *protoRow) (out []*protoRow) {
	add := func(list []*protoRow) {
		for _, r := range list {
			if r.number < 0 {
				r.number = len(out)
				out = append(out, r)
			}
		}
	}
	add([]*protoRow{root})
	for from, i := 0, 0; i < len(out); from = i {
		for ; i < len(out); i++ {
			add(out[i].sorted(slice.ForValue))
		}
		for _, r := range out[from:] {
			add(r.sorted(slice.ForAddress))
			add(r.sorted(slice.ForControl))
		}
	}
	return out
}

// steps are by how many rows further from the value what a row needs in a role is, where branches are asked for.
var steps = map[slice.Role]int{slice.ForValue: 1, slice.ForAddress: 3, slice.ForControl: 3}

// nearest numbers rows anew, by their distance from the first. The branches of a value of many rows would come behind all of them else.
func (m *rowMaker) nearest(rows []*protoRow) (out []*protoRow) {
	for _, r := range rows {
		r.number = -1
	}
	at := [][]*protoRow{rows[:1]} // by distance
	for d := 0; d < len(at); d++ {
		for _, r := range at[d] {
			if r.number >= 0 {
				continue
			}
			r.number = len(out)
			out = append(out, r)
			for _, role := range []slice.Role{slice.ForValue, slice.ForAddress, slice.ForControl} {
				for _, to := range r.sorted(role) {
					for to.number < 0 && len(at) <= d+steps[role] {
						at = append(at, nil)
					}
					if to.number < 0 {
						at[d+steps[role]] = append(at[d+steps[role]], to)
					}
				}
			}
		}
	}
	return out
}

// sorted returns what a row needs in a role, newest first.
func (r *protoRow) sorted(role slice.Role) []*protoRow {
	list := make([]*protoRow, 0, len(r.needs))
	for to, n := range r.needs {
		if n.role == role {
			list = append(list, to)
		}
	}
	slices.SortFunc(list, func(a, b *protoRow) int {
		return cmp.Or(r.needs[b].newest.Compare(r.needs[a].newest), b.pos.Compare(a.pos), cmp.Compare(a.newest.PC, b.newest.PC), cmp.Compare(a.newest.What, b.newest.What), cmp.Compare(a.newest.NR, b.newest.NR), cmp.Compare(a.newest.Arg, b.newest.Arg), cmp.Compare(a.newest.Note, b.newest.Note), cmp.Compare(a.newest.Kind, b.newest.Kind), cmp.Compare(a.newest.Role, b.newest.Role))
	})
	return list
}

// kinds are the names of kinds of vertices.
var kinds = map[slice.Kind]string{
	slice.Instruction: rowCode, slice.Criterion: "value", slice.Call: "call", slice.Signal: "signal", slice.Gap: "gap", slice.Start: "start",
}

// row makes row i; rows from limit on are not shown.
func (m *rowMaker) row(r *protoRow, i, limit int, what string) SliceRow {
	v := r.newest
	row := SliceRow{Number: i, Kind: kinds[v.Kind], Position: r.pos, Count: r.count, IsAddress: v.Role == slice.ForAddress, IsControl: v.Role == slice.ForControl}
	row.Needs, row.Addresses, row.Controls = numbers(r.sorted(slice.ForValue), limit), numbers(r.sorted(slice.ForAddress), limit), numbers(r.sorted(slice.ForControl), limit)
	switch v.Kind {
	case slice.Instruction:
		at := r.at
		row.At, row.Instruction = &at, Disassemble(Memory{m.g.mem()}, v.PC)
		if len(r.made) > 0 {
			row.Kind = rowBranch
		}
	case slice.Criterion:
		row.Source = what
	case slice.Call:
		row.Source = v.What + " of " + callName(v)
	case slice.Signal:
		row.Source = v.What + " for " + abi.Signal(v.NR).String()
	case slice.Gap:
		row.Source = "what " + callName(v) + " did, which was not recorded"
	case slice.Start:
		row.Source = v.What + " as it was where the recording begins"
		if v.What == "registers" {
			row.Source = "registers as they were where the recording begins"
		} else if v.Arg < mem.MaxUser {
			row.Source += fmt.Sprintf(": %#x", v.Arg)
			if name := m.g.names().Symbol(v.Arg); name != "" {
				row.Source += " (" + name + ")"
			}
		}
	}
	return row
}

// numbers returns the numbers of rows, of those below limit.
func numbers(list []*protoRow, limit int) (out []int) {
	for _, r := range list {
		if r.number < limit {
			out = append(out, r.number)
		}
	}
	return out
}

// callName writes a call of which the descriptor is known.
func callName(v *slice.Vertex) string {
	s := abi.Name(v.NR)
	if v.Arg < 1<<31 {
		s += fmt.Sprintf("(%d)", v.Arg)
	}
	if v.Note != "" {
		s += " " + v.Note
	}
	return s
}

// maxFiles bounds the calls whose file is looked for: each goes through the log.
const maxFiles = 100

// results looks up what the instructions of the rows made, and which file a call is about.
func (g *Cursor) results(ctx context.Context, s *Slice, order []*protoRow) error {
	var at []checkpoint.Position
	var of []int
	files := 0
	byTime := make([]int, len(order))
	for i := range byTime {
		byTime[i] = i
	}
	slices.SortFunc(byTime, func(a, b int) int { return order[a].pos.Compare(order[b].pos) })
	for _, i := range byTime {
		switch order[i].newest.Kind {
		case slice.Instruction:
			at, of = append(at, order[i].pos), append(of, i)
		case slice.Call:
			if files++; files > maxFiles {
				continue
			}
			if f, err := g.fileOf(ctx, order[i].newest); err != nil {
				return err
			} else if f != "" {
				s.Rows[i].Source += ": " + f
			}
		default:
		}
	}
	var made slice.Result
	return g.t.Look(ctx, at, func(i int, m *replay.Machine) {
		made = slice.ResultOf(m.CPU, &order[of[i]].newest.Inst)
		if r := &s.Rows[of[i]]; r.At != nil && r.At.Module == "" { // code that was unmapped since, as of a library that was unloaded
			names := loader.NewResolver(Regions(g.s.Rec, m.Mem), Memory{Space: m.Mem}, g.moduleFiles())
			was := names.At(r.At.Addr)
			r.At, r.Instruction = &was, Disassemble(Memory{m.Mem}, r.At.Addr)
		}
	}, func(i int, m *replay.Machine) {
		r := &s.Rows[of[i]]
		if r.Result = resultText(m, &made); made.IsMemory {
			r.Stored = made.Addr
		}
	})
}

// resultText writes what an instruction made, m being behind it.
func resultText(m *replay.Machine, r *slice.Result) string {
	st := &m.CPU.State
	switch {
	case r.IsMemory:
		b := make([]byte, r.Size)
		n, _ := m.Mem.Peek(r.Addr, b)
		return fmt.Sprintf("[%#x] = %s", r.Addr, value(b[:n], uint64(r.Size))) + textOf(b[:n])
	case r.IsVector:
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:], st.V[r.Reg&15][0])
		binary.LittleEndian.PutUint64(b[8:], st.V[r.Reg&15][1])
		return fmt.Sprintf("xmm%d = %s", r.Reg, value(b[:], 16))
	case r.IsFlags:
		return fmt.Sprintf("flags = %#x", st.Flags()&(x86.FlagCF|x86.FlagPF|x86.FlagAF|x86.FlagZF|x86.FlagSF|x86.FlagOF))
	case r.Size > 0:
		v := st.R[r.Reg]
		if r.Size < 8 {
			v &= 1<<(8*r.Size) - 1
		}
		return fmt.Sprintf("%s = %#x", checkpoint.RegNames[r.Reg], v) + AsText(v)
	}
	return ""
}

// textOf is AsText for eight bytes of memory.
func textOf(b []byte) string {
	if len(b) != 8 {
		return ""
	}
	return AsText(binary.LittleEndian.Uint64(b))
}

// openers are the calls that return a descriptor, whose entry says what it is of.
var openers = []int64{abi.SYS_OPEN, abi.SYS_OPENAT, abi.SYS_CREAT, abi.SYS_SOCKET, abi.SYS_ACCEPT, abi.SYS_ACCEPT4, abi.SYS_MEMFD_CREATE, abi.SYS_OPENAT2}

// fileOf returns the call that made the descriptor that v's call is about, as text; "" where
// the recording does not have it.
func (g *Cursor) fileOf(ctx context.Context, v *slice.Vertex) (string, error) {
	if v.Arg >= 1<<31 {
		return "", nil
	}
	ids := g.t.Intervals()
	for i := len(ids) - 1; i >= 0; i-- {
		if ids[i] > v.Newest.Interval {
			continue
		}
		events, err := g.s.Events(ids[i])
		if err != nil {
			return "", err
		}
		for n := len(events) - 1; n >= 0; n-- {
			e := &events[n]
			if e.Kind != checkpoint.EventExit || e.Result != int64(v.Arg) || !slices.Contains(openers, e.NR) {
				continue
			}
			for k := n - 1; k >= 0; k-- { // its entry
				if b := &events[k]; b.Kind == checkpoint.EventEnter && b.TID == e.TID {
					var text string
					at, err := g.t.EventPositions(ctx, ids[i], k, k+1, func(e *checkpoint.Event, m *mem.Space) { text = eventText(e, Memory{m}) })
					if err != nil {
						return "", err
					}
					if len(at) == 1 && at[0].Compare(v.Newest) < 0 {
						return text, nil
					}
					break
				}
			}
		}
	}
	return "", nil
}
