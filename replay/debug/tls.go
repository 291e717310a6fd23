package debug

import (
	"vplay/loader/image"
)

// TLSAddress implements api.TLSTarget.
func (g *Cursor) TLSAddress(_ int, offset, lm uint64) (uint64, error) {
	block, err := image.TLSBlock(g.maps(), Memory{g.mem()}, g.state().FSBase, lm)
	return block + offset, err
}
