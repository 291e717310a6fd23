package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
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
divergence with its position, thread, what was recorded and what replay got. Of a
recording of several processes it replays all, and prints a line for each process;
--process PID chooses one.
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
  vplayd verify --process 4711 make-1.vplay
  vplayd verify --lockstep --from 3:1200000.0 --count 100000 sort-1.vplay`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := lock.check(c); err != nil {
				return err
			}
			f := verifyFlags{jobs: jobs, json: asJSON, verbose: verbose, lockstep: lock}
			if lock.on {
				return lockstepVerify(c, args, f)
			}
			return verify(c, args, f)
		},
	}
	lock.add(c)
	addSandboxFlag(c)
	addProcessFlag(c, "all")
	c.Flags().IntVarP(&jobs, "jobs", "j", 0, "intervals replayed at once (default: one per CPU)")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per interval, then a summary")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "a line per interval")
	return c
}

type verifyFlags struct {
	jobs          int
	json, verbose bool
	lockstep      lockstepFlags
	intervals     []uint32 // nil: all
}

func verify(c *cobra.Command, args []string, f verifyFlags) error {
	s, _, done, err := openSession(c, args)
	if err != nil {
		return err
	}
	defer done()
	if err := f.choose(c, s.Rec); err != nil {
		return err
	}
	if err := enterSandbox(c, sandbox.Access{}); err != nil {
		return err
	}
	began := time.Now()
	results, err := verifyAll(c.Context(), s, f)
	if err != nil {
		return err
	}
	return reportVerify(c.OutOrStdout(), s.Rec, results, time.Since(began), f)
}

// choose chooses the intervals of the process that --process names.
func (f *verifyFlags) choose(c *cobra.Command, rec *checkpoint.Recording) error {
	pid, ok, err := chosenProcess(c, rec)
	if ok {
		f.intervals = intervalsOf(rec, pid)
	}
	return err
}

// verifyAll replays the chosen intervals with a progress bar.
func verifyAll(ctx context.Context, s *replay.Session, f verifyFlags) ([]replay.Result, error) {
	began := time.Now()
	line := newProgress(false)
	defer line.done()
	var done, insns atomic.Uint64
	total := len(f.intervals)
	if f.intervals == nil {
		total = len(s.Rec.Intervals())
	}
	return replay.Verify(ctx, s, replay.VerifyOptions{
		Intervals: f.intervals, Workers: f.jobs,
		Progress: func(n uint64) {
			sum := insns.Add(n)
			line.show("verifying [%s] %d of %d intervals, %.0f M insn/s", bar(float64(done.Load())/float64(max(total, 1))),
				done.Load(), total, float64(sum)/1e6/time.Since(began).Seconds())
		},
		Done: func(replay.Result) { done.Add(1) },
	})
}

// reportVerify prints the results and returns the exit code as an error.
func reportVerify(out io.Writer, rec *checkpoint.Recording, results []replay.Result, took time.Duration, f verifyFlags) error {
	all, of, several := tally{}, map[int32]*tally{}, len(rec.Processes()) > 1
	for _, r := range results {
		if of[r.PID] == nil {
			of[r.PID] = &tally{}
		}
		all.add(&r)
		of[r.PID].add(&r)
		if err := verifyLine(out, r, f, several); err != nil {
			return err
		}
	}
	var processes []map[string]any
	for _, p := range rec.Processes() {
		t := of[p.PID]
		if t == nil {
			continue
		}
		o := t.object()
		o["pid"], o["program"] = p.PID, p.Program
		processes = append(processes, o)
		if !f.json && several {
			fmt.Fprintf(out, "process %s: %s\n", processName(p.PID, p.Program), t)
		}
	}
	rate := float64(all.instructions) / 1e6 / max(took.Seconds(), 1e-9)
	if f.json {
		o := all.object()
		o["seconds"], o["minsn_per_s"], o["processes"] = took.Seconds(), rate, processes
		if rec.IsMoment() {
			o["moment"] = true
		}
		if err := encodeLine(out, o); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(out, "%s, %s instructions, %.1f M insn/s, %.2f s, %s\n", text.Plural(all.intervals, "interval"), text.Count(all.instructions), rate,
			took.Seconds(), text.Plural(all.diverged, "divergence"))
		if rec.IsMoment() {
			fmt.Fprintln(out, "the recording holds one moment: nothing runs in it that could be compared")
		}
		if all.failed > 0 {
			fmt.Fprintf(out, "%s could not be read\n", text.Plural(all.failed, "interval"))
		}
	}
	switch {
	case all.failed > 0:
		var limit *checkpoint.LimitError
		if slices.ContainsFunc(results, func(r replay.Result) bool { return errors.As(r.Err, &limit) }) {
			fmt.Fprintf(stderr, "vplayd: hint: %s\n", limitHint(limit))
		}
		return exitError{exitDamaged}
	case all.diverged > 0:
		return exitError{exitDiverged}
	}
	return nil
}

// tally counts results.
type tally struct {
	intervals, diverged, failed int
	instructions                uint64
}

func (t *tally) add(r *replay.Result) {
	t.intervals++
	t.instructions += r.Instructions
	switch {
	case r.Err == nil:
	case replay.Unmatched(r.Err):
		t.diverged++
	default:
		t.failed++
	}
}

// String is what verify prints of a process.
func (t *tally) String() string {
	s := text.Plural(t.intervals, "interval") + ", " + text.Count(t.instructions) + " instructions, "
	switch {
	case t.diverged == 0 && t.failed == 0:
		return s + "exact"
	case t.failed == 0:
		return s + text.Plural(t.diverged, "divergence")
	}
	return s + text.Plural(t.diverged, "divergence") + ", " + text.Plural(t.failed, "interval") + " could not be read"
}

// object is the JSON form.
func (t *tally) object() map[string]any {
	return map[string]any{"intervals": t.intervals, "instructions": t.instructions, "divergences": t.diverged, "unreadable": t.failed}
}

// verifyLine prints what there is to say of an interval, with its process where there are
// several.
func verifyLine(out io.Writer, r replay.Result, f verifyFlags, several bool) error {
	if f.json {
		o := map[string]any{"interval": r.Interval, "pid": r.PID, "instructions": r.Instructions, "events": r.Events, "seconds": r.Took.Seconds()}
		if r.Err != nil {
			o["error"] = r.Err.Error()
			var d *replay.DivergenceError
			if errors.As(r.Err, &d) {
				o["position"] = d.At.String()
			}
		}
		return encodeLine(out, o)
	}
	if f.verbose || r.Err != nil {
		state := "exact"
		if r.Err != nil {
			state = r.Err.Error()
		}
		of := ""
		if several {
			of = fmt.Sprintf(" of process %d", r.PID)
		}
		fmt.Fprintf(out, "interval %d%s: %s instructions, %d events, %.2f s: %s\n", r.Interval, of, text.Count(r.Instructions), r.Events, r.Took.Seconds(), state)
	}
	return nil
}
