//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// How the program comes to be: a launcher is made and seized, put on the recorder's CPU,
// and becomes the program by its execve.

// start makes the launcher, seizes it, and brings it to the end of execve.
func (s *session) start(prog string) (*thread, error) {
	fail := func(err error, hint string) (*thread, error) {
		return nil, &StartError{Program: s.opt.Args[0], Code: 125, Err: err, Hint: hint}
	}
	r, w, err := socketPair()
	if err != nil {
		return fail(err, "")
	}
	defer func() { _ = w.Close() }() // its end is news to nobody
	passed, closePassed := passedOn(len(s.opt.Files))
	files := slices.Concat(s.opt.Files, passed, []*os.File{r})
	env := s.startEnv(prog)
	args := append(append([]string{}, s.opt.Launcher...), launchFD(len(files)-1, env), prog)
	proc, err := os.StartProcess(s.opt.Launcher[0], append(args, s.opt.Args...), &os.ProcAttr{
		Dir: s.opt.Dir, Env: env, Files: files,
	})
	_ = r.Close() // the launcher has its own
	closePassed()
	if err != nil {
		return fail(err, "")
	}
	t := s.newThread(proc.Pid)
	if err := proc.Release(); err != nil {
		return fail(err, "")
	}
	kill := func() {
		_ = unix.Kill(t.proc.pid, unix.SIGKILL) // it may be gone, which is as good
		_, _ = ptrace.Wait(t.tid, 0)
	}
	// The launcher says when it runs: seized in the midst of its own execve, its
	// exec event would be taken for the program's.
	if _, err := w.Read(make([]byte, 1)); err != nil {
		kill()
		return fail(errors.New("the launcher did not start"), "")
	}
	if err := ptrace.Seize(t.tid, launcherOptions); err != nil {
		kill()
		return fail(fmt.Errorf("ptrace: %w", err), "ptrace is forbidden here: see kernel.yama.ptrace_scope, or a container's seccomp profile")
	}
	if err := s.pin(t); err != nil {
		kill()
		return fail(fmt.Errorf("sched_setaffinity: %w", err), "")
	}
	if _, err := w.Write(s.inherited.encode()); err != nil {
		kill()
		return fail(err, "")
	}
	ws, err := s.untilExec(t)
	if err != nil {
		kill()
		return fail(err, "")
	}
	if ws.Exited() {
		return nil, &StartError{
			Program: s.opt.Args[0], Code: 126, Err: fmt.Errorf("cannot be executed: %s", whyNot(w)),
			Hint: "is it a program for this machine, or a script with a valid #! line?",
		}
	}
	if err := t.onExec(); err != nil {
		kill()
		return fail(err, "")
	}
	return t, nil
}

// socketPair returns two ends of a stream: the launcher's and the recorder's.
func socketPair() (launcher, recorder *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "launcher"), os.NewFile(uintptr(fds[1]), "recorder"), nil
}

// untilExec runs the launcher up to the exec stop, or to its exit.
func (s *session) untilExec(t *thread) (unix.WaitStatus, error) {
	for {
		ws, err := ptrace.Wait(t.tid, 0)
		if err != nil || ws.Exited() || ws.Signaled() {
			return ws, err
		}
		sig := 0
		switch ptrace.Event(ws) { // the event
		case unix.PTRACE_EVENT_EXEC:
			return ws, nil
		case 0:
			sig = int(ws.StopSignal())
		}
		if err := ptrace.Resume(t.tid, ptrace.Cont, sig); err != nil {
			return ws, err
		}
	}
}

// pin puts the program and the tracer thread on one CPU: a stop between CPUs
// costs 20 times more.
func (s *session) pin(t *thread) error {
	if err := unix.SchedGetaffinity(t.tid, &t.affinity); err != nil {
		return err
	}
	t.note()
	cpu, err := currentCPU()
	if err != nil || !t.affinity.IsSet(cpu) {
		for cpu = 0; !t.affinity.IsSet(cpu) && cpu < 1024; cpu++ {
		}
	}
	t.group().cpu.Zero()
	t.group().cpu.Set(cpu)
	if err := unix.SchedSetaffinity(0, &t.group().cpu); err != nil {
		return err
	}
	return unix.SchedSetaffinity(t.tid, &t.group().cpu)
}

// currentCPU returns the number of the CPU the calling thread is on.
func currentCPU() (int, error) {
	var cpu uint32
	err := getcpuRaw(&cpu)
	return int(cpu), err
}

// launcherOptions are those of the launcher until its execve: its runtime
// makes threads of no interest.
const launcherOptions = ptrace.OptSysGood | ptrace.OptExec | ptrace.OptExit

// guestOptions are those of the recorded program.
const guestOptions = launcherOptions | ptrace.OptFork | ptrace.OptVfork | ptrace.OptClone

// options are the ptrace options of the recorded program.
func (s *session) options() uintptr {
	if s.opt.Vsyscall {
		return guestOptions | ptrace.OptSeccomp
	}
	return guestOptions
}
