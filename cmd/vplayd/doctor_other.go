//go:build !(linux && amd64)

package main

import (
	"context"
	"runtime"
)

// What doctor finds where there is no recorder.

// machineFindings says that there is no recorder for this system.
func machineFindings(context.Context) []finding {
	return []finding{fail("recording", "vplay records Linux x86-64 programs only, and this is "+runtime.GOOS+"/"+runtime.GOARCH,
		"record where the program runs, and replay the file here")}
}
