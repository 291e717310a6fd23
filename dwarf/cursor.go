package dwarf

import "encoding/binary"

// Reading numbers and strings out of the bytes of a section, with no reading past its
// end (LEB128: DWARF 5, 7.6). Nothing here knows what the bytes mean.

// cursor reads a byte slice; reading past its end sets bad and gives zeros.
type cursor struct {
	b   []byte
	at  int
	bad bool
}

func (c *cursor) left() int { return len(c.b) - c.at }

// bytes returns the next n bytes.
func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(c.left()) {
		c.bad = true
		c.at = len(c.b)
		return nil
	}
	p := c.b[c.at : c.at+int(n)]
	c.at += int(n)
	return p
}

// uint reads a little-endian number of n bytes, n at most 8.
func (c *cursor) uint(n uint64) uint64 {
	var w [8]byte
	copy(w[:], c.bytes(n))
	return binary.LittleEndian.Uint64(w[:])
}

// int reads a signed little-endian number of n bytes.
func (c *cursor) int(n uint64) int64 {
	shift := 64 - 8*n
	return int64(c.uint(n)<<shift) >> shift
}

func (c *cursor) u8() byte { return byte(c.uint(1)) }

// uleb and sleb read LEB128 numbers (DWARF 5, 7.6).
func (c *cursor) uleb() uint64 {
	var v uint64
	for shift := uint(0); !c.bad; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b < 0x80 {
			break
		}
	}
	return v
}

func (c *cursor) sleb() int64 {
	var v uint64
	for shift := uint(0); !c.bad; {
		b := c.u8()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if shift += 7; b < 0x80 {
			if b&0x40 != 0 && shift < 64 {
				v |= ^uint64(0) << shift
			}
			break
		}
	}
	return int64(v)
}

// str reads a string that ends with a NUL.
func (c *cursor) str() string {
	start := c.at
	for !c.bad {
		if c.u8() == 0 && !c.bad {
			return string(c.b[start : c.at-1])
		}
	}
	return ""
}
