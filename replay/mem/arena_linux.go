package mem

import "syscall"

// What only Linux has for the arena's memory; what all Unix systems have is in
// arena_unix.go.

// refuseHugePages has the kernel give b a page at a time: a large one is cleared
// as a whole at the first touch, which nothing interrupts (RATIONALE.md).
func refuseHugePages(b []byte) { _ = syscall.Madvise(b, syscall.MADV_NOHUGEPAGE) }

// madvPopulateWrite is MADV_POPULATE_WRITE of Linux's include/uapi/asm-generic/mman-common.h
// (5.14); a kernel without it gives each page at its first touch.
const madvPopulateWrite = 23

// touch has the kernel give the pages of b now, in half the time that a fault for each takes.
func touch(b []byte) { _ = syscall.Madvise(b, madvPopulateWrite) }
