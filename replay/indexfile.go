package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/mem/rangemap"
)

// The index of a recording can be kept in a file, so that the first question of
// the next session need not replay everything again. The file holds what is known
// of the intervals that are known from end to end: where they end, and their
// segments. It holds no memory of the program, only addresses.
//
//	magic     8 bytes
//	identity  the recording's RunDigest, which slimming leaves as it is: the program
//	          does the same at the same positions whatever memory is kept; of another
//	          process than the recording is about, SHA-256 of it and the PID
//	check     SHA-256 of the body as it is stored
//	body      zstd; numbers are unsigned LEB128 (encoding/binary)
//
// A file of another recording, of another version, or one that was damaged is
// refused as a whole: an index is quicker to make again than to mend.

// indexMagic names the format; its last byte is the version. A change of the format
// or of what an emulated instruction touches makes it another one.
const indexMagic = "VPLAYIX\x02"

// maxIndex bounds an index file and its body, in bytes.
const maxIndex = 256 << 20

// ErrOtherIndex says that an index file belongs to another recording, process or version.
var ErrOtherIndex = errors.New("replay: the index is of another recording or process, or another version of vplayd")

var errBadIndex = errors.New("replay: the index is damaged")

// WriteIndex writes what is known of the recording, for ReadIndex. It returns how
// many intervals it wrote. The error is w's.
func (t *Timeline) WriteIndex(w io.Writer) (intervals int, err error) {
	body, n := t.index.encodeIndex()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return 0, err
	}
	packed := z.EncodeAll(body, nil)
	id, sum := t.index.identity(), sha256.Sum256(packed)
	_, err = w.Write(slices.Concat([]byte(indexMagic), id[:], sum[:], packed))
	return n, err
}

// ReadIndex adds what WriteIndex wrote. It returns how many intervals are known by
// it. The errors are ErrOtherIndex, one that names the damage, and r's; the
// timeline is then as it was.
// Preconditions: nothing has been replayed yet.
func (t *Timeline) ReadIndex(r io.Reader) (intervals int, err error) {
	file, err := io.ReadAll(io.LimitReader(r, maxIndex))
	if err != nil {
		return 0, err
	}
	const head = len(indexMagic) + 2*sha256.Size
	id := t.index.identity()
	if len(file) < head || string(file[:len(indexMagic)]) != indexMagic || !bytes.Equal(file[len(indexMagic):][:sha256.Size], id[:]) {
		return 0, ErrOtherIndex
	}
	if sum := sha256.Sum256(file[head:]); !bytes.Equal(sum[:], file[head-sha256.Size:head]) {
		return 0, errBadIndex
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxIndex))
	if err != nil {
		return 0, err
	}
	defer z.Close()
	body, err := z.DecodeAll(file[head:], nil)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errBadIndex, err)
	}
	known, err := t.decodeIndex(body)
	if err != nil {
		return 0, err
	}
	for id, l := range known {
		if err := t.useIndex(id, l); err != nil {
			return 0, err
		}
	}
	return len(known), nil
}

// identity names what the index is of: a recording and a process of it.
func (x *index) identity() [sha256.Size]byte {
	rec, pid := x.s.Rec, x.infos[0].PID
	id := rec.RunDigest()
	if pid == rec.Processes()[0].PID {
		return id
	}
	return sha256.Sum256(binary.LittleEndian.AppendUint32(id[:], uint32(pid)))
}

// useIndex takes over what a file knows of interval id.
func (t *Timeline) useIndex(id uint32, known *indexed) error {
	iv, err := t.index.s.interval(id)
	if err != nil {
		return err
	}
	last := known.segments[len(known.segments)-1]
	if last.last > len(iv.Events) {
		return errBadIndex
	}
	if known.forced != nil {
		iv.setEndPoint(*known.forced)
	}
	for i := range known.segments {
		t.index.addSegment(known.segments[i], i == len(known.segments)-1)
	}
	return nil
}

// indexed is what a file knows of an interval.
type indexed struct {
	segments []segment // not empty, without holes from the interval's start to its end
	forced   *endPoint // of a forced end
}

// encodeIndex writes the body: how many intervals, then each.
func (x *index) encodeIndex() (body []byte, intervals int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var done []uint32
	for _, id := range x.intervals {
		if x.of(id).done {
			done = append(done, id)
		}
	}
	e := &indexWriter{}
	e.number(uint64(len(done)))
	for _, id := range done {
		l := x.of(id)
		e.number(uint64(id))
		var forced *endPoint
		if iv, err := x.s.interval(id); err == nil { // it was replayed, so it can be read
			forced = iv.endPoint()
		}
		e.flag(forced != nil)
		if forced != nil {
			e.number(forced.instr)
			e.number(forced.rep)
		}
		e.number(uint64(len(l.segments)))
		e.last = segment{}
		for i := range l.segments {
			e.segment(&l.segments[i])
		}
	}
	return e.b, len(done)
}

// indexWriter appends to a body. Neighbouring segments share much: what is like
// in the segment before is a flag.
type indexWriter struct {
	b    []byte
	last segment
}

func (e *indexWriter) number(v uint64) { e.b = binary.AppendUvarint(e.b, v) }

func (e *indexWriter) flag(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *indexWriter) segment(s *segment) {
	e.number(s.to.Instr)
	e.number(uint64(s.to.Step))
	e.number(uint64(s.last - s.first))
	e.flag(s.remapped)
	same := s.regions == e.last.regions
	e.flag(same)
	if !same {
		e.regions(s.regions)
	}
	e.keys(s.read, e.last.read)
	e.keys(s.written, e.last.written)
	same = s.code.equal(e.last.code)
	e.flag(same)
	if !same {
		e.number(uint64(len(s.code)))
		at := uint64(0)
		for _, r := range s.code {
			e.number(r.from - at)
			e.number(r.to - r.from)
			at = r.to
		}
	}
	e.last = *s
}

// regions writes of a map what turns addresses into keys.
func (e *indexWriter) regions(m mem.AddressMap) {
	var shared []mem.Region
	for r := range m.From(0) {
		if r.Shared {
			shared = append(shared, *r)
		}
	}
	e.number(uint64(len(shared)))
	for _, r := range shared {
		e.number(r.Start / mem.PageSize)
		e.number((r.End - r.Start) / mem.PageSize)
		e.number(uint64(r.Object))
		e.number(r.Offset)
	}
}

// keys writes a sorted list as differences, unless it is the one before.
func (e *indexWriter) keys(list, last []uint64) {
	same := len(list) == len(last) && (len(list) == 0 || &list[0] == &last[0])
	e.flag(same)
	if same {
		return
	}
	e.number(uint64(len(list)))
	at := uint64(0)
	for _, k := range list {
		e.number((k - at) / mem.PageSize)
		at = k
	}
}

// indexReader takes numbers from a body; after the first error all are 0.
type indexReader struct {
	b    []byte
	err  error
	last segment
}

func (d *indexReader) number() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.err, d.b = errBadIndex, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *indexReader) flag() bool { return d.number() == 1 }

// count reads the length of a list whose elements take at least size bytes each.
func (d *indexReader) count(size int) int {
	n := d.number()
	if n > uint64(len(d.b)/size) {
		d.err, d.b = errBadIndex, nil
		return 0
	}
	return int(n)
}

// decodeIndex reads a body.
func (t *Timeline) decodeIndex(body []byte) (map[uint32]*indexed, error) {
	known := map[uint32]bool{}
	for _, id := range t.index.intervals {
		known[id] = true
	}
	d := &indexReader{b: body}
	out := map[uint32]*indexed{}
	for range d.count(2) {
		id := uint32(d.number())
		if d.err != nil || !known[id] || out[id] != nil {
			return nil, errBadIndex
		}
		l := &indexed{}
		if d.flag() {
			l.forced = &endPoint{instr: d.number(), rep: d.number()}
		}
		n := d.count(8)
		if n == 0 {
			return nil, errBadIndex
		}
		d.last = segment{to: checkpoint.Position{Interval: id}}
		for range n {
			l.segments = append(l.segments, d.segment())
		}
		out[id] = l
	}
	if d.err != nil || len(d.b) > 0 {
		return nil, errBadIndex
	}
	return out, nil
}

// segment reads the segment behind the last one.
func (d *indexReader) segment() segment {
	s := segment{from: d.last.to, first: d.last.last}
	s.to = checkpoint.Position{Interval: s.from.Interval, Instr: d.number(), Step: uint32(d.number())}
	s.last = s.first + int(d.number()&(1<<40-1)) //nolint:gosec // bounded
	s.remapped = d.flag()
	if s.regions = d.last.regions; !d.flag() {
		s.regions = d.regions()
	}
	s.read = d.keys(d.last.read)
	s.written = d.keys(d.last.written)
	if s.code = d.last.code; !d.flag() {
		s.code = d.code()
	}
	if s.to.Compare(s.from) < 0 {
		d.err = errBadIndex
	}
	d.last = s
	return s
}

func (d *indexReader) regions() mem.AddressMap {
	var out []mem.Region
	at := uint64(0)
	for range d.count(4) {
		r := mem.Region{Start: d.number() * mem.PageSize, Shared: true}
		r.End = r.Start + d.number()*mem.PageSize
		r.Object, r.Offset = uint32(d.number()), d.number()
		if r.Start < at || r.End <= r.Start || r.End > mem.MaxUser {
			d.err = errBadIndex
		}
		at = r.End
		out = append(out, r)
	}
	if d.err != nil {
		return mem.AddressMap{}
	}
	return rangemap.Of(out)
}

func (d *indexReader) keys(last []uint64) []uint64 {
	if d.flag() {
		return last
	}
	n := d.count(1)
	if n == 0 {
		return nil
	}
	out := make([]uint64, 0, n)
	at := uint64(0)
	for i := range n {
		k := at + d.number()*mem.PageSize
		if k < at || i > 0 && k == at {
			d.err = errBadIndex
		}
		out, at = append(out, k), k
	}
	return out
}

func (d *indexReader) code() code {
	n := d.count(2)
	out := make(code, 0, n)
	at := uint64(0)
	for range n {
		r := codeRange{from: at + d.number()}
		r.to = r.from + d.number()
		if r.from < at || r.to <= r.from {
			d.err = errBadIndex
		}
		out, at = append(out, r), r.to
	}
	return out
}
