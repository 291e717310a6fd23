package x86

import "math/bits"

// The EVEX-encoded forms share the element arithmetic of the older ones. What
// differs is the same for all of them, and stands here: 32 registers of up to 512 bits,
// masks, elements broadcast from memory, and rounding in the encoding. A row's handler is
// made from an element function: evQuads(laneAddD) is VPADDD.

// evexOp is one instruction on its way: sources, result, and what is masked.
type evexOp struct {
	form  *evexForm
	n     int    // elements
	mask  uint64 // a bit for each, all ones without a mask register
	quads int    // quadwords of the vector length
	a, b  zmm    // the register in vvvv, and the one in ModRM.rm or memory
	r     zmm
}

// vectorLength returns the quadwords of the vector length.
func (in *Inst) vectorLength() int {
	if in.EVEX.broadcasts() && in.Flags&InstMem == 0 {
		return 8 // L'L is the rounding mode
	}
	return 2 << in.EVEX.length()
}

// allOf returns a mask of n elements.
func allOf(n int) uint64 { return ^uint64(0) >> (64 - n) }

// maskOf returns the mask for n elements.
func (c *CPU) maskOf(in *Inst, n int) uint64 {
	if k := in.EVEX.Mask(); k != 0 {
		return c.Wide.K[k] & allOf(n)
	}
	return allOf(n)
}

// spreadMaskBits makes full elements of bytes bytes from bits of a mask: of quadword i
// of a vector.
func spreadMaskBits(mask uint64, bytes uint8, i int) uint64 {
	switch bytes {
	case 8:
		return -(mask >> i & 1)
	case 4:
		mask >>= 2 * i
		return dwords(-(mask & 1), -(mask >> 1 & 1))
	case 2:
		mask >>= 4 * i
		return words(-(mask & 1), -(mask >> 1 & 1), -(mask >> 2 & 1), -(mask >> 3 & 1))
	}
	m := mask >> (8 * i) & 0xff * 0x0101010101010101 & 0x8040201008040201
	return ^laneEqB(m, 0)
}

// open loads the sources and the mask of in.
func (c *CPU) open(in *Inst, o *evexOp) (e Exit) {
	f := &tablesVar.rows[in.Row].evex
	o.form, o.quads = f, in.vectorLength()
	o.n = 8 * o.quads / int(max(f.unit, f.elem))
	o.mask = c.maskOf(in, o.n)
	if f.flags&evexVVVV != 0 {
		o.a = c.ZMM(in.VVVV)
	}
	o.b, e = c.evexSource(in, f, o.n, o.mask)
	return e
}

// evexSource returns the operand of ModRM.rm: n elements, of which those not in mask need
// not be there in memory.
func (c *CPU) evexSource(in *Inst, f *evexForm, n int, mask uint64) (zmm, Exit) {
	if in.Flags&InstMem == 0 {
		return c.ZMM(in.RM), ExitNone
	}
	a := c.ea(in)
	if in.EVEX.broadcasts() && f.flags&evexBroadcast != 0 {
		if mask == 0 && f.flags&evexEager == 0 {
			return zmm{}, ExitNone
		}
		x, e := c.loadN(a, f.bytes)
		if f.bytes == 4 {
			x |= x << 32
		}
		return zmm{x, x, x, x, x, x, x, x}, e
	}
	size := f.memory(in.EVEX)
	if f.flags&evexEager != 0 || in.EVEX.Mask() == 0 {
		return c.loadZMM(a, size)
	}
	return c.loadMasked(in, size, int(f.unit), mask)
}

// loadZMM loads size bytes, at most 64.
func (c *CPU) loadZMM(a uint64, size int) (z zmm, e Exit) {
	var b [64]byte
	if e = c.loadBytes(a, b[:size]); e != ExitNone {
		return z, e
	}
	for i := range z {
		z[i] = le.Uint64(b[8*i:])
	}
	return z, ExitNone
}

// loadMasked loads size bytes, of which only the elements in mask need to be there.
func (c *CPU) loadMasked(in *Inst, size, unit int, mask uint64) (z zmm, e Exit) {
	var b [64]byte
	a, e := c.elementsAt(in, size, unit, mask, Load)
	if e != ExitNone {
		return z, e
	}
	if e = c.maskedRange(a, size, unit, mask, Load); e != ExitNone {
		return z, e
	}
	e = eachRun(size, unit, mask, func(from, to int) Exit {
		e := c.loadBytes(a+uint64(from), b[from:to])
		return c.firstFault(e, a, from, to, unit, Load)
	})
	for i := range z {
		z[i] = le.Uint64(b[8*i:])
	}
	return z, e
}

// close writes the result.
func (c *CPU) close(in *Inst, o *evexOp) Exit {
	c.put(in, in.Reg, &o.r, o.n, o.form.elem, o.mask)
	return ExitNone
}

// put writes n elements of bytes bytes, 0 for all of a vector without masks, to a
// register: those not in mask stay as they were or become zero, and so does what is above.
func (c *CPU) put(in *Inst, reg uint8, r *zmm, n int, bytes uint8, mask uint64) {
	size := in.vectorLength()
	if bytes != 0 && n*int(bytes) < 8*size {
		size = (n*int(bytes) + 7) / 8
		if rest := n * int(bytes) & 7; rest != 0 {
			r[size-1] &= 1<<(8*rest) - 1
		}
	}
	clear(r[size:])
	if in.EVEX.Mask() != 0 && bytes != 0 {
		var old zmm
		if !in.EVEX.zeroes() {
			old = c.ZMM(reg)
		}
		for i := range size {
			keep := ^uint64(0)
			if n*int(bytes) < 8 {
				keep = 1<<(8*n*int(bytes)) - 1
			}
			r[i] = pick(spreadMaskBits(mask, bytes, i), r[i], old[i]&keep)
		}
	}
	c.setZMM(reg, r)
}

// keep writes n elements of bytes bytes to ModRM.rm, a register or memory.
func (c *CPU) keep(in *Inst, r *zmm, n int, bytes uint8, mask uint64) Exit {
	if in.Flags&InstMem == 0 {
		c.put(in, in.RM, r, n, bytes, mask)
		return ExitNone
	}
	return c.storeMasked(in, r, n*int(bytes), int(bytes), mask)
}

// storeMasked stores the elements of r that are in mask, all of them or none.
func (c *CPU) storeMasked(in *Inst, r *zmm, size, unit int, mask uint64) Exit {
	if in.EVEX.Mask() == 0 {
		return c.storeZMM(c.ea(in), r, size)
	}
	return c.storeElements(in, r, size, unit, mask)
}

// storeZMM stores size bytes of r, at most 64. AMD stores 64 bytes in halves: what the first
// meets comes before an address in the second that is not canonical (family 25 model 17).
func (c *CPU) storeZMM(a uint64, r *zmm, size int) Exit {
	b := zmmBytes(r)
	e := c.storeBytes(a, b[:size])
	if e != ExitNone && size == 64 && c.amd() {
		if x := c.probe(a, 32, Store); x != ExitNone {
			return x
		}
	}
	return e
}

// storeElements stores the elements of r that are in mask, one by one where it comes to faults.
func (c *CPU) storeElements(in *Inst, r *zmm, size, unit int, mask uint64) Exit {
	a, e := c.elementsAt(in, size, unit, mask, Store)
	if e != ExitNone {
		return e
	}
	if e := c.probeElements(in, a, size, unit, mask); e != ExitNone {
		return e
	}
	b := zmmBytes(r)
	return eachRun(size, unit, mask, func(from, to int) Exit {
		return c.storeBytes(a+uint64(from), b[from:to])
	})
}

// zmmBytes returns a register as it is in memory.
func zmmBytes(z *zmm) (b [64]byte) {
	for i := range z {
		le.PutUint64(b[8*i:], z[i])
	}
	return b
}

// probeMasked looks whether storeMasked can store.
func (c *CPU) probeMasked(in *Inst, size, unit int, mask uint64) Exit {
	if in.EVEX.Mask() == 0 {
		return c.probe(c.ea(in), size, Store)
	}
	a, e := c.elementsAt(in, size, unit, mask, Store)
	if e != ExitNone {
		return e
	}
	return c.probeElements(in, a, size, unit, mask)
}

// probeElements looks whether the elements in mask can be stored.
func (c *CPU) probeElements(in *Inst, a uint64, size, unit int, mask uint64) Exit {
	if e := c.maskedRange(a, size, unit, mask, Store); e != ExitNone {
		return e
	}
	e := eachRun(size, unit, mask, func(from, to int) Exit {
		e := c.probe(a+uint64(from), to-from, Store)
		return c.firstFault(e, a, from, to, unit, Store)
	})
	if e == ExitFault && in.EVEX.Mask() != 0 && tablesVar.rows[in.Row].evex.flags&evexLIG == 0 && !c.amd() {
		c.lastOfSplit(a, size, unit, mask)
	}
	return e
}

// lastOfSplit makes the address of a fault that of the last byte in mask where bytes of the page before were to be stored,
// too, as Intel does (family 6 model 85).
func (c *CPU) lastOfSplit(a uint64, size, unit int, mask uint64) {
	mask &= 1<<(size/unit) - 1
	first, last := a+uint64(bits.TrailingZeros64(mask)*unit), a+uint64(bits.Len64(mask)*unit)-1
	if first/pageSize != c.Fault.Addr/pageSize {
		c.Fault.Addr = last
	}
}

// firstFault returns what the elements between from and to raise, which is e together, one
// after the other.
func (c *CPU) firstFault(e Exit, a uint64, from, to, unit int, k Access) Exit {
	for at := from; e != ExitNone && at < to; at += unit {
		if x := c.probe(a+uint64(at), unit, k); x != ExitNone {
			return x
		}
	}
	return e
}

// elementsAt returns the address of an operand of which the elements in mask are accessed. With a
// segment it is the offset of each of these that must be canonical on AMD (segment): the others'
// need not be. What an element before the first such raises comes first.
func (c *CPU) elementsAt(in *Inst, size, unit int, mask uint64, k Access) (a uint64, e Exit) {
	if in.Seg == NoSeg || !c.amd() {
		return c.ea(in), ExitNone
	}
	flat := *in
	flat.Seg = NoSeg
	off := c.ea(&flat)
	if a = c.ea(in); canonical(off) && canonical(off+uint64(size)-1) {
		return a, ExitNone
	}
	a = off + c.segmentBase(in.Seg)
	e = eachRun(size, unit, mask, func(from, to int) Exit {
		for at := uint64(from); at < uint64(to); at += uint64(unit) {
			if e := c.checkCanonical(off+at, unit, k); e != ExitNone {
				return e
			}
			if e := c.probe(a+at, unit, k); e != ExitNone {
				return e
			}
		}
		return ExitNone
	})
	return a, e
}

// maskedRange raises #GP where an element in mask has an address that is not canonical. On
// Intel that comes before the page faults of all elements: so is the order of the SDM (vol. 3A,
// Priority Among Concurrent Events), and VMASKMOV was seen to do it (maskRange); EVEX forms were
// not tried. AMD goes from element to element.
func (c *CPU) maskedRange(a uint64, size, unit int, mask uint64, k Access) Exit {
	first, end := bits.TrailingZeros64(mask)*unit, min(bits.Len64(mask)*unit, size)
	if c.amd() || first >= end {
		return ExitNone
	}
	return c.checkCanonical(a+uint64(first), end-first, k)
}

// eachRun calls f with each range of bytes of an operand of size bytes whose elements, of
// unit bytes, are in mask.
func eachRun(size, unit int, mask uint64, f func(from, to int) Exit) Exit {
	for mask != 0 {
		first := bits.TrailingZeros64(mask)
		end := first + bits.TrailingZeros64(^(mask >> first))
		from, to := min(first*unit, size), min(end*unit, size)
		if from == to {
			break
		}
		if e := f(from, to); e != ExitNone {
			return e
		}
		if end == 64 {
			break
		}
		mask = mask >> end << end
	}
	return ExitNone
}

// putMask writes a result of n bits to the mask register in ModRM.reg; bits that the
// mask leaves out become zero.
func (c *CPU) putMask(in *Inst, r, mask uint64) Exit {
	c.Wide.K[in.Reg&7] = r & mask
	return ExitNone
}

// control returns MXCSR as in has it, and whether in suppresses exceptions.
func (c *CPU) control(in *Inst, f *evexForm) (m mxcsr, quiet bool) {
	m = mxcsr(c.MXCSR)
	if !in.EVEX.broadcasts() || in.Flags&InstMem != 0 {
		return m, false
	}
	if f.flags&evexRound != 0 {
		m = m&^mxRC | mxcsr(in.EVEX.length())<<mxRCShift
	}
	return m | mxFlags<<mxMaskShift, true
}

// settle raises the exceptions of fl unless in suppresses them.
func (c *CPU) settle(fl mxcsr, quiet bool) Exit {
	if fl == 0 || quiet {
		return ExitNone
	}
	return c.raise(fl)
}
