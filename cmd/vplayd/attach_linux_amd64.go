package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	recorder "vplay/checkpoint/record"
)

// The verb attach where there is a recorder. What is said of the recording is in
// record_linux_amd64.go.

func attach(c *cobra.Command, pid int, f attachFlags) error {
	if f.out == "" {
		name, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil {
			name = "process" // the recorder says why it cannot be recorded
		}
		f.out = outputName(name)
	}
	opt, line, err := f.options(c)
	if err != nil {
		return err
	}
	opt.For, opt.UntilCrash = f.time, f.untilCrash
	opt.Started = func(pid int) {
		if !f.quiet {
			fmt.Fprintf(stderr, "vplayd: recording process %d; Ctrl-C ends it\n", pid)
		}
	}
	res, err := recorder.Attach(context.WithoutCancel(c.Context()), pid, opt)
	line.done()
	if err := concluded(c, &res, err, f.recordFlags); err != nil {
		return err
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
