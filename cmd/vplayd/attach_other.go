//go:build !(linux && amd64)

package main

import (
	"errors"
	"runtime"

	"github.com/spf13/cobra"
)

// The verb attach where there is no recorder: an error that says so.

func attach(*cobra.Command, int, attachFlags) error {
	return withHint(errors.New("vplayd records Linux x86-64 programs only, and this is "+runtime.GOOS+"/"+runtime.GOARCH),
		exitMachine, "attach on the machine where the program runs; serve, verify and all else work here")
}
