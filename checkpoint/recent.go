package checkpoint

import (
	"bytes"
	"hash/maphash"
	"sync"
)

// PageHasher gives pages their references and remembers the contents that came lately:
// programs fill memory with pages that are the same, and SHA-256 is most of what such a
// page costs. It is safe for concurrent use.
type PageHasher struct {
	seed maphash.Seed

	mu    sync.Mutex
	last  *recentPage // one of the slots
	slots [64]*recentPage
}

type recentPage struct {
	sum     uint64
	ref     PageRef
	content [PageSize]byte
}

// NewPageHasher returns one that remembers nothing yet.
func NewPageHasher() *PageHasher { return &PageHasher{seed: maphash.MakeSeed()} }

// Ref returns the reference of a page's content, as [RefOf] does. page has PageSize bytes
// and is not kept.
func (h *PageHasher) Ref(page []byte) PageRef {
	if isZeroPage(page) {
		return PageRef{Kind: PageZero}
	}
	if ref, ok := h.again(page); ok {
		return ref
	}
	sum := maphash.Bytes(h.seed, page)
	slot := &h.slots[sum%uint64(len(h.slots))]
	if ref, ok := h.known(slot, sum, page); ok {
		return ref
	}
	ref := PageRef{Kind: PageFull, Hash: cutHash(page)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if *slot == nil {
		*slot = &recentPage{}
	}
	p := *slot
	p.sum, p.ref = sum, ref
	copy(p.content[:], page)
	h.last = p
	return ref
}

// again returns the reference of a page that is the same as the one before it: that
// costs less to see than to look it up.
func (h *PageHasher) again(page []byte) (PageRef, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil || !bytes.Equal(h.last.content[:], page) {
		return PageRef{}, false
	}
	return h.last.ref, true
}

// known returns the reference of a page whose content stands in its slot.
func (h *PageHasher) known(slot **recentPage, sum uint64, page []byte) (PageRef, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := *slot
	if p == nil || p.sum != sum || !bytes.Equal(p.content[:], page) {
		return PageRef{}, false
	}
	h.last = p
	return p.ref, true
}
