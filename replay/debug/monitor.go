package debug

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/debug/api"
	"vplay/replay/debug/text"
	"vplay/replay/mem"
)

// monitorCommand is one "monitor" command.
type monitorCommand struct {
	usage, help string
	run         func(ctx context.Context, g *Cursor, args []string, out io.Writer) error
}

var monitorCommands = map[string]monitorCommand{}

func init() { // not a literal: help refers to the table
	maps.Copy(monitorCommands, map[string]monitorCommand{
		"help":    {"help", "this list", monitorHelp},
		"when":    {"when", "the present position I:N.S: interval, instructions since its start, step", monitorWhen},
		"why":     {"why ADDRESS", "whether the byte at ADDRESS was captured, and if not, why", monitorWhy},
		"exit":    {"exit", "end vplayd", func(context.Context, *Cursor, []string, io.Writer) error { return api.ErrExit }},
		"events":  {"events [N]", "the last N events before the present position, 10 unless told", monitorEvents},
		"modules": {"modules", "the ELF files in memory, and how to load their symbols by hand", monitorModules},
		"pages":   {"pages [WHERE]", "what was captured of each mapping, or of the page at WHERE", monitorPages},
		"python":  {"python", "a Python file with gdb commands for all of this: python exec(gdb.execute('monitor python', to_string=True))", monitorPython},
	})
}

// Monitor implements api.Target.
func (g *Cursor) Monitor(ctx context.Context, line string, out io.Writer) error {
	words := strings.Fields(line)
	if len(words) == 0 {
		words = []string{"help"}
	}
	c, ok := monitorCommands[words[0]]
	if !ok {
		fmt.Fprintf(out, "there is no command %q; monitor help lists them\n", words[0])
		return nil
	}
	was := g.position()
	err := c.run(ctx, g, words[1:], text.NewEscaper(out))
	if err != nil {
		err = text.EscapedError(err)
	}
	if now := g.position(); now != was && (was != nowhere || !g.cur.AtEnd()) {
		g.Undivert() // it was a copy of another moment
	}
	return err
}

func monitorHelp(_ context.Context, _ *Cursor, args []string, out io.Writer) error {
	if len(args) == 1 && monitorCommands[args[0]].run != nil {
		fmt.Fprintf(out, "monitor %s\n  %s\n", monitorCommands[args[0]].usage, monitorCommands[args[0]].help)
		return nil
	}
	for _, n := range Commands() {
		fmt.Fprintf(out, "monitor %-32s %s\n", monitorCommands[n].usage, monitorCommands[n].help)
	}
	return nil
}

func monitorWhen(ctx context.Context, g *Cursor, _ []string, out io.Writer) error {
	if err := g.leaveFinal(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, g.cur.Position())
	return nil
}

// ParsePosition reads the text form I:N.S; N and S may be left out.
func ParsePosition(s string) (p checkpoint.Position, err error) {
	bad := fmt.Errorf("bad position %q: it is written I:N.S, as monitor when prints it", s)
	iv, rest, _ := strings.Cut(s, ":")
	instr, step, _ := strings.Cut(rest, ".")
	for _, f := range []struct {
		text string
		bits int
		set  func(uint64)
	}{
		{iv, 32, func(v uint64) { p.Interval = uint32(v) }},
		{instr, 64, func(v uint64) { p.Instr = v }},
		{step, 32, func(v uint64) { p.Step = uint32(v) }},
	} {
		if f.text == "" {
			continue
		}
		v, err := strconv.ParseUint(f.text, 10, f.bits)
		if err != nil {
			return p, bad
		}
		f.set(v)
	}
	if iv == "" {
		return p, bad
	}
	return p, nil
}

func monitorWhy(_ context.Context, g *Cursor, args []string, out io.Writer) error {
	if len(args) != 1 {
		fmt.Fprintln(out, "monitor why ADDRESS")
		return nil
	}
	at, err := g.addresses(args[0])
	if err != nil {
		return err
	}
	a := at[0]
	var b [1]byte
	if _, err := g.ReadMemory(a, b[:]); err != nil {
		fmt.Fprintln(out, err)
	} else {
		fmt.Fprintf(out, "the byte at %#x is known: %#02x\n", a, b[0])
	}
	if _, mapped := g.mem().Find(a &^ (mem.PageSize - 1)); !mapped {
		return nil // that was the reason
	}
	return g.onePage(args[0], out)
}

func monitorModules(_ context.Context, g *Cursor, _ []string, out io.Writer) error {
	for _, m := range g.Modules() {
		fmt.Fprintf(out, "%#x %s build-id %s\n  add-symbol-file FILE -o %#x\n", m.Base, m.Path, m.BuildID, m.Bias)
	}
	return nil
}

// parseAddress reads an address in any of Go's notations.
func parseAddress(s string) (a uint64, ok bool) {
	a, err := strconv.ParseUint(s, 0, 64)
	return a, err == nil
}

// parseCount reads a number above 0.
func parseCount(s string) (n int, ok bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0
}

// monitorEvents prints the last events with their numbers and positions, both of
// which seek takes.
func monitorEvents(ctx context.Context, g *Cursor, args []string, out io.Writer) error {
	n := 10
	if len(args) > 0 {
		v, ok := parseCount(args[0])
		if !ok || len(args) > 1 {
			return fmt.Errorf("bad number %q", args[0])
		}
		n = v
	}
	if err := g.leaveFinal(ctx); err != nil {
		return err
	}
	lines, err := g.eventsBefore(ctx, n)
	if err != nil {
		return interrupted(ctx, err, out)
	}
	for _, l := range lines {
		fmt.Fprintln(out, l)
	}
	if len(lines) == 0 {
		fmt.Fprintln(out, "there is no event before here")
	}
	return nil
}

// eventsBefore returns lines about the last n events before the present
// position.
func (g *Cursor) eventsBefore(ctx context.Context, n int) ([]string, error) {
	now := g.cur.Position()
	all := g.t.Intervals()
	var lines []string
	for i := len(all) - 1; i >= 0 && len(lines) < n; i-- {
		id := all[i]
		if id > now.Interval || g.t.EventCount(id+1) == g.t.EventCount(id) {
			continue
		}
		iv, err := g.s.Rec.Interval(id)
		if err != nil {
			return nil, err
		}
		last := len(iv.Events)
		if id == now.Interval {
			last = len(g.cur.Machine().Past(last))
		}
		first := max(0, last-(n-len(lines)))
		var texts []string
		at, err := g.t.EventPositions(ctx, id, first, last, func(e *checkpoint.Event, m *mem.Space) {
			texts = append(texts, eventLine(e, Memory{m}))
		})
		if err != nil {
			return nil, err
		}
		var part []string
		for i, p := range at {
			if first+i > 0 && isHandled(&iv.Events[first+i-1], &iv.Events[first+i]) {
				texts[i] = "    its handler runs"
			}
			part = append(part, fmt.Sprintf("#%d  %s  %s", g.t.EventCount(id)+first+i, p, texts[i]))
		}
		lines = append(part, lines...)
	}
	return lines, nil
}

// isHandled reports whether e is the delivery of the signal that the fault before it
// made, which has told all about it.
func isHandled(fault, e *checkpoint.Event) bool {
	return fault.Kind == checkpoint.EventFault && e.Kind == checkpoint.EventSignal && fault.Signo == e.Signo
}

// ReadAt reads guest memory for the system call printer.
type ReadAt struct{ Memory }

func (m ReadAt) ReadAt(addr uint64, b []byte) int { return m.ReadMemory(addr, b) }

// eventLine prints an event on one line; arguments that point to memory are
// shown with what is there in m.
func eventLine(e *checkpoint.Event, m Memory) string {
	switch e.Kind {
	case checkpoint.EventEnter:
		return abi.Format(ReadAt{m}, e.NR, e.Args)
	case checkpoint.EventExit:
		return "  " + abi.FormatResult(e.NR, e.Result)
	case checkpoint.EventSignal, checkpoint.EventFault:
		if s := SignalText(e); s != "" {
			return s
		}
	case checkpoint.EventInstr:
		return instrText(e)
	default: // The plain form.
	}
	return e.Text()
}

// instrText prints the result of a trapped instruction: the counter, or the four
// registers of CPUID.
func instrText(e *checkpoint.Event) string {
	if e.Instr == checkpoint.InstrCPUID {
		return fmt.Sprintf("cpuid = %#x, %#x, %#x, %#x", e.Out[0], e.Out[1], e.Out[2], e.Out[3])
	}
	return fmt.Sprintf("%s = %#x", e.Instr, e.Out[3]<<32|e.Out[0]&0xffffffff)
}

// SignalText prints a signal or a fault as strace does: its name, why it was
// sent, and from where. It is "" where the recording holds no siginfo_t.
func SignalText(e *checkpoint.Event) string {
	if len(e.Siginfo) < abi.SizeofSiginfo {
		return ""
	}
	return "--- " + abi.Siginfo(e.Siginfo).String() + " ---"
}
