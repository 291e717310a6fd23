package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/replay"
	"vplay/replay/debug/text"
)

// The verb verify: it replays everything and reports what differs, in lines or as JSON.
// With --lockstep it goes on in verify_lockstep.go.

func newVerify() *cobra.Command {
	var jobs int
	var asJSON, verbose bool
	var lock lockstepFlags
	c := &cobra.Command{
		Use:   "verify [flags] [RECORDING]",
		Short: "replay everything and compare it with what was recorded",
		Long: `Verify replays every interval of a recording in the emulator, several at
once, and compares what the recorder noted: the registers at each event, and
at each interval's end all registers and the content of every page written.

It prints the number of intervals and instructions, the speed, and each
divergence with its position, thread, what was recorded and what replay got.
Without a name it takes the newest recording in this folder.

With --lockstep it finds bugs of the emulator, on x86-64 Linux only. A process
of this machine executes the recorded instructions, each on the CPU itself, beside
the emulator; registers, flags, vector and x87 registers and what was stored are
compared after each one, and the first difference is printed: the instruction,
its operands, both results, and a command that goes there in gdb. System calls,
signals, RDTSC and CPUID come from the recording and are not executed. It makes
some ten thousand steps a second on a busy machine, more on an idle one. Without
--interval and --from it replays everything at full speed first: where that
diverges, it goes the way there, from the last event that was right on, else
through everything. When the CPU is of another maker or family than the recorded
one, undefined flags are not compared. There is no sandbox then: it traces a process.

Otherwise, once the file is open, verify can open no other file and start no other
program, where the kernel has Landlock and seccomp (vplayd doctor tells).

Exit codes: 0 all is exact, 3 a divergence or difference, 4 the recording is
damaged, 5 this machine cannot.`,
		Example: `  vplayd verify sort-1.vplay
  vplayd verify -j 1 --json sort-1.vplay
  vplayd verify --lockstep --from 3:1200000.0 --count 100000 sort-1.vplay`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := lock.check(c); err != nil {
				return err
			}
			f := verifyFlags{jobs, asJSON, verbose, lock}
			if lock.on {
				return lockstepVerify(c, args, f)
			}
			return verify(c, args, f)
		},
	}
	lock.add(c)
	addSandboxFlag(c)
	c.Flags().IntVarP(&jobs, "jobs", "j", 0, "intervals replayed at once (default: one per CPU)")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per interval, then a summary")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "a line per interval")
	return c
}

type verifyFlags struct {
	jobs          int
	json, verbose bool
	lockstep      lockstepFlags
}

func verify(c *cobra.Command, args []string, f verifyFlags) error {
	s, _, done, err := openSession(c, args)
	if err != nil {
		return err
	}
	defer done()
	if err := enterSandbox(c, sandbox.Access{}); err != nil {
		return err
	}
	began := time.Now()
	results, err := verifyAll(c.Context(), s, f)
	if err != nil {
		return err
	}
	return reportVerify(c.OutOrStdout(), results, time.Since(began), f)
}

// verifyAll replays all intervals with a progress bar.
func verifyAll(ctx context.Context, s *replay.Session, f verifyFlags) ([]replay.Result, error) {
	began := time.Now()
	line := newProgress(false)
	defer line.done()
	var done, insns atomic.Uint64
	total := len(s.Rec.Intervals())
	return replay.Verify(ctx, s, replay.VerifyOptions{
		Workers: f.jobs,
		Progress: func(n uint64) {
			sum := insns.Add(n)
			line.show("verifying [%s] %d of %d intervals, %.0f M insn/s", bar(float64(done.Load())/float64(max(total, 1))),
				done.Load(), total, float64(sum)/1e6/time.Since(began).Seconds())
		},
		Done: func(replay.Result) { done.Add(1) },
	})
}

// reportVerify prints the results and returns the exit code as an error.
func reportVerify(out io.Writer, results []replay.Result, took time.Duration, f verifyFlags) error {
	var insns uint64
	diverged, failed := 0, 0
	for _, r := range results {
		insns += r.Instructions
		if r.Err != nil {
			if replay.Unmatched(r.Err) {
				diverged++
			} else {
				failed++
			}
		}
		if err := verifyLine(out, r, f); err != nil {
			return err
		}
	}
	rate := float64(insns) / 1e6 / max(took.Seconds(), 1e-9)
	if f.json {
		if err := json.NewEncoder(out).Encode(map[string]any{
			"intervals": len(results), "instructions": insns, "divergences": diverged, "unreadable": failed,
			"seconds": took.Seconds(), "minsn_per_s": rate,
		}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(out, "%s, %s instructions, %.1f M insn/s, %.2f s, %s\n", text.Plural(len(results), "interval"), count(insns), rate,
			took.Seconds(), text.Plural(diverged, "divergence"))
		if failed > 0 {
			fmt.Fprintf(out, "%s could not be read\n", text.Plural(failed, "interval"))
		}
	}
	switch {
	case failed > 0:
		return exitError{exitDamaged}
	case diverged > 0:
		return exitError{exitDiverged}
	}
	return nil
}

func verifyLine(out io.Writer, r replay.Result, f verifyFlags) error {
	if f.json {
		o := map[string]any{"interval": r.Interval, "instructions": r.Instructions, "events": r.Events, "seconds": r.Took.Seconds()}
		if r.Err != nil {
			o["error"] = r.Err.Error()
			var d *replay.DivergenceError
			if errors.As(r.Err, &d) {
				o["position"] = d.At.String()
			}
		}
		return json.NewEncoder(out).Encode(o)
	}
	if f.verbose || r.Err != nil {
		state := "exact"
		if r.Err != nil {
			state = r.Err.Error()
		}
		fmt.Fprintf(out, "interval %d: %s instructions, %d events, %.2f s: %s\n", r.Interval, count(r.Instructions), r.Events, r.Took.Seconds(), state)
	}
	return nil
}
