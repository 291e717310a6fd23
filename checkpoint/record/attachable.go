//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// What speaks against attaching to a running process, and what can be done about it. What /proc
// tells is looked at before anything is traced, the rest when all threads are stopped.

// refusal says why a process cannot be attached to, and what helps.
type refusal struct{ why, hint string }

func (r *refusal) Error() string { return r.why }

// attachable returns why the process cannot be attached to, as far as /proc tells.
func attachable(pid int) error {
	status, err := statusOf(pid)
	if err != nil || pid <= 0 {
		return attachError(pid, &refusal{"there is no such process", "pgrep -a NAME finds the number of a running program"})
	}
	if of := int(status.Number("Tgid")); of != pid {
		return attachError(pid, &refusal{fmt.Sprintf("it is a thread of process %d", of), fmt.Sprintf("attach to process %d: all its threads are recorded", of)})
	}
	if pid == os.Getpid() {
		return attachError(pid, &refusal{"it is vplayd itself", "name the process to record"})
	}
	if r := unattachable(pid, string(status.Field("State")), int(status.Number("TracerPid"))); r != nil {
		return attachError(pid, r)
	}
	tids, err := tasksOf(pid)
	if err != nil {
		return attachError(pid, err)
	}
	for _, tid := range tids {
		if status, err := statusOf(tid); err == nil && status.Number("Seccomp") != 0 {
			return attachError(pid, &refusal{"it runs under a seccomp filter, which need not allow the calls that attaching has it make", "vplayd record can start it: a filter of its own comes later then"})
		}
	}
	return unsupportedMappings(pid)
}

// unattachable returns why a process in this state, with that tracer, cannot be attached to, nil
// for no reason.
func unattachable(pid int, state string, tracer int) *refusal {
	if tracer != 0 {
		if status, err := statusOf(tracer); err == nil {
			tracer = int(status.Number("Tgid")) // it may be a thread
		}
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", tracer)) // it may have ended
		return &refusal{
			fmt.Sprintf("process %d (%s) traces it already", tracer, strings.TrimSpace(string(name))),
			"a process has one tracer: end that debugger, strace or recorder first",
		}
	}
	if strings.HasPrefix(state, "Z") {
		return &refusal{"it has ended, and its parent has not taken note (a zombie), or its first thread has ended before the others", "there is nothing to record, or not by attaching"}
	}
	path := fmt.Sprintf("/proc/%d/exe", pid)
	if _, err := os.Readlink(path); errors.Is(err, unix.ENOENT) {
		return &refusal{"it is a thread of the kernel", "programs can be recorded, the kernel cannot"}
	}
	if why, hint := unrecordable(path); why != "" {
		return &refusal{why, hint}
	}
	return nil
}

// unsupportedMappings returns an error for a process to whose memory the kernel writes at any
// time.
func unsupportedMappings(pid int) error {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return attachError(pid, err)
	}
	for name, what := range map[string]string{"anon_inode:[io_uring]": "io_uring", "/[aio]": "asynchronous input and output (io_setup)"} {
		if strings.Contains(string(list), name) {
			return attachError(pid, &refusal{
				"it uses " + what + ": the kernel writes to its memory at any time, which cannot be replayed",
				"vplayd record starts a program so that it does without",
			})
		}
	}
	return nil
}

// attachError is the error of a process that cannot be attached to.
func attachError(pid int, err error) error {
	e := &StartError{Program: fmt.Sprintf("attach to process %d", pid), Code: 125, Err: err}
	var r *refusal
	switch {
	case errors.As(err, &r):
		e.Hint = r.hint
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		e.Err, e.Hint = errors.New("the kernel does not allow it"), traceHint()
	case isGone(err):
		e.Err, e.Hint = errors.New("it has ended"), "there is nothing left to record"
	}
	return e
}

// traceHint says what lets this user trace a running process.
func traceHint() string {
	b, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope") // absent where Yama is not there
	switch scope := strings.TrimSpace(string(b)); scope {
	case "1":
		return "kernel.yama.ptrace_scope is 1, so that only root may attach: run as root, or sudo sysctl kernel.yama.ptrace_scope=0"
	case "2":
		return "kernel.yama.ptrace_scope is 2: run as root"
	case "3":
		return "kernel.yama.ptrace_scope is 3: nobody may trace until the machine is started again with another value"
	}
	return "attach as root, or as the user whose process it is; a process with other privileges than its user's (setuid, PR_SET_DUMPABLE 0) is root's alone; in a container, give it CAP_SYS_PTRACE"
}

// recordable returns why a thread that is stopped cannot be recorded.
func (z *seized) recordable() error {
	switch {
	case z.regs.Cs != userCS64:
		return &refusal{fmt.Sprintf("thread %d runs 32-bit code", z.tid), "vplay records x86-64 programs"}
	case ptrace.Dispatches(z.tid):
		return &refusal{fmt.Sprintf("thread %d has its system calls dispatched (PR_SET_SYSCALL_USER_DISPATCH)", z.tid), "programs of that kind, such as Wine, cannot be recorded by attaching"}
	}
	return nil
}
