package main

import "golang.org/x/sys/unix"

// The timer slack (prctl(2), PR_SET_TIMERSLACK) of a recorder and of what it starts.

// timerSlack is what vplayd was started with, in nanoseconds, and 0 where the
// executable's entry point has not changed it (entry_linux_amd64.s).
var timerSlack uint64

// ownSlack gives the calling thread, which starts a process, the slack that vplayd was started with: a process inherits it.
func ownSlack() {
	if timerSlack != 0 {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0) // it does not fail
	}
}
