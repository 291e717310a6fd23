//go:build linux && amd64

package jit

import (
	"fmt"
	"syscall"
	"unsafe"

	"vplay/replay/x86"
)

// Signals in generated code. A mistake of the translator may fault, and Go's runtime would
// end the process: it takes the stack pointer for a goroutine's. So SIGSEGV, SIGBUS, SIGFPE and
// SIGILL come here first (onSignal); what generated code did not cause goes on to the runtime.

// What onSignal looks at.
var (
	codeFrom, codeTo uintptr     // where generated code is
	faultExit        uintptr     // where it goes on
	faultOffset      uintptr     // of wordFault, from the beginning of the CPU
	chained          [32]uintptr // the handlers that were there, by signal
)

// enter executes the code at code.
//
//go:noescape
func enter(code uintptr, cpu *x86.CPU)

func handlerAddress() uintptr

func cpuid(leaf uint32) (a, b, c, d uint32)

// sigaction is the kernel's (linux arch/x86/include/uapi/asm/signal.h).
type sigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

// handleSignals has onSignal called for what p's code causes.
func (p *Pool) handleSignals() error {
	codeFrom, codeTo = p.address(0), p.address(len(p.rx))
	faultExit = p.address(p.fault)
	faultOffset = uintptr(x86.Layout().Host) + 8*wordFault
	for _, sig := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL} {
		var a sigaction
		if err := a.call(sig, false); err != nil {
			return err
		}
		if a.handler == handlerAddress() {
			continue
		}
		chained[sig] = a.handler
		a.handler = handlerAddress()
		if err := a.call(sig, true); err != nil {
			return err
		}
	}
	return nil
}

// call asks for the action of sig, or sets it.
func (a *sigaction) call(sig syscall.Signal, set bool) error {
	var errno syscall.Errno
	if set {
		_, _, errno = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(a)), 0, 8, 0, 0)
	} else {
		_, _, errno = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(a)), 8, 0, 0)
	}
	if errno != 0 {
		return fmt.Errorf("rt_sigaction: %w", errno)
	}
	return nil
}
