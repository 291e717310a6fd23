package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A binary member of a recording is a sequence of frames:
//
//	length   varint, of the payload in bytes
//	type     1 byte
//	payload
//	check    CRC-32C (Castagnoli) of length, type and payload, little endian
//
// The first frame is a header that names the kind of member and the format
// version, the last one an end mark with the sum of all raw lengths, so that
// no cut goes unnoticed. Between them are blocks: the raw length as a varint,
// then one zstd frame. The check covers what is decompressed, so damaged bytes
// never reach the decompressor; a hostile file's do, within the bounds below.

// Frame types.
const (
	frameHeader = 'H'
	frameBlock  = 'B'
	frameEnd    = 'E'
)

// Bounds. A writer never exceeds them, so a reader refuses what does.
const (
	// maxBlock is the greatest raw length of a block, in bytes.
	maxBlock = 1 << 20
	// maxFrame is the greatest length of a frame's payload: what zstd may
	// make of a block that does not compress, and some.
	maxFrame = maxBlock + maxBlock/64 + 1024
	// maxMemberRaw is the greatest sum of raw lengths of an event log.
	maxMemberRaw = 1 << 30
	// maxHeadRaw is the same for every other member but a pack.
	maxHeadRaw = 64 << 20
	// maxPack is the greatest length of a pack member.
	maxPack = 1 << 28
	// maxManifest is the greatest length of the manifest.
	maxManifest = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends one frame to b.
func appendFrame(b []byte, typ byte, payload []byte) []byte {
	start := len(b)
	b = binary.AppendUvarint(b, uint64(len(payload)))
	b = append(b, typ)
	b = append(b, payload...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// readFrame takes one frame from the start of b. n is its length in bytes;
// payload aliases b.
func readFrame(b []byte) (typ byte, payload []byte, n int, err error) {
	length, k := binary.Uvarint(b)
	switch {
	case k == 0:
		return 0, nil, 0, errors.New("cut inside a frame's length")
	case k < 0 || length > maxFrame:
		return 0, nil, 0, fmt.Errorf("frame length above the bound of %d", maxFrame)
	case k > 1 && b[k-1] == 0:
		return 0, nil, 0, errors.New("frame length not in its shortest form")
	}
	body := k + 1 + int(length)
	if body+4 > len(b) {
		return 0, nil, 0, fmt.Errorf("cut inside a frame: %d bytes wanted, %d left", body+4, len(b))
	}
	if got, want := crc32.Checksum(b[:body], castagnoli), binary.LittleEndian.Uint32(b[body:]); got != want {
		return 0, nil, 0, fmt.Errorf("frame check is %08x, its bytes give %08x", want, got)
	}
	return b[k], b[k+1 : body : body], body + 4, nil
}

// memberWriter builds a binary member in memory.
type memberWriter struct {
	out   []byte // frames
	raw   []byte // not yet compressed
	total uint64 // raw bytes in frames
	limit uint64 // of total
	level Level
}

func newMemberWriter(kind string, version int, level Level) *memberWriter {
	limit := uint64(maxHeadRaw)
	if kind == kindLog {
		limit = maxMemberRaw
	}
	return &memberWriter{out: appendHeader(nil, kind, version), limit: limit, level: level}
}

// appendHeader appends the header frame of a member in a version of the format.
func appendHeader(b []byte, kind string, version int) []byte {
	c := newEncoder(nil)
	v := uint64(version)
	c.str(&kind)
	c.u64(&v)
	return appendFrame(b, frameHeader, c.b)
}

// readHeader takes the header frame of a version of the format from the start of b; n is
// its length.
func readHeader(b []byte, kind string, want int) (n int, err error) {
	typ, payload, n, err := readFrame(b)
	if err != nil {
		return 0, err
	}
	c := newDecoder(payload, nil)
	var got string
	var version uint64
	c.str(&got)
	c.u64(&version)
	if err := c.finish(); err != nil {
		return 0, fmt.Errorf("header: %w", err)
	}
	if typ != frameHeader || got != kind || version != uint64(want) {
		return 0, fmt.Errorf("header says %q version %d, want %q version %d", got, version, kind, want)
	}
	return n, nil
}

// write appends raw bytes to the member.
func (m *memberWriter) write(b []byte) {
	for len(b) > 0 {
		n := min(len(b), maxBlock-len(m.raw))
		m.raw = append(m.raw, b[:n]...)
		b = b[n:]
		if len(m.raw) == maxBlock {
			m.flush()
		}
	}
}

func (m *memberWriter) flush() {
	if len(m.raw) == 0 {
		return
	}
	m.out = appendFrame(m.out, frameBlock, compressBlock(nil, m.raw, m.level))
	m.total += uint64(len(m.raw))
	m.raw = m.raw[:0]
}

// finish returns the member's bytes and its raw length.
func (m *memberWriter) finish() ([]byte, uint64, error) {
	m.flush()
	if m.total > m.limit {
		return nil, 0, fmt.Errorf("%d bytes are above the bound of %d", m.total, m.limit)
	}
	m.out = appendFrame(m.out, frameEnd, binary.AppendUvarint(nil, m.total))
	return m.out, m.total, nil
}

// encodeMember makes a member, in a version of the format, of what code appends.
func encodeMember(kind string, version int, level Level, p pageNumbers, code func(*coder)) ([]byte, uint64, error) {
	c := newEncoder(p)
	code(c)
	if c.err != nil {
		return nil, 0, c.err
	}
	m := newMemberWriter(kind, version, level)
	m.write(c.b)
	return m.finish()
}

// offsetError is an error at an offset of a member.
type offsetError struct {
	offset int64
	err    error
}

func (e *offsetError) Error() string { return fmt.Sprintf("at offset %#x: %v", e.offset, e.err) }
func (e *offsetError) Unwrap() error { return e.err }

// decodeMember returns the raw bytes of a whole member of the given kind and version,
// limit bytes at most. Errors are *offsetError.
func decodeMember(b []byte, kind string, version int, limit int64, ch *charge) ([]byte, error) {
	at, err := readHeader(b, kind, version)
	if err != nil {
		return nil, &offsetError{0, err}
	}
	var raw []byte
	if n := rawLength(b[at:], limit); n > 0 {
		if err := ch.add(n); err != nil {
			return nil, &offsetError{int64(at), err}
		}
		raw = make([]byte, 0, n)
	}
	charged := 0
	for {
		typ, payload, n, err := readFrame(b[at:])
		if err != nil {
			return nil, &offsetError{int64(at), err}
		}
		switch typ {
		case frameBlock:
			raw, err = decompressBlock(raw, payload)
			if err == nil && ch != nil {
				// What is decoded of the bytes may take as much again.
				err = ch.add(int64(len(raw) - charged))
				charged = len(raw)
			}
			if err == nil && int64(len(raw)) > limit {
				err = fmt.Errorf("raw bytes above the bound of %d", limit)
			}
		case frameEnd:
			err = checkEnd(payload, uint64(len(raw)), len(b)-at-n)
		default:
			err = fmt.Errorf("unknown frame type %#02x", typ)
		}
		if err != nil {
			return nil, &offsetError{int64(at), err}
		}
		if typ == frameEnd {
			return raw, nil
		}
		at += n
	}
}

// rawLength returns what the blocks of frames b say that they have, at most limit bytes, and
// 0 where that cannot be told: whoever reads the frames says what is wrong.
func rawLength(b []byte, limit int64) (total int64) {
	for len(b) > 0 {
		length, k := binary.Uvarint(b)
		if k <= 0 || length > maxFrame || k+1+int(length)+4 > len(b) {
			return 0
		}
		switch payload := b[k+1 : k+1+int(length)]; b[k] {
		case frameEnd:
			return total
		case frameBlock:
			n, m := binary.Uvarint(payload)
			if m <= 0 || n > maxBlock || total+int64(n) > limit {
				return 0
			}
			total += int64(n)
		}
		b = b[k+1+int(length)+4:]
	}
	return 0
}

// checkEnd checks an end frame's payload; after is what follows the frame.
func checkEnd(payload []byte, total uint64, after int) error {
	c := newDecoder(payload, nil)
	var want uint64
	c.u64(&want)
	if err := c.finish(); err != nil {
		return fmt.Errorf("end frame: %w", err)
	}
	if want != total {
		return fmt.Errorf("end frame says %d raw bytes, found %d", want, total)
	}
	if after != 0 {
		return fmt.Errorf("%d bytes after the end frame", after)
	}
	return nil
}

// compressBlock appends the payload of a block frame to dst.
// Preconditions: 0 < len(raw) <= maxBlock.
func compressBlock(dst, raw []byte, level Level) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(raw)))
	return encoder(level).EncodeAll(raw, dst)
}

// decompressBlock appends the raw bytes of a block frame's payload to dst.
func decompressBlock(dst, payload []byte) ([]byte, error) {
	n, k := binary.Uvarint(payload)
	if k <= 0 || n == 0 || n > maxBlock || k != uvarintLen(n) {
		return nil, fmt.Errorf("block's raw length is not a number from 1 to %d", maxBlock)
	}
	at, want := len(dst), len(dst)+int(n)
	dst = slices.Grow(dst, int(n))
	got, err := decoder().DecodeAll(payload[k:], dst[at:at:want])
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	if len(got) != int(n) {
		return nil, fmt.Errorf("block has %d raw bytes, %d promised", len(got), n)
	}
	return dst[:want], nil
}

func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// Level says how much time compression may take.
type Level uint8

// The levels of compression.
const (
	LevelFast  Level = iota // while a program waits
	LevelSmall              // offline: slimming, packing
	numLevels
)

var encoders [numLevels]struct {
	once sync.Once
	enc  *zstd.Encoder
}

// encoder returns the shared encoder of a level; EncodeAll is safe for
// concurrent use and starts no goroutine.
func encoder(l Level) *zstd.Encoder {
	e := &encoders[l]
	e.once.Do(func() {
		level := zstd.SpeedFastest
		if l == LevelSmall {
			level = zstd.SpeedBetterCompression
		}
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(false),
			zstd.WithWindowSize(maxBlock), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)))
		if err != nil {
			panic("checkpoint: zstd refuses constant options: " + err.Error())
		}
		e.enc = enc
	})
	return e.enc
}

// MaxBlock is the greatest length of what is compressed at once, in bytes.
const MaxBlock = maxBlock

// CompressedLen returns how many bytes raw takes as a block of a recording, without the block's
// own header. It is for measuring what another form of the data would take.
// Preconditions: len(raw) <= MaxBlock.
func CompressedLen(raw []byte, l Level) int { return len(encoder(l).EncodeAll(raw, nil)) }

// decoder returns the shared decoder. It writes within the capacity it is
// given and never decodes a frame larger than a block.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxBlock),
		zstd.WithDecoderMaxWindow(maxBlock), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("checkpoint: zstd refuses constant options: " + err.Error())
	}
	return dec
})
