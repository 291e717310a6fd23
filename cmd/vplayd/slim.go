package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"vplay/replay"
)

func newSlim() *cobra.Command {
	var limit time.Duration
	var jobs int
	c := &cobra.Command{
		Use:   "slim [flags] [RECORDING]",
		Short: "make a recording smaller by replaying it",
		Long: `Slim replays the fat intervals of a recording and writes it again with only
the pages that replay touched and what debuggers read. It proves on the way
that the recording replays: an interval that does not, stays as it is and is
named. Intervals are taken newest first; with --time, slim stops in between and
a later run goes on.

The file is replaced only when the new one is whole.`,
		Example: "  vplayd slim sort-1.vplay\n  vplayd slim --time 30s sort-1.vplay",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := recordingPath(args)
			if err != nil {
				return err
			}
			rec, _, err := openRecording(c, []string{path})
			if err != nil {
				return err
			}
			rec.Close()
			return slim(c, path, limit, jobs, false)
		},
	}
	c.Flags().DurationVar(&limit, "time", 0, "how long it may take (default: until all is slim)")
	c.Flags().IntVarP(&jobs, "jobs", "j", 0, "intervals replayed at once (default: one per CPU)")
	return c
}

// slim slims the recording at path and says what came of it.
func slim(c *cobra.Command, path string, limit time.Duration, jobs int, quiet bool) error {
	line := newProgress(quiet)
	budget, err := budgetOf(c)
	if err != nil {
		return err
	}
	res, err := replay.Slim(c.Context(), path, replay.SlimOptions{
		Time: limit, Workers: jobs, Budget: budget,
		Progress: func(done, total int, rate float64) {
			line.show("slimming [%s] %d of %d intervals, %.0f M insn/s", bar(float64(done)/float64(max(total, 1))), done, total, rate/1e6)
		},
	})
	line.done()
	if err != nil {
		return err
	}
	if !quiet {
		fmt.Fprintf(c.ErrOrStderr(), "vplayd: %s: %s slimmed, %d left fat, %s before, %s after\n", path,
			plural(res.Slimmed, "interval"), res.Left, size(res.Before), size(res.After))
	}
	var errs []error
	for _, r := range res.Failed {
		errs = append(errs, r.Err)
	}
	return errors.Join(errs...)
}

// slimAfterRecord slims what was just recorded within its time budget.
func slimAfterRecord(c *cobra.Command, path string, f recordFlags) error {
	if f.slimTime <= 0 {
		return nil
	}
	return slim(c, path, f.slimTime, 0, f.quiet)
}
