package need

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// Whether a process may trace its child here.

// canTrace starts a child under PTRACE_TRACEME. It stops at its execve (man 2
// ptrace) and is killed there: nothing of it runs.
var canTrace = sync.OnceValue(func() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return false
	}
	_ = cmd.Process.Kill() // it is stopped, so it is there
	_ = cmd.Wait()         // killed
	return true
})
