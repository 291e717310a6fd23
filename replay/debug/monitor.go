package debug

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"vplay/checkpoint"
	"vplay/replay/debug/api"
	"vplay/replay/debug/text"
)

// The table of monitor commands, how a line finds its command, and how positions,
// addresses and counts are read from text. But for help and exit the commands are
// elsewhere: those that ask in monitorquery.go, those that move in seek.go.

// monitorCommand is one "monitor" command: it does something, or asks.
type monitorCommand struct {
	usage, help string
	// gdb is what users of gdb must be told besides; gdbOnly says that it is for them alone.
	gdb     string
	gdbOnly bool
	run     func(ctx context.Context, g *Cursor, args []string, out io.Writer) error
	ask     question
}

var monitorCommands = map[string]monitorCommand{}

func init() { // not a literal: help refers to the table
	maps.Copy(monitorCommands, map[string]monitorCommand{
		"help":   {usage: "help", help: "this list", run: monitorHelp},
		"exit":   {usage: "exit", help: "end vplayd", run: func(context.Context, *Cursor, []string, io.Writer) error { return api.ErrExit }},
		"engine": {usage: "engine", help: "what executes the recording's instructions here, and how much memory generated code takes", run: monitorEngine},
		"python": {usage: "python", gdbOnly: true, help: "a Python file with gdb commands for all of this: python exec(gdb.execute('monitor python', to_string=True))", run: monitorPython},
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
	var err error
	if out := text.NewEscaper(out); c.ask != nil {
		err = g.reply(ctx, c.ask, words[1:], out)
	} else {
		err = c.run(ctx, g, words[1:], out)
	}
	if err != nil {
		err = text.EscapedError(err)
	}
	if now := g.position(); now != was && (was != nowhere || !g.cur.AtEnd()) {
		g.Undivert() // it was a copy of another moment
	}
	return err
}

func monitorEngine(_ context.Context, g *Cursor, _ []string, out io.Writer) error {
	what := "the interpreter"
	if g.s.EngineText != nil {
		what = g.s.EngineText()
	}
	fmt.Fprintln(out, what)
	return nil
}

func monitorHelp(_ context.Context, _ *Cursor, args []string, out io.Writer) error {
	if len(args) == 1 {
		if c, ok := monitorCommands[args[0]]; ok {
			fmt.Fprintf(out, "monitor %s\n  %s%s\n", c.usage, c.help, c.gdb)
			if c.ask != nil {
				fmt.Fprintf(out, "  %s before the arguments: one JSON object for each answer\n", jsonFlag)
			}
			return nil
		}
	}
	for _, n := range Commands() {
		c := monitorCommands[n]
		fmt.Fprintf(out, "monitor %-32s %s%s\n", c.usage, c.help, c.gdb)
	}
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
