//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// The order in which a process gives up its rights on Linux: no new privileges, then
// Landlock, then seccomp. The rules of Landlock are in landlock_linux.go, and the filter
// of seccomp is in filter_linux.go.

func check() State {
	_, err := landlockVersion()
	return State{Landlock: err, Seccomp: seccompMissing()}
}

func enter(a Access) (State, error) {
	state := check()
	// no_new_privs is a thread's, and both mechanisms want it of the thread that asks.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return State{err, err}, nil // before Linux 3.5, which has neither
	}
	if state.Landlock == nil {
		if err := restrictFiles(a); err != nil {
			return state, fmt.Errorf("sandbox: Landlock: %w", err)
		}
	}
	if state.Seccomp == nil {
		if err := filterCalls(callFilter(unix.Getpid(), len(a.Write) > 0, len(a.Remove) > 0)); err != nil {
			return state, fmt.Errorf("sandbox: seccomp: %w", err)
		}
	}
	return state, nil
}

// restrictFiles puts a Landlock ruleset on all threads.
func restrictFiles(a Access) (err error) {
	version, err := landlockVersion()
	if err != nil {
		return err
	}
	set, err := newRuleset(version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(set)) }()
	for _, r := range rules(a, version) {
		if err := addRule(set, r); err != nil {
			return fmt.Errorf("%s: %w", r.path, err)
		}
	}
	return restrictAllThreads(set)
}
