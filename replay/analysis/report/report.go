package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/replay/debug"
	"vplay/replay/debug/api"
	"vplay/replay/debug/text"
)

// Write, what it is told, and the order in which the parts of the page are made. The parts are
// in files of their own; how they look is in page.html and page.css.

// Options say what the page is about, besides the cursor.
type Options struct {
	File    string // the recording, as it is named in commands
	Version string // of this program
	// Process is what commands need to be about the process, with a space before it; may be empty.
	Process string
	// IsCrash says that a signal ended the process, IsEnd that the cursor is at the end.
	IsCrash, IsEnd bool

	// End says how the process ended, Recording what was recorded; notes are the recorder's. The
	// names of rows are "" where they go on with the one before.
	End, Recording []Fact
	Notes          []string
	Overwrite      *debug.Overwrite // what ended it by being overwritten, or nil
	Processes      []Process        // of the recording, when there are several

	Sources *Sources // may be nil
	// Time bounds each question to the past.
	Time time.Duration
	// Progress, when not nil, is called with what is being done.
	Progress func(string)
}

// Fact is a row of a list: a name and what it is.
type Fact struct{ Name, Text string }

// Process is a process of the recording.
type Process struct {
	PID, Parent       int32
	Program, Ended    string
	IsThis, IsCrashed bool
}

// page is what the template is given. All its texts have gone through the clipper.
type page struct {
	Policy, Style any // see page.go
	Title, Lead   string
	IsCrash       bool
	About         string // what moment the page is about, where that is not a crash
	Position      string // I:N.S; "" where it is not known
	Warnings      []string
	Notes         []string
	End           []factRow
	Recording     []factRow
	Code          code
	Frames        []frame
	MoreFrames    string
	Slice         *sliceTree
	SliceNote     string
	Memory        *memory
	MemoryNote    string
	Timeline      *timeline
	TimelineNote  string
	Calls         []callRow
	CallsNote     string
	Events        []eventRow
	EventsNote    string
	Threads       []thread
	MoreThreads   string
	Registers     []register
	Vectors       []register
	Modules       []module
	MoreModules   string
	Processes     []Process
	MoreProcesses string
	Commands      []command
	Version       string
}

// factRow is a Fact with what follows it.
type factRow struct {
	Name  string
	Texts []string
}

// command is a line for a shell, and what it does.
type command struct{ Line, What string }

// maker makes a page.
type maker struct {
	clipper
	o       *Options
	g       *debug.Cursor
	symbols *debug.Symbols
	tid     int
	page    page
	slice   *debug.Slice // nil where there is none
}

// Write writes the page about the moment at which g stands. It moves g no further than from the
// final image to the end of the replay. What cannot be found is said on the page; an error is
// w's, or ctx's. differs says that replay and recording differ, or that the file is damaged, which the
// page says, too.
func Write(ctx context.Context, w io.Writer, g *debug.Cursor, o *Options) (differs error, err error) {
	m := maker{o: o, g: g, symbols: debug.NewSymbols(g)}
	m.present()
	for _, part := range m.past() {
		m.progress(part.what)
		err := m.within(ctx, part.make)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if w := warning(err); w != "" && differs == nil {
			differs = err
			m.warn(w)
		}
		if err != nil && part.note != nil {
			*part.note = m.text(m.why(err))
		}
	}
	m.commands()
	return differs, m.page.render(w)
}

// sentence is why a part of the page is not there, as the page says it.
type sentence string

func (s sentence) Error() string { return string(s) }

// part is a part of the page that needs a replay, or the log.
type part struct {
	what string // for who waits
	make func(context.Context) error
	note *string // why it is not there
}

// errMoment is why a recording that is one moment has no such part.
const errMoment = sentence("The recording is one moment, without a past.")

// past lists the parts that need a replay, in the order in which they are made.
func (m *maker) past() []part {
	list := []part{
		{"replaying", m.when, nil},
		{"slicing", m.makeSlice, &m.page.SliceNote},
		{"reading the log", m.makeTimeline, &m.page.TimelineNote},
		{"looking for the last writes", m.makeMemory, &m.page.MemoryNote},
		{"looking for the last calls", m.makeCalls, &m.page.CallsNote},
		{"reading the last events", m.makeEvents, &m.page.EventsNote},
	}
	if m.g.Recording().IsMoment() {
		for i := range list {
			if note := list[i].note; note != nil && note != &m.page.MemoryNote {
				list[i].make = func(context.Context) error { return errMoment }
			}
		}
	}
	return list
}

// within calls f with the bound on time.
func (m *maker) within(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, m.o.Time)
	defer cancel()
	err := f(ctx)
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// why says an error in words.
func (m *maker) why(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("It takes longer than --time %v allows.", m.o.Time)
	}
	return err.Error()
}

func (m *maker) warn(s string) { m.page.Warnings = append(m.page.Warnings, m.text(s)) }

func (m *maker) progress(what string) {
	if m.o.Progress != nil {
		m.o.Progress(what)
	}
}

// present makes the parts that need no replay: they are there even where that fails.
func (m *maker) present() {
	m.tid = m.g.Stop().TID
	for _, n := range m.o.Notes[:min(len(m.o.Notes), maxNotes)] {
		m.page.Notes = append(m.page.Notes, m.text(n))
	}
	m.page.End, m.page.Recording = m.facts(m.o.End), m.facts(m.o.Recording)
	m.makeFrames()
	m.makeCode()
	m.title()
	m.makeThreads()
	m.makeRegisters()
	m.makeModules()
	m.makeProcesses()
	m.page.Version = m.text(m.o.Version)
}

// maxNotes bounds the rows of lists of facts.
const maxNotes = 200

// facts joins rows that go on with the one before.
func (m *maker) facts(list []Fact) (out []factRow) {
	for _, f := range list[:min(len(list), maxNotes)] {
		if f.Name != "" || len(out) == 0 {
			out = append(out, factRow{Name: m.text(f.Name)})
		}
		last := &out[len(out)-1]
		last.Texts = append(last.Texts, m.most(f.Text, 2*maxText))
	}
	return out
}

// title says what the page is about.
func (m *maker) title() {
	p := &m.page
	name := m.most(path.Base(m.g.Session().Process().Program), 80)
	p.IsCrash = m.o.IsCrash
	signal := ""
	if stop := m.g.Stop(); m.o.IsCrash && m.o.IsEnd {
		signal = abi.Signal(stop.Signo).String()
	}
	where := ""
	if i := m.culprit(); i >= 0 {
		f := &p.Frames[i]
		if where = " in " + f.Function; f.HasLine {
			where += " (" + f.Short + ")"
		}
	}
	switch {
	case signal != "":
		p.Title = name + ": " + signal + where
	case m.o.IsEnd:
		p.Title = name + ": the end of the recording"
		p.About = "The program did not crash in this recording: the page is about its end."
	default:
		p.Title = name + ":" + where
		p.About = "The page is about another moment than the end. How the program ended is said below."
	}
	for _, f := range m.o.End {
		if f.Name == "ended" {
			p.Lead = m.text(f.Text)
		}
	}
}

// culprit returns the number of the frame that is most likely of interest: the innermost of the
// program's own, else the innermost one; -1 where there is none.
func (m *maker) culprit() int {
	for i := range m.page.Frames {
		if m.page.Frames[i].isOwn {
			return i
		}
	}
	return min(len(m.page.Frames), 1) - 1
}

// when finds the position of the moment, for which the end is replayed.
func (m *maker) when(ctx context.Context) error {
	at, err := m.g.When(ctx)
	if err == nil {
		m.page.Position = at.String()
	}
	return err
}

// place names the function of a location, and its line.
func (m *maker) place(l *loader.Location) string {
	s := l.String()
	if src := l.Source(); src != "" {
		s = l.Function + " " + shortSource(l.File, l.Line)
	}
	return m.text(s)
}

// shortSource is a source line without the folders of its file.
func shortSource(file string, line int) string {
	if file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", path.Base(slashes(file)), line)
}

// maxProcesses bounds the table of processes.
const maxProcesses = 60

func (m *maker) makeProcesses() {
	list := m.o.Processes
	for _, p := range list[:min(len(list), maxProcesses)] {
		p.Program, p.Ended = m.most(p.Program, 120), m.text(p.Ended)
		m.page.Processes = append(m.page.Processes, p)
	}
	m.page.MoreProcesses = more(len(list), maxProcesses, "process")
}

// more says how many of n rows are not shown.
func more(n, shown int, noun string) string {
	if n <= shown {
		return ""
	}
	s := text.Plural(n-shown, noun)
	if noun == "process" && n-shown > 1 {
		s = fmt.Sprintf("%d processes", n-shown)
	}
	return "and " + s + " more"
}

// makeRegisters lists the registers of the thread.
func (m *maker) makeRegisters() {
	stack := m.symbols.Stack(m.tid, 1)
	if len(stack) == 0 {
		return
	}
	for _, s := range m.symbols.Scopes(&stack[0]) {
		if s.Hint != "registers" {
			continue
		}
		for _, v := range s.Variables() {
			if v.Children == nil {
				m.page.Registers = append(m.page.Registers, register{v.Name, m.text(v.Text)})
				continue
			}
			for _, k := range v.Children(0, 0) {
				m.page.Vectors = append(m.page.Vectors, register{k.Name, m.text(k.Text)})
			}
		}
	}
}

// register is a register and its value.
type register struct{ Name, Text string }

// module is a row of the table of modules.
type module struct{ Path, BuildID, Range, Symbols string }

// maxModules bounds the table of modules.
const maxModules = 150

func (m *maker) makeModules() {
	list := m.symbols.Modules()
	for _, mod := range list[:min(len(list), maxModules)] {
		m.page.Modules = append(m.page.Modules, module{
			Path: m.text(mod.Path), BuildID: m.most(mod.BuildID, 64), Range: fmt.Sprintf("%#x-%#x", mod.Base, mod.End), Symbols: symbolState(&mod),
		})
	}
	m.page.MoreModules = more(len(list), maxModules, "module")
}

func symbolState(mod *api.Module) string {
	switch {
	case mod.HasLines:
		return "source lines"
	case mod.HasNames:
		return "names of functions"
	}
	return "none"
}

// commands say how the recording is opened.
func (m *maker) commands() {
	file := quote(m.o.File)
	at, seek := "", m.page.Position
	if !m.o.IsEnd && seek != "" {
		at = " --at " + seek
	}
	for _, c := range []command{
		{"vplayd replay" + m.o.Process + " " + file, "gdb on the recording, backwards too (reverse-continue, reverse-step)"},
		{"vplayd serve" + m.o.Process + " " + file, "the same for a gdb, lldb or VS Code that connects"},
		{"vplayd slice" + m.o.Process + at + " --symbols FOLDER " + file, "what a value was made of, any value"},
		{"vplayd info" + m.o.Process + " " + file, "what happened, in ten lines"},
	} {
		m.page.Commands = append(m.page.Commands, command{m.text(c.Line), c.What})
	}
	if seek != "" {
		m.page.Commands = append(m.page.Commands, command{"vplay seek " + seek, "in that gdb: go to a position of this page, here the moment that it is about"})
	}
}

// quote makes a file's name one word of a shell.
func quote(s string) string {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '/' || r == '_' || r == '-' || r == '+') {
			return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
	}
	if s == "" || s[0] == '-' {
		return "./" + s
	}
	return s
}
