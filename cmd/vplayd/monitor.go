package main

import (
	"context"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/gdbstub"
	"vplay/loader"
)

// monitorCommand is one "monitor" command.
type monitorCommand struct {
	usage, help string
	run         func(ctx context.Context, g *target, args []string, out io.Writer) error
}

var monitorCommands map[string]monitorCommand

func init() {
	monitorCommands = map[string]monitorCommand{
		"help":    {"help", "this list", monitorHelp},
		"when":    {"when", "the present position I:N.S: interval, instructions since its start, step", monitorWhen},
		"seek":    {"seek POSITION|begin|end", "move to a position; then tell gdb: flushregs (maintenance flush register-cache)", monitorSeek},
		"why":     {"why ADDRESS", "whether the byte at ADDRESS was captured, and if not, why", monitorWhy},
		"exit":    {"exit", "end vplayd", func(context.Context, *target, []string, io.Writer) error { return gdbstub.ErrExit }},
		"events":  {"events [N]", "the last N events before the present position, 10 unless told", monitorEvents},
		"modules": {"modules", "the ELF files in memory, and how to load their symbols by hand", monitorModules},
	}
}

// Monitor implements gdbstub.Target.
func (g *target) Monitor(ctx context.Context, line string, out io.Writer) error {
	words := strings.Fields(line)
	if len(words) == 0 {
		words = []string{"help"}
	}
	c, ok := monitorCommands[words[0]]
	if !ok {
		fmt.Fprintf(out, "there is no command %q; monitor help lists them\n", words[0])
		return nil
	}
	return c.run(ctx, g, words[1:], out)
}

func monitorHelp(_ context.Context, _ *target, _ []string, out io.Writer) error {
	var names []string
	for n := range monitorCommands {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Fprintf(out, "monitor %-26s %s\n", monitorCommands[n].usage, monitorCommands[n].help)
	}
	return nil
}

func monitorWhen(ctx context.Context, g *target, _ []string, out io.Writer) error {
	if err := g.leaveFinal(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, g.t.Position())
	return nil
}

// parsePosition reads the text form I:N.S; N and S may be left out.
func parsePosition(s string) (p checkpoint.Position, err error) {
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

func monitorSeek(ctx context.Context, g *target, args []string, out io.Writer) error {
	if len(args) != 1 {
		fmt.Fprintln(out, "monitor seek POSITION|begin|end")
		return nil
	}
	if err := g.leaveFinal(ctx); err != nil {
		return err
	}
	var err error
	switch args[0] {
	case "begin":
		err = g.t.Seek(ctx, g.t.Begin())
	case "end":
		_, err = g.t.ToEnd(ctx)
	default:
		var p checkpoint.Position
		if p, err = parsePosition(args[0]); err == nil {
			err = g.t.Seek(ctx, p)
		}
	}
	if err != nil {
		fmt.Fprintln(out, err)
		return nil
	}
	fmt.Fprintln(out, g.t.Position())
	return nil
}

func monitorWhy(_ context.Context, g *target, args []string, out io.Writer) error {
	if len(args) != 1 {
		fmt.Fprintln(out, "monitor why ADDRESS")
		return nil
	}
	a, ok := parseAddress(args[0])
	if !ok {
		fmt.Fprintf(out, "bad address %q\n", args[0])
		return nil
	}
	var b [1]byte
	if _, err := g.ReadMemory(a, b[:]); err != nil {
		fmt.Fprintln(out, err)
		return nil
	}
	fmt.Fprintf(out, "the byte at %#x is known: %#02x\n", a, b[0])
	return nil
}

func monitorModules(_ context.Context, g *target, _ []string, out io.Writer) error {
	for _, m := range loader.Modules(g.maps(), guest{g.mem()}) {
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

func monitorEvents(ctx context.Context, g *target, args []string, out io.Writer) error {
	n := 10
	if len(args) == 1 {
		v, ok := parseCount(args[0])
		if !ok {
			fmt.Fprintf(out, "bad number %q\n", args[0])
			return nil
		}
		n = v
	}
	if err := g.leaveFinal(ctx); err != nil {
		return err
	}
	events := g.t.Machine().Past(n)
	for i := range events {
		fmt.Fprintln(out, eventLine(&events[i], guest{g.mem()}))
	}
	if len(events) == 0 {
		fmt.Fprintf(out, "interval %d has had no event before here\n", g.t.Position().Interval)
	}
	return nil
}

// readAt reads guest memory for the system call printer.
type readAt struct{ guest }

func (m readAt) ReadAt(addr uint64, b []byte) int { return m.ReadMemory(addr, b) }

// eventLine prints an event on one line; arguments that point to memory are
// shown with what is there now.
func eventLine(e *checkpoint.Event, m guest) string {
	switch e.Kind {
	case checkpoint.EventEnter:
		return abi.Format(readAt{m}, e.NR, e.Args)
	case checkpoint.EventExit:
		return "  " + abi.FormatResult(e.NR, e.Result)
	default:
		return e.Text()
	}
}
