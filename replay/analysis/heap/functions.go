package heap

import (
	"maps"
	"slices"
)

// The functions that are followed, by name.

// role says what a function does; size are the arguments whose product is how many bytes are asked for.
type role struct {
	frees    bool // the block of argument 0
	resizes  bool // the block of argument 0 becomes the result
	size     []int8
	toMemory bool // the address is stored where argument 0 points to; the result is an error
	tells    bool // the result is how many bytes of the block of argument 0 may be used
	isC      bool // one of the C library's, so that the module it is in is the allocator
}

var roles = map[string]role{
	"malloc":         {size: []int8{0}, isC: true},
	"valloc":         {size: []int8{0}, isC: true},
	"pvalloc":        {size: []int8{0}, isC: true},
	"calloc":         {size: []int8{0, 1}, isC: true},
	"realloc":        {size: []int8{1}, resizes: true, isC: true},
	"reallocarray":   {size: []int8{1, 2}, resizes: true, isC: true},
	"aligned_alloc":  {size: []int8{1}, isC: true},
	"memalign":       {size: []int8{1}, isC: true},
	"posix_memalign": {size: []int8{2}, toMemory: true, isC: true},

	"_Znwm": {size: []int8{0}}, "_Znam": {size: []int8{0}},
	"_ZnwmRKSt9nothrow_t": {size: []int8{0}}, "_ZnamRKSt9nothrow_t": {size: []int8{0}},
	"_ZnwmSt11align_val_t": {size: []int8{0}}, "_ZnamSt11align_val_t": {size: []int8{0}},
	"_ZnwmSt11align_val_tRKSt9nothrow_t": {size: []int8{0}}, "_ZnamSt11align_val_tRKSt9nothrow_t": {size: []int8{0}},

	"free": {frees: true, isC: true}, "cfree": {frees: true, isC: true},
	"_ZdlPv": {frees: true}, "_ZdaPv": {frees: true}, "_ZdlPvm": {frees: true}, "_ZdaPvm": {frees: true},
	"_ZdlPvRKSt9nothrow_t": {frees: true}, "_ZdaPvRKSt9nothrow_t": {frees: true},
	"_ZdlPvSt11align_val_t": {frees: true}, "_ZdaPvSt11align_val_t": {frees: true},
	"_ZdlPvmSt11align_val_t": {frees: true}, "_ZdaPvmSt11align_val_t": {frees: true},

	"malloc_usable_size": {tells: true},
	// These look at lists, or give memory back, and neither give a block nor take one.
	"malloc_trim": {}, "malloc_stats": {}, "malloc_info": {}, "mallinfo": {}, "mallinfo2": {}, "mallopt": {},
	"__libc_freeres": {},
}

// Functions returns the names of the functions whose calls and returns a Tracker is to be told of. Of two that are one function
// in glibc, the usual name comes first: free and cfree, memalign and aligned_alloc.
func Functions() []string {
	names := slices.Sorted(maps.Keys(roles))
	slices.Reverse(names)
	return names
}

// Readable returns the name of one of Functions as a C++ programmer writes it.
func Readable(name string) string {
	switch {
	case len(name) < 4:
	case name[:4] == "_Znw":
		return "operator new"
	case name[:4] == "_Zna":
		return "operator new[]"
	case name[:4] == "_Zdl":
		return "operator delete"
	case name[:4] == "_Zda":
		return "operator delete[]"
	}
	return name
}

// blockSize returns how many bytes a call has asked for.
func (r *role) blockSize(args *[6]uint64) uint64 {
	n := uint64(1)
	for _, i := range r.size {
		n *= args[i] // a product that is too large gives no block
	}
	return n
}
