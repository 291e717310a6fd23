package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const canRecord = true

// mountSmall mounts a tmpfs of the given size on dir.
func mountSmall(dir, size string) (unmount func(), err error) {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		return nil, err
	}
	return func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }, nil
}

// hasUnnamed says whether dir can have files that never had a name.
func hasUnnamed(dir string) bool {
	f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// noPtrace is "noptrace COMMAND...": COMMAND under a seccomp filter that refuses
// ptrace, as many containers have.
func noPtrace() {
	runtime.LockOSThread()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PTRACE, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		// Not unix.Prctl: in its Go frames prog's stack may move.
		if _, _, e := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog))); e != 0 {
			err = e
		}
	}
	if err == nil {
		var path string
		if path, err = exec.LookPath(os.Args[1]); err == nil {
			err = syscall.Exec(path, os.Args[1:], os.Environ())
		}
	}
	fmt.Fprintln(os.Stderr, "noptrace:", err)
	os.Exit(100)
}
