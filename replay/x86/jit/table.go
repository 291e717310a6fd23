//go:build linux && amd64

package jit

// entry is what is known of an address that Go has come to.
type entry struct {
	pc      uint64
	unit    *unit
	refused bool // not to be translated, until all is dropped
	used    bool
}

// table has the entries by address. Places next to each other take what comes to the same one.
type table struct {
	entries []entry // a power of two, at most half of them used
	n       int
}

// minEntries and maxEntries bound the size of a table. A table that would be larger is emptied.
const (
	minEntries = 1 << 12
	maxEntries = 1 << 18
)

// at returns the entry for pc, new if there was none, valid until the next call.
func (t *table) at(pc uint64) *entry {
	if t.n > 0 {
		if x := t.slot(pc); x.used {
			return x
		}
	}
	if 2*t.n >= len(t.entries) {
		t.grow()
	}
	t.n++
	x := t.slot(pc)
	*x = entry{pc: pc, used: true}
	return x
}

// slot returns the place of pc, which may be free.
func (t *table) slot(pc uint64) *entry {
	mask := uint64(len(t.entries) - 1)
	for i := pc * 0x9e3779b97f4a7c15 >> 32; ; i++ {
		if x := &t.entries[i&mask]; x.pc == pc || !x.used {
			return x
		}
	}
}

// grow makes room.
func (t *table) grow() {
	old := t.entries
	t.entries = make([]entry, max(minEntries, 2*len(old)))
	if len(t.entries) > maxEntries {
		t.entries, t.n = make([]entry, minEntries), 0
		return
	}
	for _, x := range old {
		if x.used {
			*t.slot(x.pc) = x
		}
	}
}

// clear empties the table.
func (t *table) clear() {
	clear(t.entries)
	t.n = 0
}
