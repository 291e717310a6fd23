package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The command of --trigger. It runs in a process group of its own, so that the terminal's Ctrl-C, which is
// the program's, does not reach it, and so that all that it has started ends with it. It gets none of the
// descriptors that are the program's: whoever waits for the end of a pipe must not wait for it.

// commandLimit is how long the command may run, commandDrain how long its output may stay open behind it.
const (
	commandLimit = 10 * time.Second
	commandDrain = time.Second
)

// answer is what a run of the command says.
type answer uint8

const (
	noAnswer answer = iota // it was killed, or could not be started
	noFault
	aFault
)

// alarm decides when a fault gives a recording: once, until the command has said that it is over.
type alarm struct{ rings bool }

// asks reports whether a recording is asked for.
func (a *alarm) asks(says answer) bool {
	if says == noFault {
		a.rings = false
	}
	return says == aFault && !a.rings
}

// watch runs the command until ctx ends.
func (g *triggers) watch(ctx context.Context, pid int) {
	runtime.LockOSThread() // the command is killed when this thread ends, should the recorder be killed
	ownSlack()
	var a alarm
	for {
		if a.asks(g.probe(ctx, pid)) {
			_, err := g.take("trigger")
			a.rings = !mayRetry(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(g.flags.every):
		}
	}
}

// probe runs the command once.
func (g *triggers) probe(ctx context.Context, pid int) answer {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	var out head
	cmd := exec.Command("/bin/sh", "-c", g.flags.command)
	cmd.Env = append(os.Environ(), "VPLAY_PID="+strconv.Itoa(pid))
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.ExtraFiles = make([]*os.File, highestPassedOn()) // closed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = commandDrain
	if err := cmd.Start(); err != nil {
		g.log.Warn().Err(err).Msg("the command of --trigger cannot be run")
		return noAnswer
	}
	ended := make(chan struct{})
	go func() { awaitEnd(cmd.Process.Pid); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // the number is the group's until the next line
	_ = cmd.Wait()                                // its state says how
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		g.log.Warn().Str("output", out.String()).Msgf("the command of --trigger was killed after %v", commandLimit)
		return noAnswer
	case err != nil:
		return noAnswer // the recording has ended
	}
	return g.says(cmd.ProcessState.ExitCode(), out.String())
}

// says logs how the command ended, and what it wrote, and returns its answer.
func (g *triggers) says(code int, output string) answer {
	const notExecutable, notFound = 126, 127 // of sh
	level := g.log.Info()
	if code == notExecutable || code == notFound {
		level = g.log.Warn()
	}
	level.Int("status", code).Str("output", output).Msg("the command of --trigger has ended")
	if code == 0 {
		return aFault
	}
	return noFault
}

// awaitEnd waits until a child has ended, and leaves it to be waited for.
func awaitEnd(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// highestPassedOn returns how many descriptors behind standard error there are at most that programs that are
// executed would get.
func highestPassedOn() int {
	const first = 3
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range open {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < first {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			n = max(n, fd-first+1)
		}
	}
	return n
}

// maxOutput bounds what is logged of one run, in bytes.
const maxOutput = 4096

// head keeps the beginning of what is written to it.
type head struct{ b []byte }

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), maxOutput-len(h.b))]...)
	return len(p), nil
}

// String returns it.
func (h *head) String() string { return strings.TrimRight(string(h.b), "\n") }
