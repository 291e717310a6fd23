//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// How the threads of a running program are seized and stopped. None of them is changed before
// all are stopped and nothing speaks against recording them. Until then they can simply be let
// go.

// seized is a thread on its way into the recording.
type seized struct {
	tid     int
	stopped bool
	regs    ptrace.Regs
	jobStop bool         // job control has stopped it
	held    []heldSignal // that were about to be delivered
}

// seizeProgram seizes all threads of a process, and returns the first.
func (s *session) seizeProgram(pid int) (*thread, error) {
	list, err := seizeAll(pid)
	for _, z := range list {
		if err == nil {
			err = z.recordable()
		}
	}
	if err != nil {
		for _, z := range list {
			z.letGo(pid)
		}
		return nil, attachError(pid, err)
	}
	return s.adopt(pid, list)
}

// seizeAll seizes the threads of a process, and those that they make meanwhile, until all are
// stopped. The first is the process's first. With an error the list has those that are seized.
func seizeAll(pid int) ([]*seized, error) {
	var list []*seized
	known := map[int]bool{}
	for {
		tids, err := tasksOf(pid)
		if err != nil {
			return list, err
		}
		before := len(list)
		for _, tid := range tids {
			if known[tid] {
				continue
			}
			switch err := ptrace.Seize(tid, ptrace.OptSysGood); {
			case err == nil:
				known[tid] = true
				list = append(list, &seized{tid: tid})
			case tid != pid && (errors.Is(err, unix.ESRCH) || hasEnded(tid)):
			default:
				return list, err
			}
		}
		if len(list) == before {
			return list, nil
		}
		if list, err = stopAll(pid, list); err != nil {
			return list, err
		}
	}
}

// tasksOf returns the threads of a process, the first one first.
func tasksOf(pid int) ([]int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	tids := []int{pid}
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil && tid != pid {
			tids = append(tids, tid)
		}
	}
	return tids, nil
}

// hasEnded reports whether a thread has ended: the kernel refuses to trace it then.
func hasEnded(tid int) bool {
	switch stateOf(tid) {
	case 0, 'Z', 'X':
		return true
	}
	return false
}

// awaitLimit is how long the threads may take to stop.
const awaitLimit = 10 * time.Second

// stopAll stops the seized threads that are not stopped yet, and returns those that live.
func stopAll(pid int, list []*seized) ([]*seized, error) {
	for _, z := range list {
		if !z.stopped {
			_ = ptrace.Interrupt(z.tid) // it fails only for one that has gone
		}
	}
	for end := time.Now().Add(awaitLimit); ; time.Sleep(200 * time.Microsecond) {
		waits := 0
		for i := 0; i < len(list); i++ {
			z := list[i]
			alive, err := z.await()
			if err != nil {
				return list, err
			}
			switch {
			case !alive && z.tid == pid:
				return slices.Delete(list, i, i+1), errGone
			case !alive:
				list = slices.Delete(list, i, i+1)
				i--
			case !z.stopped:
				waits = z.tid
			}
		}
		if waits == 0 {
			return list, nil
		}
		if time.Now().After(end) {
			return list, &refusal{
				fmt.Sprintf("thread %d does not stop: it waits in the kernel for what no signal ends", waits),
				"a thread that waits for a child of vfork(2), or for a disk or network file system that hangs, can be recorded only when that is over",
			}
		}
	}
}

// await looks whether the thread has come to the stop that it is to come to. It reports whether
// it lives.
func (z *seized) await() (alive bool, err error) {
	for !z.stopped {
		ws, ok := ptrace.Poll(z.tid)
		switch {
		case !ok:
			return stateOf(z.tid) != 0, nil
		case !ws.Stopped():
			return false, nil
		case ptrace.Event(ws) == ptrace.EventStop:
			z.stopped, z.jobStop = true, ptrace.StopSignal(ws) != unix.SIGTRAP
			return true, ptrace.GetRegs(z.tid, &z.regs)
		}
		if sig := signalOf(ws); sig != 0 {
			z.hold(sig)
		}
		if err := stillThere(ptrace.Resume(z.tid, ptrace.Cont, 0)); err != nil {
			return true, err
		}
	}
	return true, nil
}

// hold keeps a signal at whose delivery the thread is. An instruction that has caused one is
// executed again, and causes it again.
func (z *seized) hold(sig int) {
	var si ptrace.Siginfo
	if ptrace.GetSiginfo(z.tid, &si) == nil && !isFault(sig, &si) {
		z.held = append(z.held, heldSignal{sig, si})
	}
}

// letGo lets a thread go that was not changed.
func (z *seized) letGo(pid int) {
	if !z.stopped {
		return // with the tracer's thread
	}
	for i := range z.held {
		sendAs(pid, z.tid, &z.held[i])
	}
	_ = ptrace.Resume(z.tid, ptrace.Detach, 0) // likewise
}

// adopt makes the seized threads those of a process that is recorded, and returns the first.
func (s *session) adopt(pid int, list []*seized) (*thread, error) {
	first := s.newThread(pid)
	g := first.group()
	cpu, err := currentCPU()
	if err != nil {
		return nil, err
	}
	g.cpu.Zero()
	g.cpu.Set(cpu)
	if err := unix.SchedSetaffinity(0, &g.cpu); err != nil {
		return nil, err
	}
	for _, z := range list {
		t := first
		if z.tid != pid {
			t = &thread{session: s, proc: first.proc, tid: z.tid}
			s.threads[z.tid] = t
			g.turns.threads = append(g.turns.threads, t)
			g.turns.ready = append(g.turns.ready, t)
			s.result.Stats.Threads++
		}
		s.scheduler.started(t.tid, time.Now())
		t.call.mem = callMem{t.proc}
		t.regs, t.sig.held, t.jobStopped = z.regs, z.held, z.jobStop
		t.readName()
		if err := unix.SchedGetaffinity(t.tid, &t.affinity); err != nil {
			return nil, err
		}
		t.note()
		if err := unix.SchedSetaffinity(t.tid, &g.cpu); err != nil {
			return nil, err
		}
	}
	return first, nil
}
