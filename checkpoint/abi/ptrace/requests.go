//go:build linux && amd64

package ptrace

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Numbers and types of ptrace(2), as in include/uapi/linux/ptrace.h, and functions that
// take a siginfo_t or a wait status apart. Nothing here makes a call: ptrace_unsafe.go
// does.

// A Request is a ptrace request that resumes a stopped thread, or that waits with it.
type Request int

// Requests for Resume: include/uapi/linux/ptrace.h and, for the last one,
// arch/x86/include/uapi/asm/ptrace-abi.h.
const (
	Cont             Request = unix.PTRACE_CONT
	Syscall          Request = unix.PTRACE_SYSCALL    // up to the next system call's entry or exit
	SingleStep       Request = unix.PTRACE_SINGLESTEP // one instruction
	Listen           Request = 0x4208                 // stays stopped by job control, and reports its end
	Detach           Request = unix.PTRACE_DETACH
	SysemuSingleStep Request = 32 // one instruction; a system call is entered and not made
)

// Other requests that x/sys/unix lacks.
const (
	reqSyscallInfo = 0x420e
	reqGetSigmask  = 0x420a
	reqSetSigmask  = 0x420b
	reqPeekSiginfo = 0x4209
	reqSetDispatch = 0x4210
	reqGetDispatch = 0x4211
	reqGetRseq     = 0x420f
	peekShared     = 1

	ntX86XState = 0x202 // include/uapi/linux/elf.h
)

// Options for Seize and SetOptions.
const (
	OptSysGood  = 0x1 // system call stops differ from SIGTRAP
	OptFork     = 0x2
	OptVfork    = 0x4
	OptClone    = 0x8
	OptExec     = 0x10
	OptExit     = 0x40
	OptSeccomp  = 0x80
	OptExitKill = 0x100000 // the tracer's end is the thread's
)

// UserDispatch is SYS_USER_DISPATCH of asm-generic/siginfo.h: the code of the SIGSYS with which
// a thread stops at a call that SetDispatch does not let through.
const UserDispatch = 2

// EventStop is PTRACE_EVENT_STOP, which x/sys/unix lacks: a stop by job control, by
// Interrupt, or of a new thread.
const EventStop = 128

// SyscallTrap is the stop signal of a system call stop under OptSysGood.
const SyscallTrap = unix.SIGTRAP | 0x80

// Rseq is the kernel's struct ptrace_rseq_configuration: where a thread has registered its
// struct rseq (man 2 rseq). Area is 0 where it has none.
type Rseq struct {
	Area      uint64
	Size      uint32
	Signature uint32
	flags     uint32
	_         uint32
}

// Dispatch is the kernel's struct ptrace_sud_config: which system calls of a thread are dispatched to a handler.
type Dispatch struct{ mode, selector, offset, length uint64 }

// On reports whether some are.
func (d *Dispatch) On() bool { return d.mode != 0 }

// In reports whether the code whose calls are let through is inside of size bytes at start.
func (d *Dispatch) In(start, size uint64) bool {
	return d.offset >= start && d.offset-start < size && d.length <= size-(d.offset-start)
}

// Regs is the kernel's user_regs_struct.
type Regs = unix.PtraceRegs

// XStateMax bounds the XSAVE image, in bytes: AMX included it is about 11 KiB.
const XStateMax = 16 << 10

// Siginfo is the kernel's siginfo_t.
type Siginfo [128]byte

// Signo returns the signal.
func (s *Siginfo) Signo() int32 { return int32(binary.LittleEndian.Uint32(s[0:])) }

// Code returns si_code: above 0 the kernel made the signal.
func (s *Siginfo) Code() int32 { return int32(binary.LittleEndian.Uint32(s[8:])) }

// PID returns the sender of a signal that a process sent.
func (s *Siginfo) PID() int32 { return int32(binary.LittleEndian.Uint32(s[16:])) }

// Addr returns the address of a fault.
func (s *Siginfo) Addr() uint64 { return binary.LittleEndian.Uint64(s[16:]) }

// StopSignal and Event take a wait status of a stopped thread apart: the stop
// signal, SyscallTrap among them, and the event (PTRACE_EVENT_...), 0 for none.
func StopSignal(ws unix.WaitStatus) unix.Signal { return unix.Signal(ws >> 8 & 0xff) }

// Event returns the event of a wait status; see StopSignal.
func Event(ws unix.WaitStatus) int { return int(ws>>16) & 0xff }
