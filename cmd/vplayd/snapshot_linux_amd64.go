package main

import (
	"errors"
	"fmt"
	"os"

	recorder "vplay/checkpoint/record"
)

// The verb snapshot where there is a recorder.

func snapshot(pid int, f recordFlags) error {
	if f.out == "" {
		name, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil {
			name = "snapshot" // whether there is such a process is found out below
		}
		f.out = outputName(name)
	}
	if err := checkOutput(f.out, f.force); err != nil {
		return err
	}
	err := recorder.Snapshot(pid, f.out)
	var none *recorder.NoRecorderError
	switch {
	case errors.As(err, &none):
		return withHint(err, exitFailed, "vplayd attach %d records it from now on", pid)
	case err != nil:
		return withHint(fmt.Errorf("no snapshot: %w", err), exitFailed, "vplayd help snapshot")
	}
	if st, err := os.Stat(f.out); err == nil && !f.quiet {
		fmt.Fprintf(stderr, "vplayd: %s: %s; look at it: vplayd serve %s\n", f.out, size(st.Size()), f.out)
	}
	return nil
}
