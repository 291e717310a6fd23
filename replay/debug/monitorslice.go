package debug

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// The monitor commands that ask where a value came from.

// defaultRows is how many rows of a slice are shown unless told.
const defaultRows = 40

func init() {
	maps.Copy(monitorCommands, map[string]monitorCommand{
		"slice":    {usage: "slice [--values] [--control] [-n N] [--thread N] [WHAT]", help: "what a value at the present position was made of, back to where it came from outside: WHAT is an expression, a register as $rax, or ADDRESS LENGTH; without it, what the program died of. --values leaves out what only decided where something was loaded or stored, --control adds the branches that decided that these rows were executed, with what they compared, and what that was made of; -n is how many rows, --thread whose registers", ask: askSlice},
		"origin":   {usage: "origin WHAT", help: "the store that made a value, or the input it came from, through all copies between; WHAT as in slice", ask: askOrigin},
		"affected": {usage: "affected [--here] [--values] [-n N] [--thread N] WHAT", help: "what a value reached later: source lines, branches, outputs, and the crash. WHAT as in slice, or input for what the first read brought, or input:FD for all that was read from a descriptor. It is followed from where it was written last before the present position, input from the beginning; with --here from the present position on. --values leaves out what was only loaded or stored through an address that it is part of", ask: askAffected},
	})
}

func askSlice(ctx context.Context, g *Cursor, args []string, show func(string)) (answers, error) {
	return g.askSlice(ctx, SliceQuery{Most: defaultRows, Progress: show}, args)
}

func askOrigin(ctx context.Context, g *Cursor, args []string, show func(string)) (answers, error) {
	if len(args) == 0 {
		return answers{}, errors.New("say of what: an expression, a register as $rax, or ADDRESS LENGTH")
	}
	return g.askSlice(ctx, SliceQuery{Copies: true, Most: defaultRows, Progress: show}, args)
}

func askAffected(ctx context.Context, g *Cursor, args []string, show func(string)) (answers, error) {
	q := AffectedQuery{Progress: show}
	var rest []string
	for _, a := range args {
		if a == "--here" {
			q.Here = true
			continue
		}
		rest = append(rest, a)
	}
	s := SliceQuery{Most: defaultRows}
	rest, err := sliceOptions(&s, rest)
	if err == nil && s.Control {
		err = errors.New("there is no option --control; monitor help affected")
	}
	if err != nil {
		return answers{}, err
	}
	q.Values, q.Most, q.TID, q.Expr = s.Values, s.Most, s.TID, strings.Join(rest, " ")
	a, err := g.Affected(ctx, q)
	if err != nil {
		return answers{}, err
	}
	return answersOf([]*Affected{a}, ""), nil
}

// sliceOptions reads the options before what is asked for, and returns the rest.
func sliceOptions(q *SliceQuery, args []string) ([]string, error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "--values" || args[0] == "--control" && !q.Copies {
			q.Values, q.Control = q.Values || args[0] == "--values", q.Control || args[0] == "--control"
			args = args[1:]
			continue
		}
		if len(args) < 2 || args[0] != "-n" && args[0] != "--thread" {
			return nil, fmt.Errorf("there is no option %s; monitor help slice", args[0])
		}
		n, err := parseAnswers(args[1])
		if args[0] == "--thread" {
			n, err = strconv.Atoi(args[1])
			q.TID = n
		} else {
			q.Most = n
		}
		if err != nil {
			return nil, err
		}
		args = args[2:]
	}
	return args, nil
}

func (g *Cursor) askSlice(ctx context.Context, q SliceQuery, args []string) (answers, error) {
	args, err := sliceOptions(&q, args)
	if err != nil {
		return answers{}, err
	}
	q.Expr = strings.Join(args, " ")
	s, err := g.Slice(ctx, q)
	if err != nil {
		return answers{}, err
	}
	return answersOf([]*Slice{s}, ""), nil
}
