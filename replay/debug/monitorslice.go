package debug

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// The monitor commands that ask where a value came from.

// defaultRows is how many rows of a slice are shown unless told.
const defaultRows = 40

func init() {
	maps.Copy(monitorCommands, map[string]monitorCommand{
		"slice":  {usage: "slice [--values] [-n N] [WHAT]", help: "what a value at the present position was made of, back to where it came from outside: WHAT is an expression, a register as $rax, or ADDRESS LENGTH; without it, what the program died of. --values leaves out what only decided where something was loaded or stored, -n is how many rows", ask: askSlice},
		"origin": {usage: "origin WHAT", help: "the store that made a value, or the input it came from, through all copies between; WHAT as in slice", ask: askOrigin},
	})
}

func askSlice(ctx context.Context, g *Cursor, args []string, show func(string)) (answers, error) {
	q := SliceQuery{Most: defaultRows, Progress: show}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case args[0] == "--values":
			q.Values = true
		case args[0] == "-n" && len(args) > 1:
			n, err := parseAnswers(args[1])
			if err != nil {
				return answers{}, err
			}
			q.Most, args = n, args[1:]
		default:
			return answers{}, fmt.Errorf("there is no option %s; monitor help slice", args[0])
		}
		args = args[1:]
	}
	return g.askSlice(ctx, q, args)
}

func askOrigin(ctx context.Context, g *Cursor, args []string, show func(string)) (answers, error) {
	if len(args) == 0 {
		return answers{}, errors.New("say of what: an expression, a register as $rax, or ADDRESS LENGTH")
	}
	return g.askSlice(ctx, SliceQuery{Copies: true, Most: defaultRows, Progress: show}, args)
}

func (g *Cursor) askSlice(ctx context.Context, q SliceQuery, args []string) (answers, error) {
	q.Expr = strings.Join(args, " ")
	s, err := g.Slice(ctx, q)
	if err != nil {
		return answers{}, err
	}
	return answersOf([]*Slice{s}, ""), nil
}
