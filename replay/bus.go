package replay

import (
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// The processor's way to memory: each call and each fault in the terms of the other
// package. There is no behaviour here beyond that translation.

// bus joins the processor to the address space: neither package knows the
// other. It is on slow paths only; the processor keeps page pointers.
type bus struct{ s *mem.Space }

var accessOf = [...]mem.Access{x86.Load: mem.Load, x86.Store: mem.Store, x86.Exec: mem.Exec}

var faultOf = [...]x86.FaultKind{
	mem.FaultNone:        x86.FaultNone,
	mem.FaultNotMapped:   x86.FaultNotMapped,
	mem.FaultProtection:  x86.FaultProtection,
	mem.FaultNotCaptured: x86.FaultNotCaptured,
	mem.FaultBeyondEOF:   x86.FaultBeyondEOF,
	mem.FaultNonCanon:    x86.FaultNonCanon,
}

var accessBack = [...]x86.Access{mem.Load: x86.Load, mem.Store: x86.Store, mem.Exec: x86.Exec}

func fault(f mem.Fault) x86.Fault {
	return x86.Fault{Kind: faultOf[f.Kind], Access: accessBack[f.Access], Addr: f.Addr}
}

func (b bus) Translate(a uint64, k x86.Access) (*[4096]byte, bool) {
	return b.s.Translate(a, accessOf[k])
}

func (b bus) Read(a uint64, p []byte) x86.Fault  { return fault(b.s.Read(a, p)) }
func (b bus) Write(a uint64, p []byte) x86.Fault { return fault(b.s.Write(a, p)) }

func (b bus) Probe(a uint64, n int, k x86.Access) x86.Fault {
	return fault(b.s.Probe(a, n, accessOf[k]))
}

func (b bus) Fetch(a uint64, p []byte) (int, x86.Fault) {
	n, f := b.s.Fetch(a, p)
	return n, fault(f)
}

// Peek implements x86.PeekBus.
func (b bus) Peek(a uint64, p []byte) int {
	n, _ := b.s.Peek(a, p)
	return n
}

// FlushesCode: a store to a page of code flushes it by Space.OnFlush.
func (b bus) FlushesCode() {}

// PartialPage says which bytes of a page the processor may access directly. Accesses to unknown bytes' neighbours are counted.
func (b bus) PartialPage(a uint64, k x86.Access) x86.PartialPage {
	page, plain, unknown := b.s.PartialPage(a, accessOf[k])
	return x86.PartialPage{Page: page, Plain: (*[512]byte)(plain), Counted: unknown}
}

// CountPartial adds accesses that the processor made there.
func (b bus) CountPartial(n uint64) { b.s.PartialAccesses += n }

// Mapping says where pages are in the arena's file.
func (b bus) Mapping(a uint64, k x86.Access) (x86.Mapping, bool) {
	m, ok := b.s.Mapping(a, accessOf[k])
	return x86.Mapping(m), ok
}

// MappedFile returns the arena's file.
func (b bus) MappedFile() (fd int, ok bool) { return b.s.MappedFile() }

func (b bus) CodeID(a uint64) uint64 { return b.s.CodeID(a) }
