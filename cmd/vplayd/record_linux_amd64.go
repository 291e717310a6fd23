package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	recorder "vplay/checkpoint/record"
)

// launchVerb is the hidden verb that the recorder starts itself with: the
// process that becomes the program.
const launchVerb = "__launch"

// launch becomes the recorded program when the arguments say so.
func launch(args []string) bool {
	if len(args) < 2 || args[1] != launchVerb {
		return false
	}
	if err := recorder.Launch(args[2:]); err != nil {
		printError(err)
	} // else the recorder has been told, and says it
	os.Exit(exitRecorder)
	return true
}

func record(c *cobra.Command, args []string, f recordFlags) error {
	if f.out == "" {
		f.out = outputName(args[0])
	}
	if err := checkOutput(f.out, f.force); err != nil {
		return err
	}
	keep := recorder.KeepCrash
	switch f.keep {
	case "crash":
	case "always":
		keep = recorder.KeepAlways
	default:
		return usageError{withHint(fmt.Errorf("--keep %s", f.keep), exitUsage, "--keep takes crash or always")}
	}
	line := newProgress(f.quiet)
	res, err := recorder.Run(context.WithoutCancel(c.Context()), recorder.Options{
		Path: f.out, Keep: keep, Interval: f.interval, KeepSeconds: f.keepSeconds, RingBytes: f.ringBytes,
		ForceEvery: time.Duration(f.forceEvery) * time.Millisecond,
		FullRegs:   f.fullRegs, Vsyscall: f.vsyscall, NoTrapCPUID: f.noTrapCPUID, Args: args, Logger: logger(c, "record"),
		Progress: func(done, total int) {
			line.show("writing [%s] %d of %d intervals", bar(float64(done)/float64(max(total, 1))), done, total)
		},
	})
	line.done()
	if err != nil {
		var start *recorder.StartError
		if errors.As(err, &start) {
			return startError(start)
		}
		res.Err = err
	}
	if res.Recorded && f.slims() == slimNow {
		slimAtOnce(c.Context(), res.Path, f)
	}
	sayRecorded(&res, f)
	if res.Recorded && f.slims() == slimBackground {
		slimBehind(res.Path, f)
	}
	return leaveAs(&res)
}

// sayRecorded says what became of the recording.
func sayRecorded(res *recorder.Result, f recordFlags) {
	if res.Err != nil && !res.Recorded {
		printError(notWritten(res.Err))
		return
	}
	if f.quiet {
		return
	}
	switch {
	case res.Recorded:
		st, err := os.Stat(res.Path)
		if err == nil {
			fmt.Fprintf(os.Stderr, "vplayd: %s: %s; look at it: vplayd serve %s\n", res.Path, size(st.Size()), res.Path)
		}
		if res.Reason != "" {
			fmt.Fprintf(os.Stderr, "vplayd: recording ended early: %s\n", res.Reason)
		}
	case res.Reason != "":
		fmt.Fprintf(os.Stderr, "vplayd: nothing recorded: %s\n", res.Reason)
	}
}

// startError gives the reasons why the program could not be started their
// codes.
func startError(err *recorder.StartError) error {
	hint := err.Hint
	if hint == "" {
		hint = "vplayd doctor tells what this machine can do"
	}
	return withHint(err, err.Code, "%s", hint)
}

// notWritten is the error of a recording that failed; the program has run all
// the same.
func notWritten(err error) error {
	hint := "vplayd doctor tells what this machine can do"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		hint = "make room, or write it elsewhere: record -o FILE"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOENT):
		hint = "write it elsewhere: record -o FILE"
	}
	return withHint(fmt.Errorf("nothing recorded: %w", err), exitRecorder, "%s", hint)
}

// leaveAs ends vplayd as the program ended: with its exit code, or killed by
// the same signal, without a core file of its own.
func leaveAs(res *recorder.Result) error {
	if res.Signal != 0 {
		dieOf(syscall.Signal(res.Signal))
		return exitError{128 + res.Signal}
	}
	if res.ExitCode != 0 {
		return exitError{res.ExitCode}
	}
	return nil
}
