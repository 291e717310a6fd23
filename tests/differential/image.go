package differential

import (
	"encoding/binary"

	"vplay/replay/x86"
)

// The XSAVE image that the harness loads and stores, to and from the registers of a
// case. The layout is from the SDM, vol. 1, 13.4.

// The XSAVE image, standard form (SDM vol. 1, 13.4): 512 bytes legacy area, 64
// bytes header, 256 bytes upper halves of YMM0 to YMM15. What AVX-512 adds, whose place
// differs between CPUs, stands behind it as the harness has it: mask registers, upper halves of
// ZMM0 to ZMM15, ZMM16 to ZMM31.
const (
	wideSize = 64 + 512 + 1024

	xsaveSize   = 832
	xsaveHeader = 512
	xsaveYMM    = 576
	xsaveXMM    = 160
	xsaveX87    = 32
)

// encodeImage writes the vector and x87 part of r as an XSAVE image.
func encodeImage(r *Regs, b []byte) {
	le := binary.LittleEndian
	f := &r.FPU
	clear(b[:xsaveSize])
	le.PutUint16(b[0:], f.CW)
	le.PutUint16(b[2:], f.Status())
	b[4] = f.Tag
	le.PutUint16(b[6:], f.FOP)
	le.PutUint64(b[8:], f.FIP)
	le.PutUint64(b[16:], f.FDP)
	le.PutUint32(b[24:], r.MXCSR)
	for i := range 8 {
		v := f.R[(int(f.Top)+i)&7]
		le.PutUint64(b[xsaveX87+16*i:], v.M)
		le.PutUint16(b[xsaveX87+16*i+8:], v.E)
	}
	for i := range r.V {
		le.PutUint64(b[xsaveXMM+16*i:], r.V[i][0])
		le.PutUint64(b[xsaveXMM+16*i+8:], r.V[i][1])
		le.PutUint64(b[xsaveYMM+16*i:], r.V[i][2])
		le.PutUint64(b[xsaveYMM+16*i+8:], r.V[i][3])
	}
	le.PutUint64(b[xsaveHeader:], 7)
}

// decodeImage is the inverse of encodeImage. A component that is in its
// initial configuration (XSTATE_BV bit clear) takes its initial values.
func decodeImage(b []byte, r *Regs) {
	le := binary.LittleEndian
	present := le.Uint64(b[xsaveHeader:])
	r.MXCSR = le.Uint32(b[24:])
	f := &r.FPU
	f.Reset()
	if present&1 != 0 {
		f.CW = le.Uint16(b[0:])
		sw := le.Uint16(b[2:])
		f.Top = uint8(sw>>11) & 7
		f.SW = sw &^ (7 << 11)
		f.Tag = b[4]
		f.FOP = le.Uint16(b[6:])
		f.FIP = le.Uint64(b[8:])
		f.FDP = le.Uint64(b[16:])
		for i := range 8 {
			f.R[(int(f.Top)+i)&7] = x86.F80{M: le.Uint64(b[xsaveX87+16*i:]), E: le.Uint16(b[xsaveX87+16*i+8:])}
		}
	}
	for i := range r.V {
		r.V[i] = x86.Vec{}
		if present&2 != 0 {
			r.V[i][0] = le.Uint64(b[xsaveXMM+16*i:])
			r.V[i][1] = le.Uint64(b[xsaveXMM+16*i+8:])
		}
		if present&4 != 0 {
			r.V[i][2] = le.Uint64(b[xsaveYMM+16*i:])
			r.V[i][3] = le.Uint64(b[xsaveYMM+16*i+8:])
		}
	}
}

// encodeWide writes what AVX-512 adds, decodeWide is the inverse.
func encodeWide(w *x86.Wide, b []byte) {
	eachQuad(w, func(q *uint64) {
		binary.LittleEndian.PutUint64(b, *q)
		b = b[8:]
	})
}

func decodeWide(b []byte, w *x86.Wide) {
	eachQuad(w, func(q *uint64) {
		*q, b = binary.LittleEndian.Uint64(b), b[8:]
	})
	w.Look()
}

func eachQuad(w *x86.Wide, f func(q *uint64)) {
	for i := range w.K {
		f(&w.K[i])
	}
	for i := range w.High {
		for j := range w.High[i] {
			f(&w.High[i][j])
		}
	}
	for i := range w.More {
		for j := range w.More[i] {
			f(&w.More[i][j])
		}
	}
}
