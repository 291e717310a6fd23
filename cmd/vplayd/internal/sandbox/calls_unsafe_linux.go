//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls take addresses, so that each is made from where the address was taken: in
// other Go frames the stack may move.

// landlockVersion returns the version of Landlock that the kernel has, at least 1, or
// why it cannot be used.
func landlockVersion() (int, error) {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0, missing("Landlock", e)
	}
	// A call that changes nothing, to ask whether it can be made on all threads.
	if _, _, e := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_GET_DUMPABLE, 0, 0); errors.Is(e, unix.ENOTSUP) {
		return 0, errCgo
	}
	return int(v), nil
}

func createRuleset(attr *unix.LandlockRulesetAttr) (fd int, err error) {
	// The kernel takes a structure that is longer than its own when the rest is zero.
	r, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr), 0)
	if e != 0 {
		return -1, e
	}
	return int(r), nil
}

func addPath(set int, attr *unix.LandlockPathBeneathAttr) error {
	_, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(attr)), 0, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// restrictAllThreads puts a ruleset on every thread, and so on those to come.
func restrictAllThreads(set int) error {
	if _, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return e
	}
	if _, _, e := syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), 0, 0); e != 0 {
		return e
	}
	return nil
}

// seccompMissing returns why seccomp cannot be used, or nil.
func seccompMissing() error {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); e != 0 {
		return missing("seccomp", e)
	}
	return nil
}

// filterCalls puts a filter on every thread, with no_new_privs.
func filterCalls(filter []unix.SockFilter) error {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	stray, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	switch {
	case e != 0:
		return e
	case stray != 0:
		return errors.New("a thread has another filter")
	}
	return nil
}
