package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/replay"
	"vplay/replay/debug/text"
)

// slimFlags say how a recording is slimmed.
type slimFlags struct {
	time       time.Duration // 0: no bound
	firstLoads bool
	length     time.Duration // 0: intervals stay as they are
	jobs       int
	quiet      bool
	budget     *checkpoint.Budget // of reading the recording
	engine     replay.EngineMaker // nil: the interpreter
	background bool               // as the process that record leaves behind
}

func newSlim() *cobra.Command {
	var f slimFlags
	c := &cobra.Command{
		Use:   "slim [flags] [RECORDING]",
		Short: "make a recording smaller by replaying it",
		Long: `Slim replays the fat intervals of a recording and writes it again without the
memory that nothing needs. It proves on the way that the recording replays: an
interval that does not, stays as it is and is named, as is its process where there are
several. Intervals are taken newest first; with --time, slim stops in between and a
later run goes on.

What stays is all that the program read, wrote or executed in the recorded time,
and what debuggers read: stacks, global variables, symbols. What the program
wrote can be seen at every later moment. What is dropped is memory from before the
recorded time that the program neither used nor wrote since: a core file would
have it, and "monitor why ADDRESS" names it.

The file is replaced only when the new one is whole, smaller, and replays too;
whatever goes wrong before, the old one stays. Who has the old file open goes on
reading it.

With --first-loads, only the bytes stay that replay of an interval reads or executes
before it writes them, and what debuggers read: three fifths of the file. It replays as
exactly, any moment from the start of its interval, forward and backward. But one
sees less: at a moment, what the program had read or written by then in that interval,
and at the end what it had in the recorded time; the rest is "not captured", and
"monitor why ADDRESS" names it. Older versions of vplayd refuse such a recording. A
recording that was slimmed can be slimmed to first loads, not the other way round.
With --length T besides, neighbouring intervals are joined up to T of CPU time, where
nothing lies between them, as a signal does or a switch to another thread: what the
later ones began with falls away, and the way to a moment becomes longer, at most T.
Positions get the numbers of the joined intervals.

Slim can open no file outside the folder of the recording and start no other program,
where the kernel has Landlock and seccomp (vplayd doctor tells).`,
		Example: "  vplayd slim sort-1.vplay\n  vplayd slim --time 30s sort-1.vplay\n  vplayd slim --first-loads sort-1.vplay",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if f.length != 0 && (!f.firstLoads || f.length < 0) {
				return usageError{withHint(errors.New("--length needs --first-loads and a positive time"), exitUsage, "vplayd slim --first-loads --length 1s RECORDING")}
			}
			path, err := recordingPath(args)
			if err != nil {
				return err
			}
			if f.background {
				return slimInBackground(c, path, f)
			}
			err = slimHere(c, path, f)
			if errors.Is(err, context.Canceled) {
				fmt.Fprintf(stderr, "vplayd: %s: slimming was stopped; the file stays as it was\n", path)
			}
			return err
		},
	}
	fs := c.Flags()
	fs.DurationVar(&f.time, "time", 0, "how long it may take (default: until all is slim)")
	fs.BoolVar(&f.firstLoads, "first-loads", false, "keep of each page only the bytes that replay and debuggers need")
	fs.DurationVar(&f.length, "length", 0, "with --first-loads: join neighbouring intervals up to so much CPU time")
	fs.IntVarP(&f.jobs, "jobs", "j", 0, "intervals replayed at once (default: one per CPU)")
	fs.BoolVar(&f.background, "background", false, "as the process that record leaves behind: with low priority, bounded memory, and without a word")
	_ = fs.MarkHidden("background") // it is there
	addSandboxFlag(c)
	return c
}

// slimHere is slim in the sandbox, for a file that can be opened.
func slimHere(c *cobra.Command, path string, f slimFlags) error {
	rec, _, err := openRecording(c, []string{path})
	if err != nil {
		return err
	}
	f.budget = rec.Budget()
	rec.Close()
	e, err := chooseEngine(c)
	if err != nil {
		return err
	}
	f.engine = e.maker
	if err := sandboxSlim(c, path); err != nil {
		return err
	}
	return slim(c.Context(), path, f)
}

// sandboxSlim enters the sandbox of slim, which leaves the folder of the file.
func sandboxSlim(c *cobra.Command, path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return enterSandbox(c, sandbox.Access{Write: []string{filepath.Dir(real)}})
}

// slim slims the recording at path and says what came of it.
func slim(ctx context.Context, path string, f slimFlags) error {
	line := newProgress(f.quiet)
	res, err := replay.Slim(ctx, path, replay.SlimOptions{
		Time: f.time, FirstLoads: f.firstLoads, Length: f.length, Workers: f.jobs, Budget: f.budget, Engine: f.engine, Writer: checkpoint.WriterOptions{Level: checkpoint.LevelSmall},
		Progress: func(p replay.SlimProgress) {
			what := "slimming"
			if p.Checking {
				what = "checking"
			}
			line.show("%s [%s] %d of %d intervals, %.0f M insn/s", what, bar(float64(p.Done)/float64(max(p.Total, 1))), p.Done, p.Total, p.InsnPerSecond/1e6)
		},
	})
	line.done()
	var bad *replay.SlimCheckError
	switch {
	case errors.As(err, &bad):
		return withHint(err, exitDiverged, "the recording itself is whole; this is a bug in vplayd: please report it")
	case errors.Is(err, replay.ErrReplaced):
		return withHint(fmt.Errorf("%s: %w", path, err), exitFailed, "does another vplayd slim it? vplayd info %s shows what is there", path)
	case err != nil:
		return err
	}
	if !f.quiet {
		fmt.Fprintf(stderr, "vplayd: %s: %s\n", path, slimmed(res))
	}
	var errs []error
	for _, r := range res.Failed {
		err := r.Err
		if res.Processes > 1 {
			err = fmt.Errorf("process %d: %w", r.PID, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// slimmed says what came of slimming.
func slimmed(res *replay.SlimResult) string {
	s := fmt.Sprintf("%s slimmed, %d left fat, %s before, %s after", text.Plural(res.Slimmed, "interval"), res.Left, size(res.Before), size(res.After))
	if res.Joined > 0 {
		s = fmt.Sprintf("%s slimmed and joined to %d, %d left fat, %s before, %s after", text.Plural(res.Slimmed, "interval"), res.Slimmed-res.Joined, res.Left, size(res.Before), size(res.After))
	}
	switch {
	case res.IsMoment:
		s = "it holds one moment, all of which stays"
	case res.Larger > 0:
		s = fmt.Sprintf("left fat: it has %s, and would have %s slim", size(res.Before), size(res.Larger))
	case res.OutOfTime && res.Slimmed == 0:
		s = fmt.Sprintf("left fat: the time was too short to slim any of %s", text.Plural(res.Left, "interval"))
	case res.OutOfTime:
		s += " (the time is over)"
	}
	return s
}
