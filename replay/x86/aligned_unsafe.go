package x86

import "unsafe"

// Where pages may begin in the host's memory: what is aligned in the guest must be
// aligned there, for code that accesses it directly.

// pageAlign is what the addresses of pages must be multiples of: a cache line, and as
// much as the widest aligned access asks for.
const pageAlign = 64

// aligned reports whether p begins where a page may; see Bus.Translate.
func aligned(p *[pageSize]byte) bool { return uintptr(unsafe.Pointer(p))%pageAlign == 0 }
