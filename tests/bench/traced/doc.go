// Command traced measures what must be traced of ten programs so that replay of any moment is short, and what logs of
// first loads would take in the place of a recording's pages.
//
//	go run ./tests/bench/traced [flags]     (just traced)
//
// Each program is recorded with a small input. Of the recording vplayd windows and vplayd windows --first-loads give the
// figures; the sizes of the fat and of the slim file are those of vplayd info --json. What the columns are is
// in vplayd help windows.
package main
