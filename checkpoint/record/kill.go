//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi"
)

// SIGKILL cannot be caught, and a program may send it to the recorder: to the process
// group that both are in, to every process, or to the recorder by number. The
// recorder sees that call at its entry, where both are still there, and writes the
// recording first.

// signalArg is which argument of a call that sends a signal is the signal.
var signalArg = map[int64]int{
	unix.SYS_KILL: 1, unix.SYS_TKILL: 1, unix.SYS_TGKILL: 2,
	unix.SYS_RT_SIGQUEUEINFO: 1, unix.SYS_RT_TGSIGQUEUEINFO: 2, unix.SYS_PIDFD_SEND_SIGNAL: 1,
}

// beforeKill ends the recording at the entry of a call that kills the recorder. A
// program that does not die of it runs on by itself, as it would without a recorder.
func (t *thread) beforeKill() (action, error) {
	arg, sends := signalArg[t.call.nr]
	if !sends || unix.Signal(t.call.args[arg]) != unix.SIGKILL {
		return action{}, nil
	}
	switch hit := t.proc.receivers(&t.call); {
	case !hit.recorder || !t.proc.mayKill():
		return action{}, nil
	case !hit.program:
		return action{}, t.giveUpAll("the program kills the recorder and runs on unrecorded")
	}
	if _, err := t.crash(int(unix.SIGKILL), nil, false); err != nil {
		return action{}, err
	}
	if err := t.session.finishNow(t.group(), "the program kills its process group, the recorder among it"); err != nil {
		return action{}, err
	}
	if t.session.result.Recorded && t.session.opt.Ended != nil {
		t.session.opt.Ended("the program kills its process group, the recorder among it", true)
	}
	return action{}, nil
}

// giveUpAll ends the recording of all processes at the entry of a call of the thread's, and has
// the file written before it lets them go.
func (t *thread) giveUpAll(reason string) error {
	if t.group().shares() {
		if err := t.splitOff(); err != nil {
			return err
		}
	}
	t.session.endEarly(reason)
	if err := errors.Join(t.group().stopAt(t, reason), t.session.finishNow(t.group(), reason)); err != nil {
		return err
	}
	return t.letProcessGo()
}

// finishNow ends the recording of the processes outside of g, lets them go, and has the file
// written.
func (s *session) finishNow(g *group, reason string) error {
	if !s.out.open() {
		reason = ""
	}
	if err := s.endOthers(g, reason); err != nil || !s.out.open() {
		return err
	}
	return s.finish()
}

// receivers says which of the two a signal goes to.
type receivers struct{ recorder, program bool }

// receivers returns who gets the signal that the call sends.
func (p *process) receivers(c *call) receivers {
	first := int(int32(c.args[0]))
	switch c.nr {
	case unix.SYS_TKILL: // A thread's number.
		to := p.session.threads[first]
		return receivers{isThreadOf(os.Getpid(), first), to != nil && to.proc == p}
	case unix.SYS_PIDFD_SEND_SIGNAL:
		const toGroup = 1 << 2 // PIDFD_SIGNAL_PROCESS_GROUP, linux/pidfd.h
		pid := p.pidBehind(first)
		if c.args[3]&toGroup != 0 {
			return p.inGroup(pid)
		}
		return p.own(pid)
	case unix.SYS_KILL:
		switch {
		case first == 0:
			return p.inGroup(p.pid)
		case first == -1: // All but the one that sends it and process 1 (man 2 kill).
			return receivers{recorder: unix.Getpid() != 1}
		case first < 0:
			return p.members(-first)
		}
	}
	return p.own(first)
}

func (p *process) own(pid int) receivers { return receivers{pid == unix.Getpid(), pid == p.pid} }

// group returns which of the two are in the process group of process pid.
func (p *process) inGroup(pid int) receivers {
	stat, ok := statOf(pid)
	if !ok {
		return receivers{}
	}
	return p.members(stat.Group)
}

// members returns which of the two are in process group id.
func (p *process) members(id int) receivers {
	stat, ok := statOf(p.pid)
	return receivers{id == unix.Getpgrp(), ok && id == stat.Group}
}

// pidBehind returns the process that a pidfd of the program stands for, 0 when it is
// none (man 2 pidfd_open).
func (p *process) pidBehind(fd int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", p.live, fd))
	if err != nil {
		return 0
	}
	return int(abi.ProcStatus(b).Number("Pid")) // lines of the same form
}

// isThreadOf reports whether a thread belongs to a process.
func isThreadOf(pid, tid int) bool {
	return unix.Access(fmt.Sprintf("/proc/%d/task/%d", pid, tid), unix.F_OK) == nil
}

// mayKill reports whether the program may send the recorder signals (man 2 kill).
func (p *process) mayKill() bool {
	const capKill = 5 // CAP_KILL, linux/capability.h
	status, err := statusOf(p.live)
	if err != nil || status.Mask("CapEff")>>capKill&1 != 0 {
		return err == nil
	}
	uid, _, saved := unix.Getresuid()
	ids := strings.Fields(status.Field("Uid")) // real, effective, saved, of the file system
	for _, id := range ids[:min(2, len(ids))] {
		if id == fmt.Sprint(uid) || id == fmt.Sprint(saved) {
			return true
		}
	}
	return false
}
