package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
)

// One function describes a structure for both directions: a coder either
// appends what the pointers point at, or fills it from the input. So encoder
// and decoder cannot drift apart.
//
// The encoding is canonical: for every value there is one sequence of bytes,
// and the decoder refuses all others (long varints, booleans above 1, values
// outside of the type's range). All lengths are checked against the bytes that
// are left before anything is allocated.

// coder encodes to, or decodes from, b. The first error stops it: from then
// on every method does nothing, so callers check err once, and in loops.
type coder struct {
	decoding bool
	version  int    // of the format
	b        []byte // encoding: the output so far; decoding: the whole input
	pos      int    // decoding: the next byte
	err      error
	pages    pageNumbers
	budget   int // bytes that slices may still take in memory
	charge   *charge
}

// pageNumbers translates between page references and numbers in the page store.
type pageNumbers interface {
	// number returns the number of a stored page.
	number(PageRef) (uint64, bool)
	// ref returns the page of a number.
	ref(uint64) (PageRef, error)
}

// maxDecoded bounds the memory that the slices of one decoded structure take,
// in bytes, on top of its raw bytes. The encoder keeps to it as well.
const maxDecoded = 1 << 30

func newEncoder(p pageNumbers) *coder {
	return &coder{version: FormatVersion, pages: p, budget: maxDecoded}
}

func newDecoder(b []byte, p pageNumbers) *coder {
	return &coder{decoding: true, version: FormatVersion, b: b, pages: p, budget: maxDecoded}
}

func (c *coder) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// left is the number of bytes not yet decoded.
func (c *coder) left() int { return len(c.b) - c.pos }

// finish fails when input is left over.
func (c *coder) finish() error {
	if c.err == nil && c.decoding && c.left() != 0 {
		c.fail("%d bytes too many", c.left())
	}
	return c.err
}

// take returns the next n bytes of the input, nil after an error.
func (c *coder) take(n int) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 || n > c.left() {
		c.fail("cut short: %d bytes wanted, %d left", n, c.left())
		return nil
	}
	b := c.b[c.pos : c.pos+n : c.pos+n]
	c.pos += n
	return b
}

// u64 codes a number as a varint of up to 10 bytes, least significant 7 bits first.
func (c *coder) u64(p *uint64) {
	if c.err != nil {
		return
	}
	if !c.decoding {
		c.b = binary.AppendUvarint(c.b, *p)
		return
	}
	v, n := binary.Uvarint(c.b[c.pos:])
	switch {
	case n == 0:
		c.fail("cut short inside a number")
	case n < 0:
		c.fail("number above 64 bits")
	case n > 1 && c.b[c.pos+n-1] == 0:
		c.fail("number not in its shortest form")
	default:
		c.pos += n
		*p = v
	}
}

// i64 codes a signed number: zigzag, then as u64.
func (c *coder) i64(p *int64) {
	u := zigzag(*p)
	c.u64(&u)
	if c.decoding {
		*p = unzigzag(u)
	}
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// limited codes a number that must not exceed limit.
func (c *coder) limited(v, limit uint64, what string) uint64 {
	if !c.decoding && v > limit {
		c.fail("%s %#x above %#x", what, v, limit)
		return 0
	}
	c.u64(&v)
	if c.decoding && v > limit {
		c.fail("%s %#x above %#x", what, v, limit)
		return 0
	}
	return v
}

func (c *coder) u32(p *uint32) { narrow(c, p, math.MaxUint32) }
func (c *coder) u16(p *uint16) { narrow(c, p, math.MaxUint16) }

// narrow codes an unsigned number of fewer than 64 bits. Like all methods it
// does not write to *p while encoding.
func narrow[T ~uint8 | ~uint16 | ~uint32](c *coder, p *T, limit uint64) {
	v := c.limited(uint64(*p), limit, "number")
	if c.decoding {
		*p = T(v)
	}
}

func (c *coder) i32(p *int32) {
	v := int64(*p)
	c.i64(&v)
	if v != int64(int32(v)) {
		c.fail("number %d outside of 32 bits", v)
	}
	if c.decoding {
		*p = int32(v)
	}
}

// bool codes one byte, 0 or 1.
func (c *coder) bool(p *bool) {
	v := uint64(0)
	if *p {
		v = 1
	}
	v = c.limited(v, 1, "boolean")
	if c.decoding {
		*p = v == 1
	}
}

// enum codes one of the values lo to hi.
func enum[T ~uint8](c *coder, p *T, lo, hi T, what string) {
	v := c.limited(uint64(*p), uint64(hi), what)
	if c.err == nil && v < uint64(lo) {
		c.fail("%s %d below %d", what, v, lo)
	}
	if c.decoding {
		*p = T(v)
	}
}

// fixed64 codes 8 bytes, little endian: hashes do not profit from varints.
func (c *coder) fixed64(p *uint64) {
	if !c.decoding {
		c.b = binary.LittleEndian.AppendUint64(c.b, *p)
		return
	}
	if b := c.take(8); b != nil {
		*p = binary.LittleEndian.Uint64(b)
	}
}

// raw codes len(p) bytes as they are.
func (c *coder) raw(p []byte) {
	if !c.decoding {
		c.b = append(c.b, p...)
		return
	}
	copy(p, c.take(len(p)))
}

// bytes codes a length and that many bytes. Decoded bytes alias the input;
// an empty slice is decoded as nil.
func (c *coder) bytes(p *[]byte) {
	n := c.length(len(*p), 1)
	if !c.decoding {
		c.b = append(c.b, *p...)
		return
	}
	*p = nil
	if n > 0 {
		*p = c.take(n)
	}
}

// str codes a length and that many bytes, which need not be UTF-8.
func (c *coder) str(p *string) {
	n := c.length(len(*p), 1)
	if !c.decoding {
		c.b = append(c.b, *p...)
		return
	}
	c.reserve(n, 1)
	*p = string(c.take(n))
}

// length codes the number of elements, each of which takes at least size
// bytes: a decoded length never exceeds what the input can hold.
func (c *coder) length(n, size int) int {
	v := uint64(n)
	c.u64(&v)
	if c.err != nil {
		return 0
	}
	if c.decoding && v > uint64(c.left()/size) {
		c.fail("%d elements, %d bytes left", v, c.left())
		return 0
	}
	return int(v)
}

// reserve takes n elements of size bytes from the budget.
func (c *coder) reserve(n, size int) {
	if c.err == nil && n > c.budget/size {
		c.fail("more elements than %d bytes of memory hold", maxDecoded)
		return
	}
	c.budget -= n * size
	if err := c.charge.add(int64(n) * int64(size)); err != nil && c.err == nil {
		c.err = err
	}
}

// list codes a slice whose elements take at least size bytes each. An empty
// slice is decoded as nil.
func list[T any](c *coder, p *[]T, size int, code func(*coder, *T)) {
	n := c.length(len(*p), size)
	c.reserve(n, int(reflect.TypeFor[T]().Size()))
	if c.decoding {
		*p = nil
		if c.err != nil {
			return
		}
		if n > 0 {
			*p = make([]T, n)
		}
	}
	for i := range *p {
		if c.err != nil {
			return
		}
		code(c, &(*p)[i])
	}
}
