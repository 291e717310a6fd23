package main

import "vplay/loader"

// TLSAddress implements gdbstub.TLSTarget.
func (g *target) TLSAddress(_ int, offset, lm uint64) (uint64, error) {
	block, err := loader.TLSBlock(g.maps(), guest{g.mem()}, g.state().FSBase, lm)
	return block + offset, err
}
