package debug

import (
	"vplay/loader/image"
)

// Addresses of thread-local variables for servers that ask by link_map. How they are
// found is in loader/image/tls.go.

// TLSAddress implements api.TLSTarget.
func (g *Cursor) TLSAddress(tid int, offset, lm uint64) (uint64, error) {
	st, err := g.threadState(tid)
	if err != nil {
		return 0, err
	}
	block, err := image.TLSBlock(g.maps(), Memory{g.mem()}, st.FSBase, lm)
	return block + offset, err
}
