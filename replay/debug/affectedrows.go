package debug

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/analysis/slice"
	"vplay/replay/analysis/taint"
	"vplay/replay/debug/text"
	"vplay/replay/x86"
)

// What a value reached, in rows: the instructions of a source line are one, and so are all
// branches of an instruction, and all calls of one kind for a descriptor. Rows are in the order in which
// they were met first.

// Affected is what a value reached.
type Affected struct {
	What string              `json:"of"` // the value, as it was asked for
	From checkpoint.Position `json:"from"`
	To   checkpoint.Position `json:"to"` // how far it was followed
	Rows []AffectedRow       `json:"rows"`
	// Left is how many rows there are beyond those asked for.
	Left int `json:"left"`
	// Instructions is how many executed instructions made something of it, of Executed.
	Instructions uint64 `json:"instructions"`
	Executed     uint64 `json:"executed"`
	Crashed      bool   `json:"crashed"` // it reached what the program died of
	// NoInput says that nothing was read by such a call: there was nothing to follow.
	NoInput bool `json:"no_input,omitempty"`
}

// AffectedRow is a line, or something that the value decided or was handed to.
type AffectedRow struct {
	Number      int                 `json:"number"`   // from 0
	Kind        string              `json:"kind"`     // "input", "code", "branch", "target", "output", "argument", "crash"
	Position    checkpoint.Position `json:"position"` // before it, of the first time
	Last        checkpoint.Position `json:"last"`
	Count       uint64              `json:"count"`
	At          *loader.Location    `json:"at,omitempty"`
	Instruction string              `json:"instruction,omitempty"` // the one of Position
	Result      string              `json:"result,omitempty"`      // what it made
	Source      string              `json:"source,omitempty"`      // of calls and the crash: what was reached
	Bytes       uint64              `json:"bytes,omitempty"`       // of outputs: how many in all
}

// Kinds of rows.
const (
	rowInput    = "input"
	rowCode     = "code"
	rowBranch   = "branch"
	rowTarget   = "target"
	rowOutput   = "output"
	rowArgument = "argument"
	rowCrash    = "crash"
)

// metKey tells what was met apart.
type metKey struct {
	kind string
	pc   uint64
	nr   int64
	fd   uint64
}

// metPlace is something that was met.
type metPlace struct {
	metKey
	in          x86.Inst
	first, last checkpoint.Position
	count       uint64
	text        string
	bytes       uint64
}

// met is all that was met.
type met struct {
	places map[metKey]*metPlace
	recent [recentPlaces]*metPlace // of code, by address
	to     checkpoint.Position
	made   uint64
	isFull bool
}

// Bounds: how many places are kept, and found without the map.
const (
	maxMet       = 1 << 18
	recentPlaces = 1 << 10
)

func newMet() *met { return &met{places: map[metKey]*metPlace{}} }

// at returns a place, which it makes where it is new; nil where there are too many.
func (m *met) at(k metKey, p func() checkpoint.Position) *metPlace {
	x := m.places[k]
	if x == nil {
		if len(m.places) >= maxMet {
			m.isFull = true
			return nil
		}
		x = &metPlace{metKey: k, first: p()}
		m.places[k] = x
	}
	return x
}

// code notes an instruction that made something of the value.
func (m *met) code(pc uint64, in *x86.Inst, p func() checkpoint.Position) {
	m.made++
	x := m.recent[pc%recentPlaces]
	if x == nil || x.pc != pc {
		if x = m.at(metKey{kind: rowCode, pc: pc}, p); x == nil {
			return
		}
		x.in = *in
		m.recent[pc%recentPlaces] = x
	}
	x.count++
	x.last = p()
}

func here(p checkpoint.Position) func() checkpoint.Position {
	return func() checkpoint.Position { return p }
}

// use notes a use.
func (m *met) use(u *taint.Use, p checkpoint.Position) {
	var k metKey
	var what string
	switch u.Kind {
	case taint.Branch:
		k = metKey{kind: rowBranch, pc: u.PC}
	case taint.Target:
		k = metKey{kind: rowTarget, pc: u.PC}
	case taint.Argument, taint.Buffer:
		k = metKey{kind: rowOutput, pc: u.PC, nr: u.NR, fd: noDescriptor}
		name := abi.Name(u.NR)
		if c, ok := abi.Lookup(u.NR); ok && len(c.Args) > 0 && c.Args[0].Kind == abi.KindFD {
			k.fd = u.Args[0]
			name += fmt.Sprintf("(%d)", u.Args[0])
		}
		if u.Kind == taint.Argument {
			k.kind = rowArgument
			what = fmt.Sprintf("argument %d of %s", u.Arg+1, name)
		} else {
			what = fmt.Sprintf("%s, bytes %d to %d", name, u.From, u.To-1)
		}
	default:
		return // addresses are what code goes through
	}
	x := m.at(k, here(p))
	if x == nil {
		return
	}
	if x.count++; x.text == "" {
		x.text = what
	}
	x.last = p
	if u.Kind == taint.Buffer {
		x.bytes += u.To - u.From
	}
}

// noDescriptor says that a call has none.
const noDescriptor = ^uint64(0)

// source notes a call that brought what is followed.
func (m *met) source(e *checkpoint.Event, p checkpoint.Position, args [6]uint64, known bool) {
	k := metKey{kind: rowInput, nr: e.NR, fd: noDescriptor}
	what := abi.Name(e.NR)
	if known {
		k.fd = args[0]
		what += fmt.Sprintf("(%d)", args[0])
	}
	if x := m.at(k, here(p)); x != nil {
		x.count, x.last, x.text = x.count+1, p, what
		for _, w := range e.Writes {
			x.bytes += uint64(len(w.Data))
		}
	}
}

// crashed notes that the value is in what the program died of.
func (m *met) crashed(pc uint64, in *x86.Inst, p checkpoint.Position, what string) {
	if x := m.at(metKey{kind: rowCrash, pc: pc}, here(p)); x != nil {
		x.in, x.count, x.last, x.text = *in, 1, p, what
	}
}

// lineKey tells rows apart.
type lineKey struct {
	kind, function, file string
	line                 int
	place                *metPlace // where there is no line
}

// answer puts what was met in rows.
func (t *tracker) answer(ctx context.Context, what string, executed uint64) (*Affected, error) {
	m := t.met
	out := &Affected{What: what, From: t.from, To: m.to, Instructions: m.made, Executed: executed, NoInput: t.input != noInput && !t.taken}
	list := make([]*metPlace, 0, len(m.places))
	for _, x := range m.places {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b *metPlace) int {
		return cmp.Or(a.first.Compare(b.first), cmp.Compare(a.kind, b.kind), cmp.Compare(a.pc, b.pc))
	})
	rows := map[lineKey]*AffectedRow{}
	var order []*AffectedRow
	var places []*metPlace
	for _, x := range list {
		if x.kind == rowCode && isSave(&x.in) {
			continue
		}
		k := lineKey{kind: x.kind, place: x}
		var at loader.Location
		if x.pc != 0 {
			if at = t.g.names().At(x.pc); x.kind == rowCode && at.File != "" && at.Line > 0 {
				k = lineKey{kind: x.kind, function: at.Function, file: at.File, line: at.Line}
			}
		}
		if r := rows[k]; r != nil {
			r.Count = max(r.Count, x.count)
			if x.last.Compare(r.Last) > 0 {
				r.Last = x.last
			}
			continue
		}
		r := &AffectedRow{Number: len(order), Kind: x.kind, Position: x.first, Last: x.last, Count: x.count, Source: x.text, Bytes: x.bytes}
		if x.pc != 0 {
			r.At, r.Instruction = &at, Disassemble(Memory{t.g.mem()}, x.pc)
		}
		rows[k] = r
		order, places = append(order, r), append(places, x)
	}
	for _, r := range order {
		out.Crashed = out.Crashed || r.Kind == rowCrash
	}
	order = t.shown(out, order)
	return out, t.results(ctx, out, order, places)
}

// shown puts the rows that are shown in out and returns them: code is left out first.
func (t *tracker) shown(out *Affected, order []*AffectedRow) (kept []*AffectedRow) {
	room := max(t.q.Most, 1)
	others := 0
	for _, r := range order {
		if r.Kind != rowCode {
			others++
		}
	}
	code := max(room-others, 0)
	for _, r := range order {
		isCode := r.Kind == rowCode
		if isCode && code == 0 || len(kept) >= room {
			continue
		}
		if isCode {
			code--
		}
		kept = append(kept, r)
	}
	out.Left = len(order) - len(kept)
	return kept
}

// isSave reports whether in keeps a register for a caller, or brings it back.
func isSave(in *x86.Inst) bool {
	v := slice.Vertex{Kind: slice.Instruction, Inst: *in}
	return v.IsSave()
}

// results looks up what the instructions of the rows made, and numbers the rows.
func (t *tracker) results(ctx context.Context, out *Affected, order []*AffectedRow, places []*metPlace) error {
	var at []checkpoint.Position
	var of []*AffectedRow
	var in []*x86.Inst
	for _, r := range order {
		if r.Kind == rowCode {
			at, of, in = append(at, r.Position), append(of, r), append(in, &places[r.Number].in)
		}
	}
	var made slice.Result
	err := t.g.t.Look(ctx, at, func(i int, m *replay.Machine) {
		made = slice.ResultOf(m.CPU, in[i])
	}, func(i int, m *replay.Machine) { of[i].Result = resultText(m, &made) })
	for i, r := range order {
		r.Number = i
		out.Rows = append(out.Rows, *r)
	}
	return err
}

// String writes the rows, and what is left out.
func (a *Affected) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  from %s\n", text.Printable(a.What), a.From)
	for i := range a.Rows {
		b.WriteString(a.Rows[i].String() + "\n")
	}
	fmt.Fprintf(&b, "%s of %s executed, up to %s", text.Plural(int(a.Instructions), "instruction"), text.Count(a.Executed), a.To)
	if a.NoInput {
		b.WriteString("; no call there has read anything")
	}
	if a.Crashed {
		b.WriteString("; it reached what the program died of")
	}
	if a.Left > 0 {
		fmt.Fprintf(&b, "\n%s more; -n shows more of them", text.Plural(a.Left, "row"))
	}
	return b.String()
}

// String writes a row, beginning with its number.
func (r *AffectedRow) String() string {
	s := fmt.Sprintf("#%d  %s  ", r.Number, r.Position)
	switch r.Kind {
	case rowCode:
		s += placeText(*r.At) + "  " + r.Instruction
		if r.Result != "" {
			s += "  " + r.Result
		}
	case rowBranch, rowTarget:
		s += r.Kind + " " + placeText(*r.At) + "  " + r.Instruction
	default:
		s += r.Kind + " " + text.Printable(r.Source)
		if r.At != nil {
			s += "  " + placeText(*r.At)
		}
	}
	if r.Count > 1 {
		s += fmt.Sprintf("  (x %s, last at %s)", text.Count(r.Count), r.Last)
	}
	return s
}
