package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"vplay/tests/bench/command"
	"vplay/tests/bench/meter"
)

// The command's flags, and what becomes of them. How a server is measured is in measure.go, the client is in client.go, and
// the output in table.go.

func main() {
	meter.Child()
	command.Main("pauses", run)
}

// usage is what --help prints above the flags.
const usage = `pauses measures how long a redis stands still while it is recorded, and what memory that takes.

  just pauses                              1 GiB of data, 10 s of writing
  just pauses --size 2048 --seconds 30s    more
  just pauses --json                       for a program

`

// The ways to run.
const (
	native = "native"
	agent  = "agent" // vplayd record --agent on
	stops  = "stops" // vplayd record --agent off
)

var modeNames = []string{native, agent, stops}

// bench is a run of the command.
type bench struct {
	ctx         context.Context
	dir, vplayd string
	redis       string
	size        int64 // of the data, in bytes
	seconds     time.Duration
	modes       []string
	extra       []string // flags of vplayd record
	progress    io.Writer
}

// parse reads the flags.
func parse(args []string, errors io.Writer) (b *bench, asJSON bool, err error) {
	b = &bench{}
	f := flag.NewFlagSet("pauses", flag.ContinueOnError)
	f.SetOutput(errors)
	f.Usage = func() {
		fmt.Fprint(errors, usage)
		f.PrintDefaults()
	}
	f.BoolVar(&asJSON, "json", false, "print JSON")
	size := f.Int64("size", 1024, "`MIB` of data in the server")
	f.DurationVar(&b.seconds, "seconds", 10*time.Second, "how `LONG` clients write: 10s")
	modes := f.String("modes", native+","+agent, "`NAMES` of the ways to run: native, agent, stops")
	f.StringVar(&b.vplayd, "vplayd", "", "`FILE` to measure instead of vplayd built from this tree")
	extra := f.String("record", "", "`FLAGS` of vplayd record besides, with spaces between them")
	if err := f.Parse(args); err != nil {
		return nil, false, err
	}
	if f.NArg() > 0 {
		return nil, false, fmt.Errorf("%q is no flag", f.Arg(0))
	}
	if *size < 1 || b.seconds <= 0 {
		return nil, false, fmt.Errorf("--size %d --seconds %v: both must be more than 0", *size, b.seconds)
	}
	b.size, b.extra = *size<<20, strings.Fields(*extra)
	b.modes, err = command.Modes(modeNames, *modes)
	return b, asJSON, err
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	b, asJSON, err := parse(args, progress)
	if err != nil {
		return err
	}
	b.ctx, b.progress = ctx, progress
	if b.redis, err = exec.LookPath("redis-server"); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "vplay-pauses"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.vplayd, err = command.Vplayd(b.vplayd, b.dir); err != nil {
		return err
	}
	rep := &report{Machine: command.ThisMachine(), Size: b.size >> 20, Seconds: b.seconds.Seconds(), Wanted: wanted}
	for _, mode := range b.modes {
		res, err := b.measure(mode)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", mode, err), ctx.Err())
		}
		rep.Results = append(rep.Results, res)
	}
	return command.Write(out, rep, asJSON)
}

// tell shows what is going on.
func (b *bench) tell(mode, format string, args ...any) {
	fmt.Fprintf(b.progress, "pauses: %s: %s\n", mode, fmt.Sprintf(format, args...))
}
