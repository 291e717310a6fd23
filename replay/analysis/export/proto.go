package export

import "encoding/binary"

// Protocol buffers, as far as they are written here (protobuf.dev, "Encoding"): fields of integers, and of bytes with their length.

// message is a message that is made.
type message struct{ b []byte }

const (
	wireVarint = 0
	wireFixed  = 1 // eight bytes
	wireBytes  = 2
)

func (m *message) tag(field int, wire uint64) {
	m.b = binary.AppendUvarint(m.b, uint64(field)<<3|wire)
}

// uint writes an integer, which is left out when it is 0, the value of a field that is not there.
func (m *message) uint(field int, v uint64) {
	if v != 0 {
		m.always(field, v)
	}
}

// always writes an integer, 0 too.
func (m *message) always(field int, v uint64) {
	m.tag(field, wireVarint)
	m.b = binary.AppendUvarint(m.b, v)
}

// fixed64 writes an integer as eight bytes.
func (m *message) fixed64(field int, v uint64) {
	m.tag(field, wireFixed)
	m.b = binary.LittleEndian.AppendUint64(m.b, v)
}

// string writes text.
func (m *message) string(field int, s string) {
	m.tag(field, wireBytes)
	m.b = binary.AppendUvarint(m.b, uint64(len(s)))
	m.b = append(m.b, s...)
}

// message writes a message in the message.
func (m *message) message(field int, of *message) { m.string(field, string(of.b)) }

// packed writes a list of integers.
func (m *message) packed(field int, list []uint64) {
	var of message
	for _, v := range list {
		of.b = binary.AppendUvarint(of.b, v)
	}
	m.message(field, &of)
}

// reset makes it empty, with the memory that it has.
func (m *message) reset() { m.b = m.b[:0] }
