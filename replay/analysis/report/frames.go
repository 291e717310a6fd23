package report

import (
	"fmt"
	"strings"

	"vplay/replay/debug/api"
)

// The calls that led to the moment, with the variables of the first ones, and the threads.

// Bounds of the lists.
const (
	maxFrames       = 48 // of the thread that the page is about
	shownVariables  = 6  // frames with variables: the program's own
	openVariables   = 3  // those of them that are not folded
	maxVariables    = 32 // of a frame
	maxMembers      = 12 // of a variable
	maxThreads      = 40
	maxThreadFrames = 12
)

// frame is a call.
type frame struct {
	Number   int
	Function string // or what is known of the place
	Module   string
	Short    string // file and line
	Source   string // the file's path
	Text     string // of the line
	Address  string
	HasLine  bool
	Inlined  bool
	Locals   []variable
	More     string // variables
	IsOpen   bool
	isOwn    bool // the program's, not of a library of the system
}

// variable is a variable with its members.
type variable struct {
	Name, Type, Text string
	Members          []variable
	More             string
}

// makeFrames makes the backtrace. The stack is walked further than it is shown, to count it.
func (m *maker) makeFrames() {
	const counted = 4000
	stack := m.symbols.Stack(m.tid, counted)
	for i := range stack[:min(len(stack), maxFrames)] {
		m.page.Frames = append(m.page.Frames, m.frame(i, &stack[i]))
	}
	first := m.culprit()
	for i, shown := 0, 0; i < len(m.page.Frames) && shown < shownVariables; i++ {
		if f := &m.page.Frames[i]; f.isOwn || i == first {
			m.variables(f, &stack[i])
			f.IsOpen = shown < openVariables
			shown++
		}
	}
	m.page.MoreFrames = more(len(stack), maxFrames, "call")
	if len(stack) == counted {
		m.page.MoreFrames = fmt.Sprintf("and more than %d calls more", counted-maxFrames)
	}
}

// frame describes a call.
func (m *maker) frame(i int, f *api.Frame) frame {
	out := frame{
		Number: i, Function: m.most(f.Function, 160), Module: m.module(f.Module), Address: fmt.Sprintf("%#x", f.PC),
		HasLine: f.File != "", Inlined: f.Inlined, isOwn: f.Module != "" && !isSystem(f.Module),
	}
	if out.Function == "" {
		if out.Function = m.most(m.symbols.Symbol(f.PC), 160); out.Function == "" {
			out.Function = out.Address
		}
	}
	if f.File != "" {
		out.Short, out.Source = m.most(shortSource(f.File, f.Line), 120), m.text(fmt.Sprintf("%s:%d", f.File, f.Line))
		out.Text = m.sourceText(f.File, f.Line)
	}
	return out
}

// variables fills in the variables of a frame. Arguments come first in a scope.
func (m *maker) variables(out *frame, f *api.Frame) {
	for _, s := range m.symbols.Scopes(f) {
		if s.Hint != "locals" {
			continue
		}
		list := s.Variables()
		for i := range list[:min(len(list), maxVariables)] {
			out.Locals = append(out.Locals, m.variable(&list[i], true))
		}
		out.More = more(len(list), maxVariables, "variable")
	}
}

// variable describes a variable, with its members if it has some and members is set.
func (m *maker) variable(v *api.Value, members bool) variable {
	out := variable{Name: m.most(v.Name, 80), Type: m.most(v.Type, 60), Text: m.text(v.Text)}
	n := v.Named + v.Indexed
	if !members || n == 0 || v.Children == nil {
		return out
	}
	list := v.Children(0, min(n, maxMembers))
	for i := range list[:min(len(list), maxMembers)] {
		out.Members = append(out.Members, m.variable(&list[i], false))
	}
	out.More = more(n, maxMembers, "member")
	return out
}

// thread is a thread and its calls.
type thread struct {
	TID    int
	Name   string
	State  string
	IsThis bool
	Top    string // of the others: where they are
	Frames []frame
	More   string
}

// makeThreads lists the threads: the one that the page is about first.
func (m *maker) makeThreads() {
	list := m.g.ThreadStates()
	for _, this := range []bool{true, false} {
		for _, t := range list {
			if (t.TID == m.tid) != this || len(m.page.Threads) >= maxThreads {
				continue
			}
			out := thread{TID: t.TID, Name: m.most(t.Name, 40), IsThis: this, State: "waits for its turn"}
			switch {
			case t.Runs:
				out.State = "runs"
			case t.InCall:
				out.State = "in a system call"
			}
			stack := m.symbols.Stack(t.TID, maxThreadFrames+1)
			for i := range stack[:min(len(stack), maxThreadFrames)] {
				out.Frames = append(out.Frames, m.frame(i, &stack[i]))
			}
			if !this && len(out.Frames) > 0 {
				out.Top = out.Frames[0].Function
			}
			if len(stack) > maxThreadFrames {
				out.More = "and more calls"
			}
			m.page.Threads = append(m.page.Threads, out)
		}
	}
	m.page.MoreThreads = more(len(list), maxThreads, "thread")
}

// trimIndent removes the white space before a line.
func trimIndent(s string) string { return strings.TrimLeft(s, " \t") }
