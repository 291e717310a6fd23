package mem

// The windows in which shared objects have their keys: every space of a pool gives a page
// of an object the same key, whatever the address at which it is mapped. What keys are
// for is in region.go.

// Reserve gives shared objects their windows in the order of the list, so that keys
// are the same in every pool that was given the same list.
// Preconditions: no space of the pool maps one of them yet.
func (p *Pool) Reserve(objects []uint32) {
	for _, o := range objects {
		p.slotOf(o)
	}
}

// slotOf returns the number of the window that holds the keys of a shared
// object. All spaces of a pool agree on it.
func (p *Pool) slotOf(object uint32) uint64 {
	p.slotMu.RLock()
	slot, ok := p.slots[object]
	p.slotMu.RUnlock()
	if ok {
		return slot
	}
	p.slotMu.Lock()
	defer p.slotMu.Unlock()
	if slot, ok = p.slots[object]; !ok {
		slot = uint64(len(p.slots))
		p.slots[object] = slot
		p.owners = append(p.owners, object)
	}
	return slot
}

// objectOf returns the shared object whose window has the number slot; ok is false
// when there is none.
func (p *Pool) objectOf(slot uint64) (object uint32, ok bool) {
	p.slotMu.RLock()
	defer p.slotMu.RUnlock()
	if slot >= uint64(len(p.owners)) {
		return 0, false
	}
	return p.owners[slot], true
}
