package gdbstub

import (
	"errors"
	"strconv"
)

// Packets are $payload#cs with cs the sum of the raw payload bytes modulo 256
// as two hex digits. Bytes # $ } * of binary payloads travel as } and the byte
// xor 0x20. Between packets stand + and - (acknowledgements) and 0x03, the
// interrupt. Sources: gdb manual, "Remote Protocol Overview".
//
// The framer is strict before the first whole packet: nothing but + - $ 0x03
// may start a conversation, so a browser that posts "$...#cs" to the port of a
// debugger fails at the P of POST. Later, stray bytes between packets are
// dropped as gdbserver does.

// MaxPacket is the longest payload in bytes that is accepted or sent, escape
// bytes included. It is what the server announces as PacketSize.
const MaxPacket = 0x20000

// Errors that end a session.
var (
	// ErrNotRSP means that the first bytes were not GDB's protocol.
	ErrNotRSP = errors.New("gdbstub: the client does not speak the gdb remote protocol")
	// ErrPacketTooLong means that a packet exceeded MaxPacket.
	ErrPacketTooLong = errors.New("gdbstub: packet too long")
)

// eventKind says what came in.
type eventKind uint8

const (
	evPacket    eventKind = iota // a whole packet, data is the unescaped payload
	evBad                        // a packet with a wrong checksum or escape
	evAck                        // +
	evNack                       // -
	evInterrupt                  // 0x03
	evClosed                     // the connection ended, err says why
)

// event is one thing that came in from the client.
type event struct {
	kind eventKind
	data []byte // owned by the receiver
	err  error
}

// framerState is the position within a packet.
type framerState uint8

const (
	outside framerState = iota
	inPayload
	inSum1
	inSum2
)

// framer splits a byte stream into events.
type framer struct {
	state framerState
	heard bool // a whole packet has been seen
	buf   []byte
	sum   byte
	want  byte
	badCS bool
	// anySum accepts wrong checksums, as clients without acknowledgements
	// may send.
	anySum bool
}

// push takes the next bytes of the stream and calls emit for each event. The
// split of the stream into calls does not matter. After an error the stream
// cannot be used any more.
func (f *framer) push(b []byte, emit func(event)) error {
	for _, c := range b {
		var err error
		switch f.state {
		case outside:
			err = f.between(c, emit)
		case inPayload:
			err = f.payload(c)
		case inSum1:
			v, ok := hexDigit(c)
			f.want, f.badCS = v<<4, !ok
			f.state = inSum2
		case inSum2:
			v, ok := hexDigit(c)
			f.badCS = f.badCS || !ok || f.want|v != f.sum
			f.finish(emit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// between handles a byte outside packets.
func (f *framer) between(c byte, emit func(event)) error {
	switch c {
	case '$':
		f.state, f.sum = inPayload, 0
		f.buf = f.buf[:0]
	case '+':
		emit(event{kind: evAck})
	case '-':
		emit(event{kind: evNack})
	case interruptByte:
		emit(event{kind: evInterrupt})
	default:
		if !f.heard {
			return ErrNotRSP
		}
	}
	return nil
}

// payload handles a byte inside a packet.
func (f *framer) payload(c byte) error {
	switch c {
	case '#':
		f.state = inSum1
	case '$': // never legal here: the end of the packet before was lost
		f.buf, f.sum = f.buf[:0], 0
	default:
		if len(f.buf) >= MaxPacket {
			return ErrPacketTooLong
		}
		f.buf = append(f.buf, c)
		f.sum += c
	}
	return nil
}

// finish emits the packet that has just ended.
func (f *framer) finish(emit func(event)) {
	f.state = outside
	data, ok := unescape(f.buf)
	if !ok || f.badCS && !f.anySum {
		emit(event{kind: evBad})
		return
	}
	f.heard = true
	emit(event{kind: evPacket, data: data})
}

// interruptByte is sent outside packets to stop a running target.
const interruptByte = 0x03

// unescape returns a copy of b with } sequences resolved. It reports false for
// a sequence that is cut off.
func unescape(b []byte) ([]byte, bool) {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c == '}' {
			i++
			if i == len(b) {
				return nil, false
			}
			c = b[i] ^ 0x20
		}
		out = append(out, c)
	}
	return out, true
}

// needsEscape reports whether c may not stand in a reply as it is.
func needsEscape(c byte) bool {
	return c == '#' || c == '$' || c == '}' || c == '*'
}

// appendEscaped appends data to dst, escaped.
func appendEscaped(dst, data []byte) []byte {
	for _, c := range data {
		if needsEscape(c) {
			dst = append(dst, '}', c^0x20)
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// fitEscaped returns how many bytes of data fit into room bytes once escaped.
func fitEscaped(data []byte, room int) int {
	for i, c := range data {
		room--
		if needsEscape(c) {
			room--
		}
		if room < 0 {
			return i
		}
	}
	return len(data)
}

const hexDigits = "0123456789abcdef"

// appendPacket appends the frame of an unescaped payload to dst.
func appendPacket(dst, payload []byte) []byte {
	dst = append(dst, '$')
	start := len(dst)
	dst = appendEscaped(dst, payload)
	var sum byte
	for _, c := range dst[start:] {
		sum += c
	}
	return append(dst, '#', hexDigits[sum>>4], hexDigits[sum&15])
}

// hexDigit returns the value of a hex digit.
func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// parseHex parses an unsigned hex number of 1 to 16 digits. No sign, no prefix.
func parseHex(s string) (uint64, bool) {
	if s == "" || len(s) > 16 {
		return 0, false
	}
	var v uint64
	for i := range len(s) {
		d, ok := hexDigit(s[i])
		if !ok {
			return 0, false
		}
		v = v<<4 | uint64(d)
	}
	return v, true
}

// parseHexInt is parseHex for numbers from 0 to 2^31-1: ids, descriptors.
func parseHexInt(s string) (int, bool) {
	v, ok := parseHex(s)
	if !ok || v > 1<<31-1 {
		return 0, false
	}
	return int(v), true
}

// appendHexBytes appends two digits for each byte of b.
func appendHexBytes(dst, b []byte) []byte {
	for _, c := range b {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

// hexOf returns v in hex without leading zeros.
func hexOf(v uint64) string { return strconv.FormatUint(v, 16) }

// hexText returns the hex form of a text.
func hexText(s string) string { return string(appendHexBytes(nil, []byte(s))) }
