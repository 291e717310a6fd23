package agent

// Words of the block that the agent and the supervisor use at the same time.

import (
	"sync/atomic"
	"unsafe"
)

// word returns a word of the block, which the agent reads and writes at the same time.
func (s Shared) word(offset int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&s[Block+offset])) // mappings begin at a page, and words are aligned
}
