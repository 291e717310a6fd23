package deviate

import (
	"context"
	"fmt"
	"io"
	"slices"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/analysis/slice"
	"vplay/replay/debug"
	"vplay/replay/x86"
)

// What is told of a deviation: where it was in both runs, what decided it, and where that came from.

// Result is what Find has found.
type Result struct {
	// What is what is wrong in the bad run, at a position of it.
	What     string              `json:"of"`
	Bad      string              `json:"bad"`
	Position checkpoint.Position `json:"position"`
	// Deviations are those that led to it, the likeliest first, without those left out.
	Deviations []Deviation `json:"deviations"`
	Left       int         `json:"left"`
	// First is where the bad run first went another way than the first good run, whether that matters or not; nil where it is not
	// found near the beginning.
	First *Side `json:"first,omitempty"`
	// Difference is how different the bad run was in each of equal pieces of its instructions: 0 where good runs
	// did the same, 1 where no good run ever did anything of it.
	Difference []float64 `json:"difference"`
	// Instructions is how many the bad run has up to the fault.
	Instructions uint64 `json:"instructions"`
}

// Deviation is a place where the bad run went another way.
type Deviation struct {
	Why  Why  `json:"kind"`
	Bad  Side `json:"bad"`
	Good Side `json:"good"`
	// Distance is how many source lines are between it and the fault in the slice.
	Distance int `json:"distance"`
	// Window is how many instructions the bad run executed from it to the fault.
	Window uint64 `json:"window"`
	// Turns, MostTurns: of a loop or of a function that calls itself, in the bad run and at most in good ones.
	Turns     uint64 `json:"turns,omitempty"`
	MostTurns uint64 `json:"mostTurns,omitempty"`
}

// Side is a deviation in one run. The zero Side is of good runs that were never there.
type Side struct {
	Run      string               `json:"run,omitempty"`
	Position *checkpoint.Position `json:"position,omitempty"`
	At       *loader.Location     `json:"at,omitempty"`
	To       *loader.Location     `json:"to,omitempty"` // where a branch went
	// Decided is the instruction whose outcome decided, of the first deviation, and Values are what it
	// compared.
	Decided string  `json:"decided,omitempty"`
	Values  []Value `json:"values,omitempty"`
}

// Value is a register or memory that decided a branch.
type Value struct {
	Name string `json:"name"` // as slice takes it
	Text string `json:"value"`
	// Origin is where it came from through copies: a row of its slice. Empty where that is not known.
	Origin string `json:"origin,omitempty"`
}

// result tells of the deviations.
func (f *finder) result(ctx context.Context) (*Result, error) {
	n := min(len(f.list), f.o.Most)
	r := &Result{What: f.bad.what, Bad: f.bad.Name, Position: f.bad.o.At, Left: len(f.list) - n, Instructions: f.bad.since(checkpoint.Position{})}
	r.First = f.first()
	for i := range pieces {
		d := 0.0
		if t := f.bad.t; t.total[i] > 0 {
			d = t.novel[i] / t.total[i]
		}
		r.Difference = append(r.Difference, d)
	}
	for i := range f.list[:n] {
		v := &f.list[i]
		f.meet(v)
		d := Deviation{Why: v.why, Distance: v.lines, Window: f.bad.since(v.at), Turns: v.turns[0], MostTurns: v.turns[1]}
		var err error
		if d.Bad, err = f.side(ctx, f.bad, v.at, v.pc, v.to, v, i == 0); err != nil {
			return nil, err
		}
		if v.good != nil {
			if d.Good, err = f.side(ctx, v.good, v.goodAt, v.goodPC, v.goodTo, v, i == 0); err != nil {
				return nil, err
			}
		}
		r.Deviations = append(r.Deviations, d)
	}
	return r, nil
}

// first returns the first branch with a source line that went another way than in the first good run; nil where it is not
// among the first of all.
func (f *finder) first() *Side {
	own := func(r *run, list []opened) []opened {
		for i := range list {
			if r.names.isOwn(list[i].from) {
				return list[i:]
			}
		}
		return nil
	}
	g := f.good[0]
	shift := f.seen.shifts[0]
	a, b := own(f.bad, f.bad.t.opening), own(g, g.t.opening)
	for len(a) > 0 && len(b) > 0 {
		is := slices.Contains(shift.of(b[0].from), f.bad.names.place(a[0].from)) && slices.Contains(shift.of(b[0].to), f.bad.names.place(a[0].to))
		if !is {
			at, to, p := f.bad.names.at(a[0].from), f.bad.names.at(a[0].to), a[0].at
			return &Side{Run: f.bad.Name, Position: &p, At: &at, To: &to}
		}
		a, b = own(f.bad, a[1:]), own(g, b[1:])
	}
	return nil
}

// since returns how many instructions there are from a position to the end of a run.
func (r *run) since(p checkpoint.Position) (n uint64) {
	for _, id := range r.Cursor.Timeline().Intervals() {
		switch {
		case id < p.Interval || id > r.end.Interval:
		case id == r.end.Interval:
			n += r.end.Instr
		default:
			n += r.t.lengths[id]
		}
	}
	return n - min(n, p.Instr)
}

// meet finds a good run that came to the branch of v and went elsewhere.
func (f *finder) meet(v *deviation) {
	if v.good != nil {
		return
	}
	if v.why == Fault || v.why == Data {
		for _, g := range f.good {
			if at, ok := f.moments[g]; ok {
				v.good, v.goodAt, v.goodPC = g, at.at, at.pc
				return
			}
		}
		return
	}
	p := f.bad.names.place(v.pc)
	to := f.bad.names.place(v.to)
	var best *times
	for i, g := range f.good {
		shift := f.seen.shifts[i]
		for w, x := range g.t.ways {
			if !slices.Contains(shift.of(w.from), p) {
				continue
			}
			isSame := slices.Contains(shift.of(w.to), to)
			if isSame && v.why != Together && v.why != NewCaller {
				continue
			}
			if best == nil || x.last.Compare(best.last) > 0 && g == v.good {
				best = x
				v.good, v.goodAt, v.goodPC, v.goodTo = g, x.last, w.from, w.to
			}
		}
	}
}

// side tells of a deviation in a run, and with values what decided it.
func (f *finder) side(ctx context.Context, r *run, at checkpoint.Position, pc, to uint64, v *deviation, values bool) (Side, error) {
	l := r.names.at(pc)
	s := Side{Run: r.Name, Position: &at, At: &l}
	if to != 0 {
		l := r.names.at(to)
		s.To = &l
	}
	if !values {
		return s, nil
	}
	d := decision{at: at}
	var err error
	if to == 0 {
		err = r.crashValues(ctx, &d)
	} else {
		r.decidedBy(pc, &d)
	}
	if err == nil && d.in.Len > 0 {
		s.Decided = debug.Disassemble(debug.Memory{Space: r.space}, d.pc)
		s.Values, err = r.values(ctx, &d)
	}
	return s, err
}

// decision is the instruction that made what a branch depends on.
type decision struct {
	at    checkpoint.Position
	pc    uint64
	in    x86.Inst
	wants []slice.Location // for the fault
}

// decidedBy finds the instruction of the block of the branch at pc that set the flags it tests.
func (r *run) decidedBy(pc uint64, d *decision) {
	first := uint64(0)
	for a, b := range r.t.blocks {
		if a <= pc && pc <= b && a > first {
			first = a
		}
	}
	if first == 0 {
		return
	}
	n, behind := uint64(0), uint64(0)
	r.code.Each(first, pc, func(at uint64, in *x86.Inst) {
		if at < pc && in.Effects().Write.Flags != 0 {
			d.pc, d.in, behind = at, *in, n
		}
		n++
	})
	if d.in.Len > 0 && n > 0 {
		d.at.Instr -= min(d.at.Instr, n-1-behind)
	}
}

// crashValues says that what matters of the fault are the registers of its address.
func (r *run) crashValues(ctx context.Context, d *decision) error {
	return r.Cursor.Timeline().Look(ctx, []checkpoint.Position{d.at}, func(_ int, m *replay.Machine) {
		if in, ok := instructionAt(m); ok {
			d.in, d.pc = in, m.CPU.RIP
			d.wants = slice.CrashWants(m.CPU, &in, true)
		}
	}, func(int, *replay.Machine) {})
}

// maxOrigin is how many rows of an origin are looked at for the last.
const maxOrigin = 40

// values reads what an instruction compared, and asks where it came from.
func (r *run) values(ctx context.Context, d *decision) (out []Value, err error) {
	if err := r.Cursor.Monitor(ctx, "seek "+d.at.String(), io.Discard); err != nil {
		return nil, err
	}
	m := r.Cursor.Machine()
	if m.CPU.RIP != d.pc { // an event came between
		return nil, nil
	}
	if len(d.wants) > 0 {
		for _, w := range d.wants {
			if !w.IsMemory && !w.IsVector {
				out = append(out, Value{Name: "$" + checkpoint.RegNames[w.Reg&15], Text: fmt.Sprintf("%#x", m.CPU.R[w.Reg&15])})
			}
		}
	} else {
		out = operands(m, &d.in)
	}
	for i := range out {
		s, err := r.Cursor.Slice(ctx, debug.SliceQuery{Expr: out[i].Name, Copies: true, Most: maxOrigin})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil { // it is told without
			continue
		}
		for k := range s.Rows {
			if row := &s.Rows[k]; k > 0 && len(row.Needs) == 0 {
				out[i].Origin = row.String()
				break
			}
		}
	}
	return out, nil
}

// operands returns what in, at which m stands, reads but for flags.
func operands(m *replay.Machine, in *x86.Inst) (out []Value) {
	size := min(max(int(in.Size), 1), 8)
	mask := ^uint64(0) >> (64 - 8*size)
	for _, o := range in.Operands() {
		if o.Dir&x86.DirRead == 0 || o.Name == "flags" {
			continue
		}
		var v Value
		if o.Uses.Parts&x86.PartMemory != 0 {
			a := m.CPU.Address(in)
			b := make([]byte, size)
			if n, _ := m.Mem.Peek(a, b); n < size {
				continue
			}
			n := uint64(0)
			for i := range b {
				n |= uint64(b[i]) << (8 * i)
			}
			v = Value{Name: fmt.Sprintf("%#x,%d", a, size), Text: number(n, size)}
		} else {
			for n := range uint8(16) {
				if o.Uses.R == 1<<n && n != x86.RSP {
					v = Value{Name: registerName(n, size), Text: number(m.CPU.R[n]&mask, size)}
				}
			}
		}
		if v.Name != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// number writes a value of so many bytes, and in decimal where it is short or negative.
func number(v uint64, size int) string {
	s := int64(v<<(64-8*size)) >> (64 - 8*size)
	if v < 10 {
		return fmt.Sprintf("%d", v)
	}
	if s < 0 || v < 1<<32 {
		return fmt.Sprintf("%#x (%d)", v, s)
	}
	return fmt.Sprintf("%#x", v)
}

// registerName names the lowest bytes of a register as slice takes them.
func registerName(n uint8, size int) string {
	name := checkpoint.RegNames[n]
	switch {
	case size == 8 || size == 1 && n >= 4:
		return "$" + name
	case size == 1:
		return "$" + name[1:2] + "l"
	case n < 8 && size == 4:
		return "$e" + name[1:]
	case n < 8:
		return "$" + name[1:]
	}
	return "$" + name + "d"
}
