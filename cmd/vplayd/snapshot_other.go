//go:build !(linux && amd64)

package main

// The verb snapshot where there is no recorder: an error that says so.

func snapshot(int, recordFlags) error {
	return noRecorder("ask on the machine where the program runs; serve, verify and all else work here")
}
