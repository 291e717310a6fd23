//go:build !(linux && amd64)

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// Slimming in the background where there is no recorder: an error that says so.

// slimInBackground is for the process that record leaves behind, on Linux.
func slimInBackground(*cobra.Command, string, slimFlags) error {
	return withHint(errors.New("slim --background is for the recorder"), exitUsage, "vplayd slim FILE")
}
