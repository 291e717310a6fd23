package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/analysis/slice"
	"vplay/replay/debug"
)

// What came before: the slice of the crash, the last calls of the program's functions, and the
// last entries of the log.

// Bounds of the lists.
const (
	maxSliceRows = 80
	maxCalls     = 40
	maxEvents    = 40
	maxEntries   = 60_000 // functions whose calls are looked for
)

// sliceTree is the slice, as a tree.
type sliceTree struct {
	What   string
	Extent []string
	Root   *branch
}

// branch is a chain of rows; what its last row is made of is in branches.
type branch struct {
	Rows     []sliceRow
	Branches []*branch
	Heading  string // of the addresses of a row
	IsOpen   bool
	depth    int
}

// HasMore reports whether there is something to fold below the first row of a branch; the root has
// no row that others could be folded below.
func (b *branch) HasMore() bool { return b.depth > 0 && len(b.Rows)+len(b.Branches) > 1 }

// First is the row that stays when the others are folded.
func (b *branch) First() sliceRow { return b.Rows[0] }

// sliceRow is a row of the slice.
type sliceRow struct {
	Number                      int
	Position, Place, Text, Code string
	Result, Count               string
	Also                        []int
}

// Branches of the slice are folded behind some rows, and below some others.
const (
	openRows  = 40
	openDepth = 3
)

// errNoSlice is why there is no slice.
const errNoSlice = sentence("It does not follow from this moment what to explain: vplayd slice takes a variable, a register or an address.")

// makeSlice slices what the program died of: what its last instruction could not cope with, else
// what was overwritten. Where it does not follow from the moment what that is, there is no
// slice. One that takes too long, or too much memory, is given up for the value's origin, which
// is little work.
func (m *maker) makeSlice(ctx context.Context) error {
	q := debug.SliceQuery{Most: maxSliceRows, Progress: func(s string) { m.progress("slicing: " + s) }}
	half, cancel := context.WithTimeout(ctx, m.o.Time/2)
	defer cancel()
	s, err := m.g.Slice(half, q)
	if isTooMuch := errors.Is(err, slice.ErrTooMany) || half.Err() != nil; isTooMuch && err != nil && ctx.Err() == nil {
		m.page.SliceNote = m.text("What all of it was made of is not shown: " + lower(m.why(err)) + " This is where the value was made, through all copies (vplayd slice --origin).")
		q.Copies = true
		s, err = m.g.Slice(ctx, q)
	}
	switch {
	case errors.Is(err, debug.ErrNoCriterion):
		return errNoSlice
	case err != nil:
		return err
	}
	m.slice = s
	m.page.Slice = &sliceTree{What: m.text(s.What), Extent: strings.Split(m.text(s.Extent()), `\n`), Root: m.tree(s)}
	return nil
}

// lower is a sentence that stands inside of another one.
func lower(s string) string { return strings.ToLower(s[:min(len(s), 1)]) + s[min(len(s), 1):] }

// tree puts the rows of a slice into branches.
func (m *maker) tree(s *debug.Slice) *branch {
	root := &branch{IsOpen: true}
	stack := []*branch{root}
	for i, t := range s.Tree() {
		if t.Row == 0 { // the value itself, which the heading names
			continue
		}
		if t.Section == debug.AddressSection {
			b := &branch{Heading: fmt.Sprintf("Where #%d loaded from or stored to:", t.Of)}
			if t.Of == 0 {
				b.Heading = "Where that was loaded from:"
			}
			root.Branches, stack = append(root.Branches, b), append(stack[:1], b)
		}
		at := stack[len(stack)-1]
		if t.IsBranch {
			for at.depth >= t.Depth {
				stack = stack[:len(stack)-1]
				at = stack[len(stack)-1]
			}
			b := &branch{IsOpen: i < openRows && t.Depth <= openDepth, depth: t.Depth}
			at.Branches, stack = append(at.Branches, b), append(stack, b)
			at = b
		}
		row := m.sliceRow(&s.Rows[t.Row])
		row.Also = t.Also
		at.Rows = append(at.Rows, row)
	}
	return root
}

func (m *maker) sliceRow(r *debug.SliceRow) sliceRow {
	out := sliceRow{Number: r.Number, Position: r.Position.String(), Result: m.most(r.Result, 60)}
	if r.Count > 1 {
		out.Count = times(r.Count)
	}
	if r.At == nil {
		out.Place = m.text(r.Source)
		return out
	}
	out.Place, out.Code = m.place(r.At), m.most(r.Instruction, 100)
	out.Text = m.sourceText(r.At.File, r.At.Line)
	return out
}

// callRow is a call of a function.
type callRow struct {
	Position, Function, From string
	Indent                   string
}

// makeCalls finds the last calls of the program's own functions: those of the C library are too
// many to tell anything.
func (m *maker) makeCalls(ctx context.Context) error {
	var entries []uint64
	program := m.g.Session().Process().Program
	for _, mod := range m.g.Modules() {
		if mod.Path == program || !isSystem(mod.Path) {
			entries = append(entries, m.g.FunctionEntries(mod, maxEntries-len(entries))...)
		}
	}
	if len(entries) == 0 {
		return sentence("No function of the program is known.")
	}
	found, err := m.g.Calls(ctx, debug.CallQuery{Entries: entries, Most: 2 * maxCalls})
	found = slices.DeleteFunc(found, func(c debug.Call) bool { return c.From == nil || c.From.Module == "" }) // no call has led there: the start, and stubs
	found = found[max(0, len(found)-maxCalls):]
	var stack []uint64
	for i := range found {
		c := &found[i]
		stack = under(stack, c.SP)
		row := callRow{
			Position: c.Position.String(), Function: m.most(c.Function, 120), Indent: strings.Repeat("  ", min(len(stack), 12)), From: m.place(c.From),
		}
		if row.Function == "" {
			row.Function = m.text(m.symbols.Symbol(c.Addr))
		}
		stack = append(stack, c.SP)
		m.page.Calls = append(m.page.Calls, row)
	}
	if err == nil && len(found) == 0 {
		m.page.CallsNote = "No call of a function of the program is in the recorded time."
	}
	return err
}

// otherStack is from which distance stack pointers are taken for those of two stacks.
const otherStack = 1 << 20

// under returns those calls that are still under way where a function is entered with a stack
// pointer, all given by theirs.
func under(stack []uint64, sp uint64) []uint64 {
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		if top > sp && top-sp < otherStack {
			break
		}
		stack = stack[:len(stack)-1]
	}
	return stack
}

// isSystem reports whether a module is one of the system's, and no program's own.
func isSystem(path string) bool {
	for _, dir := range []string{"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return !strings.HasPrefix(path, "/")
}

// eventRow is a system call with its result, a signal, a fault or a trapped instruction.
type eventRow struct {
	Number, TID    int
	Position, Text string
	IsSignal       bool
}

// wantedEvents is how many entries of the log are looked at for maxEvents rows: a call has
// two, and switches of threads have some.
const wantedEvents = 4 * maxEvents

// makeEvents lists the last entries of the log, as strace prints them.
func (m *maker) makeEvents(ctx context.Context) error {
	list, err := m.g.Events(ctx, wantedEvents)
	var rows []eventRow
	calls := map[int]int{} // by thread: the row of the call under way
	for i := range list {
		e := &list[i]
		row := eventRow{Number: e.Number, TID: e.TID, Position: e.Position.String(), Text: strings.TrimSpace(e.Text)}
		switch e.Kind {
		case checkpoint.EventExit.String():
			if at, ok := calls[e.TID]; ok {
				rows[at].Text += " = " + row.Text
				delete(calls, e.TID)
			}
			continue
		case checkpoint.EventEnter.String():
			calls[e.TID] = len(rows)
		case checkpoint.EventSignal.String(), checkpoint.EventFault.String():
			row.IsSignal = true
		case checkpoint.EventInstr.String():
		default: // The timeline shows which thread runs.
			continue
		}
		rows = append(rows, row)
	}
	for _, row := range rows[max(0, len(rows)-maxEvents):] {
		row.Text = m.text(row.Text)
		m.page.Events = append(m.page.Events, row)
	}
	if err == nil && len(list) == 0 {
		m.page.EventsNote = "There is no event before this moment in the recorded time."
	}
	return err
}

// warning is what the page warns of when a part of it ends with err: that replay and recording
// differ, or that the file is damaged. "" for other errors.
func warning(err error) string {
	var damage *checkpoint.FormatError
	switch {
	case err == nil:
		return ""
	case replay.Unmatched(err):
		return "Replay and recording differ: " + err.Error()
	case errors.As(err, &damage):
		return "The recording is damaged: " + err.Error()
	}
	return ""
}
