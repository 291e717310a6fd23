package heap

import (
	"encoding/binary"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/observe"
)

// What a system call reads and writes, by its row in the table of abi. The recording has what the kernel wrote, and
// nothing of what it read. A buffer is asked about as a whole when the call begins, as memcheck does: what
// it is for is known then, and a program that names too large a buffer has a bug even if less comes in.

// kernelRange is memory that a system call may access.
type kernelRange struct {
	span
	store bool
}

// maxKernelString is the length of the longest string that the kernel takes (linux PATH_MAX, limits.h).
const maxKernelString = 4096

// kernelRanges returns the memory that the call of an enter event may access by its arguments.
func kernelRanges(v *observe.View, e *checkpoint.Event) (out []kernelRange) {
	s, ok := abi.Lookup(e.NR)
	if !ok {
		return nil
	}
	for i := range s.Args {
		a, at := &s.Args[i], e.Args[i]
		if at == 0 || !a.Kind.IsAddr() {
			continue
		}
		n := uint64(0)
		switch a.Kind {
		case abi.KindIn, abi.KindOut, abi.KindInOut:
			n = elements(a, &e.Args) * uint64(a.Size)
		case abi.KindSockIn:
			n = e.Args[a.Of]
		case abi.KindPath, abi.KindStr:
			x := text{v: v, at: at, unit: 1}
			out = append(out, kernelRange{span: x.until(maxKernelString, isNUL)})
			continue
		case abi.KindIovIn, abi.KindIovOut:
			out = append(out, vector(v, at, min(e.Args[a.Of], abi.MaxIov), a.Kind == abi.KindIovOut)...)
			continue
		default: // It is not known what there is.
			continue
		}
		n = min(n, abi.MaxOutput)
		if s.Irregular && a.Kind != abi.KindIn && a.Kind != abi.KindSockIn {
			continue // what it writes is seen when it does
		}
		if a.Kind != abi.KindOut {
			out = append(out, kernelRange{span{at, at + n}, false})
		}
		if a.Kind == abi.KindOut || a.Kind == abi.KindInOut {
			out = append(out, kernelRange{span{at, at + n}, true})
		}
	}
	return out
}

// elements returns how many elements an argument has.
func elements(a *abi.Arg, args *[6]uint64) uint64 {
	switch a.Len {
	case abi.LenN:
		return uint64(a.N)
	case abi.LenArg, abi.LenRet:
		return min(args[a.Of], abi.MaxOutput)
	default:
		return 1
	}
}

// vector returns the buffers of a vector of iovec, and the vector.
func vector(v *observe.View, at, n uint64, store bool) []kernelRange {
	const size = 16
	out := []kernelRange{{span{at, at + n*size}, false}}
	b := make([]byte, n*size)
	for b = b[:v.ReadMemory(at, b)]; len(b) >= size; b = b[size:] {
		start, length := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		out = append(out, kernelRange{span{start, start + min(length, abi.MaxOutput)}, store})
	}
	return out
}
