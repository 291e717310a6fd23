package gdbstub

import (
	"bytes"
	"context"
	"errors"
	"strings"
)

// The packets that read memory: m, x, qSearch:memory and qCRC (gdb manual, appendix
// "Remote Serial Protocol", "Packets" and "General Query Packets"). Those that write
// are in write.go.

// memChunk is the piece in which long ranges are read, in bytes.
const memChunk = 64 << 10

// parseRange parses ADDR,LEN. It reports false for a range that wraps around
// the address space.
func parseRange(arg string) (addr, n uint64, ok bool) {
	a, l, _ := strings.Cut(arg, ",")
	addr, ok1 := parseHex(a)
	n, ok2 := parseHex(l)
	return addr, n, ok1 && ok2 && (n == 0 || addr+(n-1) >= addr)
}

// read returns the readable prefix of a range; an empty one is an error.
func (s *session) read(addr, n uint64) ([]byte, error) {
	if !s.live {
		return nil, errors.New(errNoProcess)
	}
	b := make([]byte, n)
	got, err := s.target.ReadMemory(addr, b)
	got = min(max(got, 0), len(b))
	if got > 0 || n == 0 {
		return b[:got], nil
	}
	if err == nil {
		err = errors.New("not readable")
	}
	return nil, err
}

// readMemory answers m ADDR,LEN in hex. A short reply is the readable prefix.
func (s *session) readMemory(arg string) reply {
	addr, n, ok := parseRange(arg)
	if !ok || n == 0 {
		return replyError
	}
	n = min(n, MaxPacket/2)
	b, err := s.read(addr, n)
	if err == nil && s.srv.opt.RR && uint64(len(b)) < n {
		err = errors.New("not readable to its end")
	}
	if err != nil {
		s.srv.log.Debug("memory", "addr", "0x"+hexOf(addr), "bytes", n, "err", err)
		return replyError
	}
	return reply{data: appendHexBytes(make([]byte, 0, 2*len(b)), b)}
}

// readMemoryBinary answers x ADDR,LEN (gdb 16): b and the bytes. An empty
// range gives "b", by which lldb sees that this is gdb's form of the packet.
func (s *session) readMemoryBinary(arg string) reply {
	addr, n, ok := parseRange(arg)
	if !ok {
		return replyError
	}
	b, err := s.read(addr, min(n, MaxPacket-1))
	if err != nil {
		return replyError
	}
	return reply{data: append([]byte{'b'}, b[:fitEscaped(b, MaxPacket-1)]...)}
}

// search answers qSearch:memory:ADDR;LEN;PATTERN with 0 or 1,ADDR. Memory that
// cannot be read ends the search, as the answer is not known then.
func (s *session) search(arg string) reply {
	kind, rest, _ := strings.Cut(arg, ":")
	if kind != "memory" {
		return reply{}
	}
	f := strings.SplitN(rest, ";", 3)
	if len(f) != 3 || f[2] == "" {
		return replyError
	}
	addr, n, ok := parseRange(f[0] + "," + f[1])
	if !ok {
		return replyError
	}
	r := replyError
	s.await("search", func(ctx context.Context) { r = s.searchRange(ctx, addr, n, []byte(f[2])) })
	return r
}

// searchRange looks for pattern wholly within n bytes from addr.
func (s *session) searchRange(ctx context.Context, addr, n uint64, pattern []byte) reply {
	keep := uint64(len(pattern) - 1) // a match may begin in one chunk and end in the next
	var window []byte
	start := addr // address of window[0]
	for n > 0 && ctx.Err() == nil {
		b, err := s.read(addr, min(n, memChunk))
		window = append(window, b...)
		if i := bytes.Index(window, pattern); i >= 0 {
			return text("1," + hexOf(start+uint64(i)))
		}
		if err != nil {
			return s.halted(addr, err)
		}
		addr += uint64(len(b))
		n -= uint64(len(b))
		if drop := uint64(len(window)) - min(keep, uint64(len(window))); drop > 0 {
			window = append(window[:0], window[drop:]...)
			start += drop
		}
	}
	if ctx.Err() != nil {
		return s.fail("interrupted")
	}
	return text("0")
}

// halted is the reply to a search that came to memory that cannot be read. gdb takes
// an error for "not found"; what is neither an answer nor an error it shows.
func (s *session) halted(addr uint64, err error) reply {
	msg := "searched up to 0x" + hexOf(addr) + " only: " + err.Error()
	if s.lldb {
		return s.fail(msg)
	}
	return text(clean(msg))
}

// crcTable is for the CRC of qCRC: polynomial 0x04c11db7, not reflected.
var crcTable = func() (t [256]uint32) {
	for i := range t {
		c := uint32(i) << 24
		for range 8 {
			if c&0x80000000 != 0 {
				c = c<<1 ^ 0x04c11db7
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return t
}()

// crc answers qCRC:ADDR,LEN, with which compare-sections checks memory.
func (s *session) crc(arg string) reply {
	addr, n, ok := parseRange(arg)
	if !ok {
		return replyError
	}
	r := replyError
	s.await("crc", func(ctx context.Context) {
		sum := ^uint32(0)
		for n > 0 {
			b, err := s.read(addr, min(n, memChunk))
			if err != nil || ctx.Err() != nil {
				return
			}
			for _, c := range b {
				sum = sum<<8 ^ crcTable[byte(sum>>24)^c]
			}
			addr += uint64(len(b))
			n -= uint64(len(b))
		}
		r = text("C" + hexOf(uint64(sum)))
	})
	return r
}
