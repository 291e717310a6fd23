//go:build !(linux && amd64)

package main

import (
	"errors"
	"runtime"

	"github.com/spf13/cobra"
)

// The verb core-handler where no Linux x86-64 program crashes: an error that says so.

func handleCrash(*cobra.Command, crash, handlerFlags) error {
	return withHint(errors.New("core-handler works on Linux x86-64 only, and this is "+runtime.GOOS+"/"+runtime.GOARCH),
		exitMachine, "import-core makes recordings of core files on any system")
}
