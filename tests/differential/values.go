package differential

import (
	"strings"

	"vplay/replay/x86"
)

// Biased random values: mostly near the edges where implementations go wrong.

var edgeInts = []uint64{
	0, 1, 2, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 0x7f, 0x80, 0x81, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000,
	0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0x100000000, 1<<63 - 1, 1 << 63, 1<<63 + 1, ^uint64(1), ^uint64(0),
	0x00ff00ff00ff00ff, 0x5555555555555555, 0xaaaaaaaaaaaaaaaa, 0xffffffff00000000, 0x8000000080000000, 0x7fff80007fff8000,
}

func randInt(r *random) uint64 {
	switch r.IntN(8) {
	case 0, 1:
		return edgeInts[r.IntN(len(edgeInts))]
	case 2:
		return uint64(r.IntN(256))
	case 3:
		return 1 << r.IntN(64)
	case 4:
		return -(uint64(1) << r.IntN(64))
	case 5:
		n := r.IntN(64)
		return uint64(int64(r.Uint64()<<n) >> n)
	}
	return r.Uint64()
}

var edge32 = []uint32{
	0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff,
	0x7fa00000, 0x7fc12345, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x00800001, 0x7f7fffff, 0xff7fffff, 0x3f000000, 0x3fc00000, 0x40200000, 0xbf000000, 0x4b000000, 0x4b000001,
	0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x5f000000, 0x5effffff, 0xdf000000, 0x47000000, 0x3effffff, 0x4affffff,
}

func randF32(r *random) uint32 {
	switch r.IntN(6) {
	case 0, 1:
		return edge32[r.IntN(len(edge32))]
	case 2: // near one
		return uint32(r.IntN(2))<<31 | uint32(127-30+r.IntN(64))<<23 | r.Uint32()&0x7fffff
	case 3: // few bits
		return uint32(r.IntN(2))<<31 | uint32(r.IntN(256))<<23 | r.Uint32()&0x7fffff&(^uint32(0)<<r.IntN(24))
	case 4: // near the limits of the exponent
		return uint32(r.IntN(2))<<31 | []uint32{0, 1, 2, 24, 64, 126, 128, 190, 252, 253, 254}[r.IntN(11)]<<23 | r.Uint32()&0x7fffff
	}
	return r.Uint32()
}

var edge64 = []uint64{
	0, 1 << 63, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
	0xfff8000000000000, 0x7ff0000000000001, 0xfff0000000000001, 0x7fffffffffffffff, 0x7ff4000000000000, 0x7ff8123456789abc, 1, 1<<63 | 1,
	0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x3fe0000000000000, 0x3ff8000000000000,
	0x4330000000000000, 0x4330000000000001, 0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000, 0xc1e0000000200000, 0x41dfffffffe00000,
	0x43e0000000000000, 0x43dfffffffffffff, 0xc3e0000000000000, 0x47efffffe0000000, 0x47efffffefffffff, 0x47effffff0000000, 0x380fffffffffffff,
	0x3690000000000000, 0x36a0000000000000, 0x3810000000000000, 0x380fffffe0000000,
}

func randF64(r *random) uint64 {
	sign := uint64(r.IntN(2)) << 63
	m := r.Uint64() & (1<<52 - 1)
	switch r.IntN(7) {
	case 0, 1:
		return edge64[r.IntN(len(edge64))]
	case 2:
		return sign | uint64(1023-70+r.IntN(140))<<52 | m
	case 3:
		return sign | uint64(r.IntN(2048))<<52 | m&(^uint64(0)<<r.IntN(53))
	case 4:
		return sign | []uint64{0, 1, 2, 53, 512, 896, 1022, 1024, 1150, 1535, 2044, 2045, 2046}[r.IntN(13)]<<52 | m
	case 5: // near the range of float32
		return sign | uint64(1023-152+r.IntN(8)+r.IntN(2)*272)<<52 | m
	}
	return r.Uint64()
}

func randF80(r *random) x86.F80 {
	sign := uint16(r.IntN(2)) << 15
	m := []uint64{0, 1, 1 << 63, 1<<63 | 1, ^uint64(0), 3 << 62, 1 << 62, 0xfffffffffffff800, 0x8000000000000400, 0xffffff8000000000, 0xffffff0000000000}[r.IntN(11)]
	if r.IntN(2) == 0 {
		m = r.Uint64() | 1<<63
		if r.IntN(3) == 0 {
			m &= ^uint64(0) << r.IntN(64)
		}
	}
	e := []uint16{0, 1, 2, 0x3ffe, 0x3fff, 0x4000, 0x3bff, 0x3c01, 0x3f80, 0x3f81, 0x401e, 0x403d, 0x403e, 0x403f, 0x407e, 0x407f, 0x43fe, 0x43ff, 0x7ffd, 0x7ffe, 0x7fff}[r.IntN(21)]
	switch r.IntN(4) {
	case 0:
		e = uint16(0x3fff - 66 + r.IntN(132))
	case 1:
		e = uint16(r.Uint32()) & 0x7fff
	}
	switch {
	case r.IntN(12) == 0:
		return x86.F80{E: sign} // zero
	case e != 0 && r.IntN(16) != 0:
		m |= 1 << 63
	case e == 0 && r.IntN(8) != 0:
		m &^= 1 << 63
	}
	return x86.F80{M: m, E: sign | e}
}

// lane is a kind of element that vector registers and memory are filled with.
type lane int

const (
	laneInt lane = iota
	laneF32
	laneF64
	laneBytes
	laneF80
)

// laneOf guesses from the mnemonic what a row computes with.
func laneOf(row *x86.Row, r *random) lane {
	m := row.Mnemonic
	if r.IntN(10) == 0 {
		return lane(r.IntN(5))
	}
	switch {
	case strings.HasPrefix(m, "CVT"), strings.HasPrefix(m, "VCVT"):
		return []lane{laneInt, laneF32, laneF64}[r.IntN(3)]
	case strings.HasPrefix(m, "F") && row.Encoding.Map == 0:
		return []lane{laneInt, laneF32, laneF64, laneF80}[r.IntN(4)]
	case strings.HasSuffix(m, "PS"), strings.HasSuffix(m, "SS"):
		return laneF32
	case strings.HasSuffix(m, "PD"), strings.HasSuffix(m, "SD"):
		return laneF64
	case strings.HasPrefix(m, "P"), strings.HasPrefix(m, "VP"):
		return []lane{laneInt, laneBytes, laneBytes}[r.IntN(3)]
	}
	return laneInt
}

// randQuad returns eight bytes of the kind.
func randQuad(l lane, r *random) uint64 {
	switch l {
	case laneF32:
		return uint64(randF32(r)) | uint64(randF32(r))<<32
	case laneF64:
		return randF64(r)
	case laneF80:
		return randF80(r).M
	case laneBytes:
		var v uint64
		for range 8 {
			v = v<<8 | []uint64{0, 1, 0x7f, 0x80, 0xff, uint64(r.IntN(256)), uint64('a' + r.IntN(3)), uint64(r.IntN(16))}[r.IntN(8)]
		}
		return v
	case laneInt:
	}
	return randInt(r)
}
