package debug

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"vplay/replay/debug/api"
	"vplay/replay/debug/text"
)

// The monitor commands that ask a question: they read its arguments, and the answers are
// printed here, for people, or with --json as objects, one a line.

// defaultAnswers is how many answers a query gives unless told.
const defaultAnswers = 10

// maxAnswers bounds the answers of a query.
const maxAnswers = 10_000

func init() {
	maps.Copy(monitorCommands, map[string]monitorCommand{
		"when":       {usage: "when", help: "the present position I:N.S: interval, instructions since its start, step", ask: askWhen},
		"threads":    {usage: "threads", help: "the threads here, by number: which one runs, and which are inside a call", ask: askThreads},
		"processes":  {usage: "processes", help: "the processes of the recording: their programs, and how each ended", ask: askProcesses},
		"why":        {usage: "why ADDRESS", help: "whether the byte at ADDRESS was captured, and if not, why", ask: askWhy},
		"events":     {usage: "events [N]", help: "the last N events before the present position, 10 unless told", ask: askEvents},
		"modules":    {usage: "modules", help: "the ELF files in memory, and how to load their symbols by hand", ask: askModules},
		"pages":      {usage: "pages [WHERE]", help: "what was captured of each mapping, or of the page at WHERE", ask: askPages},
		"last-write": {usage: "last-write WHERE [LENGTH]", help: "the last store to memory before the present position; LENGTH in bytes, 8 unless told", ask: askLastWrite},
		"writes":     {usage: "writes WHERE [LENGTH [N]]", help: "the last N stores before the present position", ask: askWrites},
		"reads":      {usage: "reads WHERE [LENGTH [N]]", help: "the last N loads before the present position", ask: askReads},
		"calls":      {usage: "calls FUNCTION [N [TYPES]]", help: "the last N calls before the present position, with their first integer arguments", ask: askCalls},
		"first-exec": {usage: "first-exec WHERE", help: "the first time that the instruction was executed", ask: askFirstExec},
	})
}

// question answers a monitor command. show, when not nil, is told how it goes on. Answers
// may come with an error: what was found before it.
type question func(ctx context.Context, g *Cursor, args []string, show func(string)) (answers, error)

// answers are what a question is answered with.
type answers struct {
	list []fmt.Stringer // which JSON can have, too
	none string         // what people are told where there are none
}

func answersOf[T fmt.Stringer](list []T, none string) answers {
	a := answers{none: none}
	for _, x := range list {
		a.list = append(a.list, x)
	}
	return a
}

// jsonFlag is the word before the arguments that asks for JSON.
const jsonFlag = "--json"

// errInterrupted says in JSON's place that a query was ended from outside.
var errInterrupted = errors.New("interrupted")

// reply asks a question and prints the answers. A query that was ended from outside is no
// error for people.
func (g *Cursor) reply(ctx context.Context, ask question, args []string, out io.Writer) error {
	asJSON := len(args) > 0 && args[0] == jsonFlag
	if asJSON {
		args = args[1:]
	}
	var show func(string)
	if shown, ok := out.(api.Progress); ok {
		show = shown.Progress
	}
	a, err := ask(ctx, g, args, show)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, x := range a.list {
		if !asJSON {
			fmt.Fprintln(out, x)
		} else if err := enc.Encode(x); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil && asJSON:
		return errInterrupted
	case err == nil && len(a.list) == 0 && a.none != "" && !asJSON:
		fmt.Fprintln(out, a.none)
	}
	return interrupted(ctx, err, out)
}

// interrupted says that a query was ended from outside, which is no error.
func interrupted(ctx context.Context, err error, out io.Writer) error {
	if ctx.Err() != nil {
		fmt.Fprintln(out, "interrupted")
		return nil
	}
	return err
}

func askWhen(ctx context.Context, g *Cursor, _ []string, _ func(string)) (answers, error) {
	at, err := g.When(ctx)
	if err != nil {
		return answers{}, err
	}
	return answersOf([]When{{at}}, ""), nil
}

func askThreads(_ context.Context, g *Cursor, _ []string, _ func(string)) (answers, error) {
	return answersOf(g.ThreadStates(), "no thread is left"), nil
}

func askProcesses(_ context.Context, g *Cursor, _ []string, _ func(string)) (answers, error) {
	return answersOf(g.Processes(), ""), nil
}

func askWhy(_ context.Context, g *Cursor, args []string, _ func(string)) (answers, error) {
	if len(args) != 1 {
		return answers{none: "monitor why ADDRESS"}, nil
	}
	at, err := g.addresses(args[0])
	if err != nil {
		return answers{}, err
	}
	a := answers{list: []fmt.Stringer{g.Byte(at[0])}}
	if p := g.Page(at[0]); p.IsMapped { // else that was the reason
		a.list = append(a.list, p)
	}
	return a, nil
}

func askModules(_ context.Context, g *Cursor, _ []string, _ func(string)) (answers, error) {
	var list []Module
	for _, m := range g.Modules() {
		list = append(list, Module{m.Base, m.Bias, m.Path, m.BuildID})
	}
	return answersOf(list, ""), nil
}

func askEvents(ctx context.Context, g *Cursor, args []string, _ func(string)) (answers, error) {
	n := defaultAnswers
	if len(args) > 0 {
		v, ok := parseCount(args[0])
		if !ok || len(args) > 1 {
			return answers{}, fmt.Errorf("bad number %q", args[0])
		}
		n = v
	}
	list, err := g.Events(ctx, n)
	return answersOf(list, "there is no event before here"), err
}

func askPages(ctx context.Context, g *Cursor, args []string, _ func(string)) (answers, error) {
	if len(args) == 0 {
		return answersOf(g.Pages(ctx), ""), nil
	}
	at, err := g.addresses(args[0])
	if err != nil {
		return answers{}, err
	}
	return answersOf([]Page{g.Page(at[0])}, ""), nil
}

func askLastWrite(ctx context.Context, g *Cursor, args []string, show func(string)) (answers, error) {
	if len(args) > 2 {
		return answers{}, errors.New("last-write takes a place and a length")
	}
	return g.askAccesses(ctx, args, AccessQuery{Most: 1, Progress: show})
}

func askWrites(ctx context.Context, g *Cursor, args []string, show func(string)) (answers, error) {
	return g.askAccesses(ctx, args, AccessQuery{Most: defaultAnswers, Progress: show})
}

func askReads(ctx context.Context, g *Cursor, args []string, show func(string)) (answers, error) {
	return g.askAccesses(ctx, args, AccessQuery{Loads: true, Most: defaultAnswers, Progress: show})
}

// askAccesses reads WHERE [LENGTH [N]] and asks.
func (g *Cursor) askAccesses(ctx context.Context, args []string, q AccessQuery) (answers, error) {
	if len(args) < 1 || len(args) > 3 {
		return answers{}, errors.New("say where: an address or a symbol, then how many bytes")
	}
	at, err := g.addresses(args[0])
	if err != nil {
		return answers{}, err
	}
	q.Addr, q.Len = at[0], 8
	if len(args) > 1 {
		v, err := strconv.ParseUint(args[1], 0, 64)
		if err != nil || v == 0 || v > api.MaxWatchLen || at[0]+v < at[0] {
			return answers{}, fmt.Errorf("bad length %q: 1 to %d bytes", args[1], api.MaxWatchLen)
		}
		q.Len = v
	}
	if len(args) > 2 {
		if q.Most, err = parseAnswers(args[2]); err != nil {
			return answers{}, err
		}
	}
	list, err := g.Accesses(ctx, q)
	what := "written"
	if q.Loads {
		what = "read"
	}
	return answersOf(list, fmt.Sprintf("the %s at %#x: not %s before here in the recorded time", text.Plural(int(q.Len), "byte"), q.Addr, what)), err
}

// parseAnswers reads how many answers are wanted.
func parseAnswers(s string) (int, error) {
	if v, ok := parseCount(s); ok && v <= maxAnswers {
		return v, nil
	}
	return 0, fmt.Errorf("bad number %q: 1 to %d", s, maxAnswers)
}

// inlinedTypes stands for the types of arguments where a function was inlined: no
// register has them by rule, and the stack pointer does not point to where it was
// called from. The function's name follows.
const inlinedTypes = "inlined"

func askCalls(ctx context.Context, g *Cursor, args []string, show func(string)) (answers, error) {
	if len(args) < 1 || len(args) > 3 && args[2] != inlinedTypes {
		return answers{}, errors.New("say which function: calls FUNCTION [N [TYPES]]")
	}
	at, inlined, err := g.entries(args[0])
	if err != nil {
		return answers{}, err
	}
	q := CallQuery{Entries: at, Inlined: inlined, Types: "QQQ", Most: defaultAnswers, Progress: show}
	if len(args) > 1 {
		if q.Most, err = parseAnswers(args[1]); err != nil {
			return answers{}, err
		}
	}
	if len(args) > 2 {
		q.Types = args[2]
	}
	if q.Types == inlinedTypes {
		for _, a := range at {
			inlined[a] = strings.Join(args[3:], " ")
		}
	}
	list, err := g.Calls(ctx, q)
	name := args[0]
	if inlined[at[0]] != "" {
		name = inlined[at[0]]
	} else if _, ok := parseAddress(strings.TrimPrefix(name, "*")); ok {
		name = g.function(at[0])
	}
	return answersOf(list, text.Printable(name)+" was not called before here in the recorded time"), err
}

// function is the name of what begins at an address.
func (g *Cursor) function(addr uint64) string {
	if l := g.names().At(addr); l.Function != "" {
		return l.Function
	}
	return fmt.Sprintf("%#x", addr)
}

func askFirstExec(ctx context.Context, g *Cursor, args []string, show func(string)) (answers, error) {
	if len(args) != 1 {
		return answers{}, errors.New("say which instruction: first-exec WHERE")
	}
	at, err := g.addresses(args[0])
	if err != nil {
		return answers{}, err
	}
	x, ok, err := g.FirstExecution(ctx, at, show)
	if !ok {
		return answers{none: fmt.Sprintf("%#x is not executed in the recorded time", at[0])}, err
	}
	return answersOf([]Execution{x}, ""), err
}
