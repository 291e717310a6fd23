package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"vplay/tests/bench/command"
	"vplay/tests/bench/meter"
)

// The command's flags, and what becomes of them. What is run is in programs.go and servers.go, how in measure.go, and the
// output in table.go.

func main() {
	meter.Child()
	command.Main("overhead", run)
}

// usage is what --help prints above the flags.
const usage = `overhead measures what vplayd record costs, beside native runs and strace.

  just overhead                        all rows, 7 rounds
  just overhead --only gzip,redis      some
  just overhead --rounds 3 --json      for a program
  just overhead --list                 the rows, and what is wanted of each

`

// parse reads the flags.
func parse(args []string, errors io.Writer) (b *bench, asJSON, list bool, err error) {
	b = &bench{}
	f := flag.NewFlagSet("overhead", flag.ContinueOnError)
	f.SetOutput(errors)
	f.Usage = func() {
		fmt.Fprint(errors, usage)
		f.PrintDefaults()
	}
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVar(&list, "list", false, "print the rows and run nothing")
	f.IntVar(&b.rounds, "rounds", 7, "`N` runs of each, in alternation; the median counts")
	only := f.String("only", "", "`NAMES` of rows, with commas between them")
	modes := f.String("modes", strings.Join(modeNames, ","), "`NAMES` of the ways to run; native is always among them")
	f.BoolVar(&b.tiny, "tiny", false, "work for milliseconds only: a test of this command")
	f.StringVar(&b.vplayd, "vplayd", "", "`FILE` to measure instead of vplayd built from this tree")
	if err := f.Parse(args); err != nil {
		return nil, false, false, err
	}
	if f.NArg() > 0 {
		return nil, false, false, fmt.Errorf("%q is no flag; --only takes names of rows", f.Arg(0))
	}
	b.rounds = max(b.rounds, 1)
	if b.rows, err = chosen(rows, *only); err != nil {
		return nil, false, false, err
	}
	if b.modes, err = command.Modes(modeNames, *modes); err == nil && !slices.Contains(b.modes, native) {
		b.modes = append([]string{native}, b.modes...)
	}
	return b, asJSON, list, err
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	b, asJSON, list, err := parse(args, progress)
	if err != nil {
		return err
	}
	if list {
		return printRows(out, b.rows)
	}
	b.ctx, b.progress = ctx, progress
	if b.dir, err = os.MkdirTemp("", "vplay-overhead"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := os.Chmod(b.dir, 0o711); err != nil { // servers that run as another user have folders in it
		return err
	}
	if b.vplayd, err = command.Vplayd(b.vplayd, b.dir); err != nil {
		return err
	}
	rep := &report{Machine: command.ThisMachine(), Rounds: b.rounds, Counted: counted}
	for i, r := range b.rows {
		b.say = fmt.Sprintf("row %d of %d, %s", i+1, len(b.rows), r.name)
		res, err := b.measure(r)
		if ctx.Err() != nil && len(rep.Results) > 0 { // what was measured is not lost
			return errors.Join(ctx.Err(), command.Write(out, rep, asJSON))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		rep.Results = append(rep.Results, res)
	}
	return command.Write(out, rep, asJSON)
}

// chosen returns the rows that names has, all where it is empty.
func chosen(all []row, names string) ([]row, error) {
	if names == "" {
		return all, nil
	}
	var out []row
	for name := range strings.SplitSeq(names, ",") {
		found := false
		for _, r := range all {
			if r.name == strings.TrimSpace(name) {
				out, found = append(out, r), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no row %q; --list prints them", name)
		}
	}
	return out, nil
}

// counted says what the figures are.
const counted = "user and system time of all processes that the command has led to; of servers, while the client asks, without the client"

// noise is what does not belong to a name of a file.
var noise = regexp.MustCompile(`[^A-Za-z0-9]+`)
