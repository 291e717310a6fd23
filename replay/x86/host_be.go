//go:build ppc64 || s390x || mips || mips64

package x86

// Guest words in host memory, on hosts of the other byte order.

func get16(p *[pageSize]byte, off uint64) uint16 { return le.Uint16(p[off:]) }
func get32(p *[pageSize]byte, off uint64) uint32 { return le.Uint32(p[off:]) }
func get64(p *[pageSize]byte, off uint64) uint64 { return le.Uint64(p[off:]) }

func put16(p *[pageSize]byte, off uint64, v uint16) { le.PutUint16(p[off:], v) }
func put32(p *[pageSize]byte, off uint64, v uint32) { le.PutUint32(p[off:], v) }
func put64(p *[pageSize]byte, off uint64, v uint64) { le.PutUint64(p[off:], v) }
