package windows

import (
	"encoding/binary"

	"vplay/checkpoint"
)

// A log of first loads, as BugNet has it and as plain streams: what one costs, of which only
// sizes are kept.
//
// BugNet's entry is a bit that says how the count is written, the count of loads since the last
// entry that were not logged (5 bits, or 32 where it is greater), and for each value a bit that says whether it is in the
// dictionary, and its place there (6 bits) or the value itself. BugNet's values are words of 32 bits; here they are what an
// instruction loads: 1, 2, 4 or 8 bytes, and wider loads are several of 8. How wide a load is need not be
// logged, as replay executes the instruction.

const (
	dictionarySize = 64
	placeBits      = 6  // of a place in the dictionary
	shortCountBits = 5  // of a count
	longCountBits  = 32 // of one that is greater
	maxConfidence  = 7  // of a dictionary's entry: 3 bits
)

// dictionary holds 64 values that were loaded often of late. Each has a count that saturates: a hit adds 1, and
// changes places with the entry in front of it when that has no greater count; what is not found takes the last entry's
// place. Both recorder and replay see every load, so they have the same dictionary at each.
type dictionary struct {
	values     [dictionarySize]uint64
	confidence [dictionarySize]uint8
	n          int
}

// look returns the place of v, -1 where it has none, and takes v in.
func (d *dictionary) look(v uint64) int {
	for i, have := range d.values[:d.n] {
		if have != v {
			continue
		}
		if d.confidence[i] < maxConfidence {
			d.confidence[i]++
		}
		if j := i - 1; i > 0 && d.confidence[j] <= d.confidence[i] {
			d.values[i], d.values[j] = d.values[j], d.values[i]
			d.confidence[i], d.confidence[j] = d.confidence[j], d.confidence[i]
		}
		return i
	}
	if d.n < dictionarySize {
		d.n++
	}
	d.values[d.n-1], d.confidence[d.n-1] = v, 0
	return -1
}

// blocks is a stream that is compressed as a recording is, in blocks, of which only the sizes are kept.
type blocks struct {
	raw          []byte
	bytes, small int64 // of the whole blocks so far: as they were, and compressed
}

// flush ends the block.
func (b *blocks) flush() {
	if len(b.raw) > 0 {
		b.bytes += int64(len(b.raw))
		b.small += int64(checkpoint.CompressedLen(b.raw, checkpoint.LevelSmall))
		b.raw = b.raw[:0]
	}
}

// write adds bytes, few at a time.
func (b *blocks) write(p ...byte) {
	if len(b.raw)+len(p) > checkpoint.MaxBlock {
		b.flush()
	}
	b.raw = append(b.raw, p...)
}

// bitBlocks is a stream of bits.
type bitBlocks struct {
	blocks
	word uint64
	n    uint // bits in word
}

// put adds the n low bits of v, n at most 32.
func (b *bitBlocks) put(v uint64, n uint) {
	b.word |= v & (1<<n - 1) << b.n
	for b.n += n; b.n >= 8; b.n -= 8 {
		b.write(byte(b.word))
		b.word >>= 8
	}
}

// end fills the last byte and ends the block.
func (b *bitBlocks) end() {
	if b.n > 0 {
		b.put(0, 8-b.n)
	}
	b.flush()
}

// LoadLog is what a log of first loads takes. All sizes are in bytes; those that end in Stored are compressed as
// the members of a recording are.
type LoadLog struct {
	Loads        uint64 `json:"loads"`         // that are in the log
	Values       uint64 `json:"values"`        // of at most 8 bytes, of these loads
	InDictionary uint64 `json:"in_dictionary"` // of Values
	BugNet       int64  `json:"bugnet_bytes"`  // BugNet's entries
	BugNetStored int64  `json:"bugnet_stored"`
	Plain        int64  `json:"plain_bytes"` // counts and values, each a stream of its own, without a dictionary
	PlainStored  int64  `json:"plain_stored"`
}

// loadLog is one that is being written.
type loadLog struct {
	LoadLog
	d              dictionary
	skipped        uint64 // loads since the last entry
	entries        bitBlocks
	counts, values blocks
}

// load takes a load of some bytes, which is logged where it is a first one.
func (l *loadLog) load(data []byte, isFirst bool) {
	if isFirst {
		l.Loads++
		l.count()
	} else {
		l.skipped++
	}
	for len(data) > 0 {
		n := min(len(data), 8)
		var b [8]byte
		copy(b[:], data[:n])
		v := binary.LittleEndian.Uint64(b[:])
		place := l.d.look(v)
		if isFirst {
			l.value(v, n, place)
		}
		data = data[n:]
	}
}

// count logs how many loads were skipped.
func (l *loadLog) count() {
	if l.skipped < 1<<shortCountBits {
		l.entries.put(0, 1)
		l.entries.put(l.skipped, shortCountBits)
	} else {
		l.entries.put(1, 1)
		l.entries.put(l.skipped, longCountBits)
	}
	var b [binary.MaxVarintLen64]byte
	l.counts.write(b[:binary.PutUvarint(b[:], l.skipped)]...)
	l.skipped = 0
}

// value logs a value of n bytes, which has a place in the dictionary or -1.
func (l *loadLog) value(v uint64, n, place int) {
	l.Values++
	if place >= 0 {
		l.InDictionary++
		l.entries.put(1, 1)
		l.entries.put(uint64(place), placeBits)
	} else {
		l.entries.put(0, 1)
		for i := range n {
			l.entries.put(v>>(8*i), 8)
		}
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	l.values.write(b[:n]...)
}

// end ends a log that can be replayed by itself.
func (l *loadLog) end() {
	l.entries.end()
	l.counts.flush()
	l.values.flush()
	l.d, l.skipped = dictionary{}, 0
	l.BugNet, l.BugNetStored = l.entries.bytes, l.entries.small
	l.Plain, l.PlainStored = l.counts.bytes+l.values.bytes, l.counts.small+l.values.small
}
