//go:build linux && amd64

package record

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Instructions and a system call that tell about the CPU that the recorder runs on. The
// instructions are in cpu_amd64.s; what is made of the answers is in cpu.go and
// traps.go.

// rdtsc and cpuid are in cpu_amd64.s.
func rdtsc() uint64
func cpuid(leaf, sub uint32) (a, b, c, d uint32)
func xgetbv() uint64
func rdtscpAux() uint32
func getcpuRaw(cpu *uint32) error {
	_, _, e := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(cpu)), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}
