package abi

import "math"

// A call that writes to buffers it finds through memory, a vector of buffers or a message's
// parts, may write over what names them: the vector lies in one of its buffers. So what names
// them is to be read before the call.

// scatters are the calls that find buffers in memory in which they write.
var scatters = map[int64]bool{
	SYS_READV: true, SYS_PREADV: true, SYS_PREADV2: true, SYS_PROCESS_VM_READV: true,
	SYS_VMSPLICE: true, SYS_RECVMSG: true, SYS_RECVMMSG: true,
}

// Blocks returns what memory m holds, at a call's entry, of the vectors and the headers of
// messages that say where the call may write; nil for a call that is told by its arguments
// alone. After the call NewOverlay makes of it the memory that OutputsBy wants.
func Blocks(m Memory, nr int64, args [6]uint64) []Write {
	if !scatters[nr] {
		return nil
	}
	k := wordKeeper{m: m}
	// As if all buffers had been filled. The ranges are not wanted.
	_, _ = Outputs(nil, &k, nr, args, math.MaxInt32)
	return k.words
}

// wordKeeper is a memory that keeps the words that are read: buffers are looked at, if at all,
// in other pieces.
type wordKeeper struct {
	m     Memory
	words []Write
}

// ReadAt implements Memory.
func (k *wordKeeper) ReadAt(addr uint64, b []byte) int {
	n := k.m.ReadAt(addr, b)
	if n == len(b) && (n == 4 || n == 8) {
		k.words = append(k.words, Write{addr, append([]byte(nil), b...)})
	}
	return n
}

// Writable implements Hints: all of it, so that no buffer is looked at.
func (k *wordKeeper) Writable(uint64, uint64) bool { return true }

// Datagram implements Hints.
func (k *wordKeeper) Datagram(int32) bool { return true }
