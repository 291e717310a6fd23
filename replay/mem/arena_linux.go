package mem

import "syscall"

// preferHugePages asks for large pages behind b, whose pages are touched in no
// order. It is advice: where there are none, nothing is lost (madvise(2)).
func preferHugePages(b []byte) { _ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) }
