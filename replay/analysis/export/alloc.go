package export

import (
	"vplay/replay/analysis/heap"
	"vplay/replay/x86"
)

// Allocations: what the functions of malloc's family are asked for. One that another of them calls is not counted, and those of
// C++ call malloc.

// allocators are the functions, by name, glibc's own names included.
var allocators = func() map[string]*heap.Function {
	out := heap.Allocators()
	for name, own := range map[string]string{
		"malloc": "__libc_malloc", "calloc": "__libc_calloc", "realloc": "__libc_realloc", "memalign": "__libc_memalign", "free": "__libc_free",
		"reallocarray": "__libc_reallocarray", "posix_memalign": "__posix_memalign",
	} {
		out[own] = out[name]
	}
	return out
}()

// arguments are the first three integer arguments of a function.
type arguments [3]uint64

func argumentsOf(c *x86.CPU) arguments { return arguments{c.R[x86.RDI], c.R[x86.RSI], c.R[x86.RDX]} }
