//go:build linux && amd64

package jit

// entry is what is known of an address that Go has come to.
type entry struct {
	key     uint64 // unit.key
	unit    *unit  // that lives; nil: none
	refused bool   // not to be translated, until all is dropped
	used    bool
}

// table has the entries by key. Places next to each other take what comes to the same one.
type table struct {
	entries []entry // a power of two, at most half of them used
	n       int
}

// minEntries and maxEntries bound the size of a table. One that would be larger keeps its units, which are maxUnits at most, and forgets all else.
const (
	minEntries = 1 << 12
	maxEntries = 4 * maxUnits
)

// at returns the entry for a key, new if there was none, valid until the next call.
func (t *table) at(key uint64) *entry {
	if t.n > 0 {
		if x := t.slot(key); x.used {
			return x
		}
	}
	if 2*t.n >= len(t.entries) {
		t.grow()
	}
	t.n++
	x := t.slot(key)
	*x = entry{key: key, used: true}
	return x
}

// unit returns the unit for a key, or nil.
func (t *table) unit(key uint64) *unit {
	if t.n == 0 {
		return nil
	}
	return t.slot(key).unit
}

// slot returns the place of a key, which may be free.
func (t *table) slot(key uint64) *entry {
	mask := uint64(len(t.entries) - 1)
	for i := key * 0x9e3779b97f4a7c15 >> 32; ; i++ {
		if x := &t.entries[i&mask]; x.key == key || !x.used {
			return x
		}
	}
}

// grow makes room.
func (t *table) grow() {
	if size := max(minEntries, 2*len(t.entries)); size <= maxEntries {
		t.rebuild(size, func(*entry) bool { return true })
	} else {
		t.keepUnits()
	}
}

// keepUnits forgets all but the units.
func (t *table) keepUnits() {
	t.rebuild(len(t.entries), func(x *entry) bool { return x.unit != nil })
}

// rebuild makes a table of that size, with the entries that are kept.
func (t *table) rebuild(size int, isKept func(*entry) bool) {
	old := t.entries
	t.entries, t.n = make([]entry, size), 0
	for i := range old {
		if x := &old[i]; x.used && isKept(x) {
			*t.slot(x.key) = *x
			t.n++
		}
	}
}

// clear empties the table.
func (t *table) clear() {
	clear(t.entries)
	t.n = 0
}
