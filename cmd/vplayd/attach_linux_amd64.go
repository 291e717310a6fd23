package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	recorder "vplay/checkpoint/record"
)

// The verb attach where there is a recorder. What is said of the recording is in
// record_linux_amd64.go.

func attach(c *cobra.Command, pid int, f attachFlags) error {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		program = "process" // the recorder says why it cannot be recorded
	}
	named := f.out != ""
	if !named {
		f.out = outputName(program)
	}
	opt, line, err := f.options(c)
	if err != nil {
		return err
	}
	if !named {
		opt.Name = freeNames(program)
	}
	opt.For, opt.UntilCrash = f.time, f.untilCrash
	opt.Started = func(pid int) {
		if !f.quiet {
			fmt.Fprintf(stderr, "vplayd: recording process %d; Ctrl-C ends it\n", pid)
		}
	}
	keepHeapLow()
	keep, err := newKeeper(program, filepath.Dir(f.out), &f.recordFlags)
	if err != nil {
		return err
	}
	stop, err := startTriggers(&f.recordFlags, &opt, keep)
	if err != nil {
		return err
	}
	res, err := recorder.Attach(context.WithoutCancel(c.Context()), pid, opt)
	stop()
	line.done()
	if err := concluded(c, &res, err, f.recordFlags); err != nil {
		return err
	}
	if !res.Detached && !res.Recorded && res.Err == nil && !f.quiet {
		fmt.Fprintf(stderr, "vplayd: the program has ended with exit code %d, without a crash: there is no recording (--keep always keeps one)\n", res.ExitCode)
	}
	switch {
	case res.Detached && res.Err == nil:
		return nil
	case res.ExitCode != 0:
		return exitError{res.ExitCode}
	case res.Err != nil:
		return exitError{exitRecorder}
	}
	return nil
}
