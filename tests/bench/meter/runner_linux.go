package meter

import (
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// The runner: it starts a command, waits for all that this leads to, and says what it took.

// Child becomes the runner when the arguments say so, and does not return then. It must be called first thing in main,
// or in TestMain.
func Child() {
	if len(os.Args) < 4 || os.Args[1] != Verb {
		return
	}
	runtime.LockOSThread() // its children inherit its CPU
	a := runTree(os.Args[2] == "pinned", os.Args[3:])
	out := os.NewFile(fdReport, "report")
	if json.NewEncoder(out).Encode(a) != nil { // nobody listens
		os.Exit(1)
	}
	os.Exit(0)
}

// runTree runs a command and waits for all that it leads to.
func runTree(pinned bool, args []string) (a answer) {
	fail := func(err error) answer {
		killBelow(os.Getpid())
		return answer{Error: err.Error()}
	}
	syscall.CloseOnExec(fdLife)
	syscall.CloseOnExec(fdReport)
	const setSubreaper = 36 // PR_SET_CHILD_SUBREAPER of linux/prctl.h
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setSubreaper, 1, 0); errno != 0 {
		return fail(errno)
	}
	if pinned {
		if err := pin(); err != nil {
			return fail(err)
		}
	}
	go func() {
		_, _ = syscall.Read(fdLife, make([]byte, 1)) // at its end the caller has asked, or has gone
		for {
			killBelow(os.Getpid())
			time.Sleep(10 * time.Millisecond)
		}
	}()
	prog, err := exec.LookPath(args[0])
	if err != nil {
		return fail(err)
	}
	start := time.Now()
	p, err := os.StartProcess(prog, args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return fail(err)
	}
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // there is none any more
			break
		}
		if pid == p.Pid {
			a.Wall = time.Since(start)
			a.Code = ws.ExitStatus()
			if ws.Signaled() {
				a.Code = 128 + int(ws.Signal())
			}
		}
	}
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &ru); err != nil {
		return fail(err)
	}
	a.User, a.System = time.Duration(ru.Utime.Nano()), time.Duration(ru.Stime.Nano())
	return a
}

// pin puts the calling thread on the CPU that it runs on.
func pin() error {
	var cpu uint32
	if _, _, errno := syscall.RawSyscall(sysGetcpu, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return errno
	}
	var set [1024 / 64]uint64 // as glibc's cpu_set_t
	set[cpu/64%16] = 1 << (cpu % 64)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set))); errno != 0 {
		return errno
	}
	return nil
}

// killBelow kills all processes below one.
func killBelow(pid int) {
	for _, p := range Below(pid) {
		_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may be gone
	}
}

// apart has the runner not get what a terminal sends: the caller ends it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
