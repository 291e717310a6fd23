package export

import "vplay/replay/x86"

// Allocations: what the functions of malloc's family are asked for. One that another of them calls is not counted.

// allocator is how a function allocates: from which of its arguments the bytes are known.
type allocator uint8

const (
	noAllocator  allocator = iota
	allocFirst             // malloc(size)
	allocProduct           // calloc(n, size)
	allocSecond            // memalign(alignment, size), realloc(block, size)
	allocThird             // posix_memalign(where, alignment, size)
	allocArray             // reallocarray(block, n, size)
	allocNone              // free(block)
)

// allocators are the functions, by name. Those of C++ call malloc.
var allocators = map[string]allocator{
	"malloc": allocFirst, "valloc": allocFirst, "pvalloc": allocFirst, "calloc": allocProduct, "realloc": allocSecond, "memalign": allocSecond, "aligned_alloc": allocSecond,
	"posix_memalign": allocThird, "reallocarray": allocArray, "free": allocNone, "cfree": allocNone,
	"__libc_malloc": allocFirst, "__libc_calloc": allocProduct, "__libc_realloc": allocSecond, "__libc_memalign": allocSecond, "__libc_free": allocNone,
	"__libc_reallocarray": allocArray, "__posix_memalign": allocThird,
}

// arguments are the first three integer arguments of a function.
type arguments [3]uint64

func argumentsOf(c *x86.CPU) arguments { return arguments{c.R[x86.RDI], c.R[x86.RSI], c.R[x86.RDX]} }

// bytes returns how many bytes are asked for; ok is false where that is none or more than there can be.
func (a allocator) bytes(args *arguments) (n uint64, ok bool) {
	const most = 1 << 47
	switch a {
	case allocFirst:
		n = args[0]
	case allocSecond:
		n = args[1]
	case allocThird:
		n = args[2]
	case allocProduct:
		n = product(args[0], args[1])
	case allocArray:
		n = product(args[1], args[2])
	case noAllocator, allocNone:
		return 0, false
	}
	return n, n < most
}

// product is a*b, or too large to be a size.
func product(a, b uint64) uint64 {
	if b != 0 && a > ^uint64(0)/b {
		return ^uint64(0)
	}
	return a * b
}
