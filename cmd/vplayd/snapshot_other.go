//go:build !(linux && amd64)

package main

import (
	"errors"
	"runtime"
)

// The verb snapshot where there is no recorder: an error that says so.

func snapshot(int, recordFlags) error {
	return withHint(errors.New("vplayd records Linux x86-64 programs only, and this is "+runtime.GOOS+"/"+runtime.GOARCH),
		exitMachine, "ask on the machine where the program runs; serve, verify and all else work here")
}
