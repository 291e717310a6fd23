//go:build !(linux && amd64)

package main

import (
	"errors"
	"runtime"

	"github.com/spf13/cobra"
)

// The verb record where there is no recorder: an error that says so.

// launch becomes the recorded program; there is no recorder here.
func launch([]string) bool { return false }

func record(*cobra.Command, []string, recordFlags) error {
	return noRecorder("record on the machine where the program runs; serve, verify and all else work here")
}

// noRecorder is the error of a verb that records.
func noRecorder(hint string) error {
	return withHint(errors.New("vplayd records Linux x86-64 programs only, and this is "+runtime.GOOS+"/"+runtime.GOARCH), exitMachine, "%s", hint)
}
