//go:build ppc64 || s390x || mips || mips64

package x86

// Hosts of the other byte order: the generated loop accesses guest words as the
// host's own, so it is left out.

var defaultEngine Engine = StepEngine{}

func get64(p *[pageSize]byte, off uint64) uint64 { return le.Uint64(p[off:]) }

// runBlocks is the loop of run_gen.go.
func (c *CPU) runBlocks(*block, uint64) Exit { return c.execOne() }
