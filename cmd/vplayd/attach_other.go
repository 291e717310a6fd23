//go:build !(linux && amd64)

package main

import "github.com/spf13/cobra"

// The verb attach where there is no recorder: an error that says so.

func attach(*cobra.Command, int, attachFlags) error {
	return noRecorder("attach on the machine where the program runs; serve, verify and all else work here")
}
