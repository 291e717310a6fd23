package heap

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"

	"vplay/replay/mem"
	"vplay/replay/observe"
)

// The functions that are followed, by name.

// Function is what a function of malloc's family does.
type Function struct {
	Frees    bool   // the block of argument 0
	Resizes  bool   // the block of argument 0 becomes the result
	ToMemory bool   // the address is stored where argument 0 points to; the result is an error
	size     []int8 // the arguments whose product is how many bytes are asked for
	tells    bool   // the result is how many bytes of the block of argument 0 may be used
	isC      bool   // one of the C library's, so that the module it is in is the allocator
}

var functions = map[string]Function{
	"malloc":         {size: []int8{0}, isC: true},
	"valloc":         {size: []int8{0}, isC: true},
	"pvalloc":        {size: []int8{0}, isC: true},
	"calloc":         {size: []int8{0, 1}, isC: true},
	"realloc":        {size: []int8{1}, Resizes: true, isC: true},
	"reallocarray":   {size: []int8{1, 2}, Resizes: true, isC: true},
	"aligned_alloc":  {size: []int8{1}, isC: true},
	"memalign":       {size: []int8{1}, isC: true},
	"posix_memalign": {size: []int8{2}, ToMemory: true, isC: true},

	"_Znwm": {size: []int8{0}}, "_Znam": {size: []int8{0}},
	"_ZnwmRKSt9nothrow_t": {size: []int8{0}}, "_ZnamRKSt9nothrow_t": {size: []int8{0}},
	"_ZnwmSt11align_val_t": {size: []int8{0}}, "_ZnamSt11align_val_t": {size: []int8{0}},
	"_ZnwmSt11align_val_tRKSt9nothrow_t": {size: []int8{0}}, "_ZnamSt11align_val_tRKSt9nothrow_t": {size: []int8{0}},

	"free": {Frees: true, isC: true}, "cfree": {Frees: true, isC: true},
	"_ZdlPv": {Frees: true}, "_ZdaPv": {Frees: true}, "_ZdlPvm": {Frees: true}, "_ZdaPvm": {Frees: true},
	"_ZdlPvRKSt9nothrow_t": {Frees: true}, "_ZdaPvRKSt9nothrow_t": {Frees: true},
	"_ZdlPvSt11align_val_t": {Frees: true}, "_ZdaPvSt11align_val_t": {Frees: true},
	"_ZdlPvmSt11align_val_t": {Frees: true}, "_ZdaPvmSt11align_val_t": {Frees: true},

	"malloc_usable_size": {tells: true},
	// These look at lists, or give memory back, and neither give a block nor take one.
	"malloc_trim": {}, "malloc_stats": {}, "malloc_info": {}, "mallinfo": {}, "mallinfo2": {}, "mallopt": {},
	"__libc_freeres": {},
}

// Functions returns the names of the functions whose calls and returns a Tracker is to be told of. Of two that are one function
// in glibc, the usual name comes first: free and cfree, memalign and aligned_alloc.
func Functions() []string {
	names := slices.Sorted(maps.Keys(functions))
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

// Allocators returns the C library's functions that give, take or resize blocks, by name.
func Allocators() map[string]*Function {
	out := map[string]*Function{}
	for name, f := range functions {
		if f.isC {
			out[name] = &f
		}
	}
	return out
}

// News returns the names of C++'s operators new, which take their blocks from the C library's functions as a rule.
func News() (names []string) {
	for name, f := range functions {
		if !f.isC && len(f.size) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Asked returns how many bytes a call with these first arguments asks for. ok is false where it asks for none, or for
// more than there can be.
// Preconditions: there are three arguments.
func (f *Function) Asked(args []uint64) (n uint64, ok bool) {
	if len(f.size) == 0 {
		return 0, false
	}
	n = 1
	for _, i := range f.size {
		hi, lo := bits.Mul64(n, args[i])
		if n = lo; hi != 0 {
			return ^uint64(0), false
		}
	}
	return n, n < mem.MaxUser
}

// Block returns the block that a call with these first arguments has made, whose result is given, for v behind its return: the result, or what
// the call has stored. ok is false where it says that it has failed, or that cannot be read.
func (f *Function) Block(v *observe.View, args []uint64, result uint64) (addr uint64, ok bool) {
	if !f.ToMemory {
		return result, true
	}
	var b [8]byte
	if uint32(result) != 0 || v.ReadMemory(args[0], b[:]) < len(b) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}
