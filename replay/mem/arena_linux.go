package mem

import "syscall"

// What only Linux has for the arena's memory; what all Unix systems have is in
// arena_unix.go.

// preferHugePages asks for large pages behind b, whose pages are touched in no
// order. It is advice: where there are none, nothing is lost (madvise(2)).
func preferHugePages(b []byte) { _ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) }
