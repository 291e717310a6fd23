package x86

import "encoding/binary"

// FXSAVE, FXRSTOR, XSAVE, XSAVEOPT, XSAVEC, XRSTOR and XGETBV (SDM vol. 1,
// ch. 10.5 and 13). Which components a save writes follows from the values in
// the registers (see State.inUse), so XSAVEOPT never skips a component for not
// being modified: that optimisation depends on history that no program can
// rely on, and no compiler or C library uses XSAVEOPT.

// layout returns the layout of the emulated CPU.
func (c *CPU) layout() *XLayout {
	if c.ID.Layout.XCR0 != 0 {
		return &c.ID.Layout
	}
	l := DefaultLayout(c.ID.Vendor, c.ID.XCR0|xfeatX87)
	return &l
}

// fxsave stores 416 bytes; the rest of the 512 is left as it was.
func fxsave(c *CPU, in *Inst) Exit {
	a := c.ea(in)
	if a&15 != 0 {
		return c.gp()
	}
	if e := c.probe(c.inArea(in, a, 511), 1, Store); e != ExitNone { // the last byte first
		return e
	}
	var b [416]byte
	c.FPU.save(b[:], in.Flags&InstW != 0, c.ID.Vendor)
	c.putMXCSR(b[:])
	c.storeXMM(b[160:])
	return c.storeBytes(a, b[:])
}

func (c *CPU) putMXCSR(b []byte) {
	binary.LittleEndian.PutUint32(b[24:], c.MXCSR)
	binary.LittleEndian.PutUint32(b[28:], mxcsrMask(c.ID.Vendor))
}

func fxrstor(c *CPU, in *Inst) Exit {
	a := c.ea(in)
	if a&15 != 0 {
		return c.gp()
	}
	if e := c.probe(c.inArea(in, a, 511), 1, Load); e != ExitNone { // the last byte first
		return e
	}
	var b [512]byte
	if e := c.loadBytes(a, b[:]); e != ExitNone {
		return e
	}
	mxcsr := binary.LittleEndian.Uint32(b[24:])
	if mxcsr&^mxcsrMask(c.ID.Vendor) != 0 {
		return c.gp()
	}
	c.FPU.restore(b[:], in.Flags&InstW != 0, c.layout())
	c.dropSelectors()
	c.MXCSR = mxcsr
	c.loadXMM(b[160:])
	c.NotInUse &^= xfeatX87 | xfeatSSE
	return ExitNone
}

// rfbm returns the requested-feature bitmap of layout l.
func (c *CPU) rfbm(l *XLayout) uint64 {
	return (c.R[RAX]&0xffffffff | c.R[RDX]<<32) & l.XCR0
}

// eachPart calls put with what a save stores of the components in bits, and of
// MXCSR where mxcsr is set: the component as a bit of XSTATE_BV, the offset by
// at, and the bytes, which put may not keep.
func (c *CPU) eachPart(l *XLayout, at *[64]uint32, bits uint64, mxcsr, wide bool, put func(component uint64, off uint32, b []byte)) {
	var legacy [416]byte
	c.FPU.save(legacy[:], wide, c.ID.Vendor)
	c.putMXCSR(legacy[:])
	c.storeXMM(legacy[160:])
	if bits&xfeatX87 != 0 {
		put(xfeatX87, 0, legacy[:24])
		put(xfeatX87, 32, legacy[32:160])
	}
	if mxcsr {
		put(xfeatSSE, 24, legacy[24:32])
	}
	if bits&xfeatSSE != 0 {
		put(xfeatSSE, 160, legacy[160:])
	}
	var b [1024]byte
	for i := 3; i < 63; i++ {
		if bits&^(xfeatModelled|xfeatPKRU)>>i&1 == 0 {
			continue
		}
		for off, n := uint32(0), l.moved(i); off < n; off += 256 {
			put(1<<i, at[i]+off, b[:min(256, n-off)])
		}
	}
	if bits&xfeatAVX != 0 {
		c.storeYMM(b[:])
		put(xfeatAVX, at[2], b[:256])
	}
	if bits&xfeatPKRU != 0 {
		binary.LittleEndian.PutUint64(b[:], uint64(c.PKRU))
		put(xfeatPKRU, at[numberPKRU], b[:l.moved(numberPKRU)])
	}
	for _, w := range wideComponents {
		if bits>>w.number&1 != 0 {
			c.storeWide(w.number, b[:])
			put(1<<w.number, at[w.number], b[:w.size])
		}
	}
}

// xsaveTo writes the components in bits, at the offsets of at, and MXCSR where
// mxcsr is set; header is what stands at the start of the header. The caller
// has probed the area.
func (c *CPU) xsaveTo(a uint64, l *XLayout, at *[64]uint32, bits uint64, mxcsr, wide bool, header []byte) Exit {
	exit := ExitNone
	put := func(_ uint64, off uint32, b []byte) {
		if exit == ExitNone {
			exit = c.storeBytes(a+uint64(off), b)
		}
	}
	c.eachPart(l, at, bits, mxcsr, wide, put)
	put(0, xsaveHeader, header)
	return exit
}

// xsave and xsaveopt write the standard format. XSTATE_BV keeps the bits that
// were not asked for; the rest of the header is not touched.
func xsave(c *CPU, in *Inst) Exit    { return c.xsaveStandard(in, false) }
func xsaveopt(c *CPU, in *Inst) Exit { return c.xsaveStandard(in, true) }

func (c *CPU) xsaveStandard(in *Inst, optimised bool) Exit {
	a := c.ea(in)
	if a&63 != 0 {
		return c.gp()
	}
	l := c.layout()
	rfbm := c.rfbm(l)
	mxcsr := rfbm&(xfeatSSE|xfeatAVX) != 0
	seen := rfbm
	if optimised {
		seen &^= xfeatTileData
	}
	if e := c.probeXSave(in, a, l.end(&l.Offsets, seen), firstMoved(rfbm, false)); e != ExitNone {
		return e
	}
	old, e := c.load64(a + xsaveHeader)
	if e != ExitNone {
		return e
	}
	wide := in.Flags&InstW != 0
	inuse, e := c.shown(c.inUse(c.ID.Vendor), rfbm, func(maybe uint64) InUse {
		return c.doubt(a, l, &l.Offsets, maybe, false, wide, optimised)
	})
	if e != ExitNone {
		return e
	}
	var header [8]byte
	binary.LittleEndian.PutUint64(header[:], old&^rfbm|inuse&rfbm)
	bits := rfbm
	if optimised {
		bits &= inuse
	}
	return c.xsaveTo(a, l, &l.Offsets, bits, mxcsr, wide, header[:])
}

// xsavec writes the compacted format, only what is in use.
func xsavec(c *CPU, in *Inst) Exit {
	a := c.ea(in)
	if a&63 != 0 {
		return c.gp()
	}
	l := c.layout()
	rfbm := c.rfbm(l)
	at := l.compacted(rfbm)
	if e := c.probeXSave(in, a, l.end(&at, rfbm&^xfeatTileData), firstMoved(rfbm, true)); e != ExitNone {
		return e // also where the component that faults is not in use
	}
	wide := in.Flags&InstW != 0
	inuse, e := c.shown(c.inUseMXCSR(c.ID.Vendor), rfbm, func(maybe uint64) InUse {
		return c.doubt(a, l, &at, maybe, maybe&xfeatSSE != 0, wide, true)
	})
	if e != ExitNone {
		return e
	}
	bits := rfbm & inuse
	var header [16]byte
	binary.LittleEndian.PutUint64(header[:], bits)
	binary.LittleEndian.PutUint64(header[8:], rfbm|xcompCompact)
	return c.xsaveTo(a, l, &at, bits, bits&xfeatSSE != 0, wide, header[:])
}

// probeXSave checks an area of n bytes for a save, in the order that decides
// which address a fault reports: AMD goes upward, Intel looks at the last byte
// first, then at the first one that it may write, which is at first.
func (c *CPU) probeXSave(in *Inst, a uint64, n int, first uint64) Exit {
	if c.ID.Vendor != VendorIntel {
		return c.probeArea(a, 1, n, Store)
	}
	if e := c.probe(c.inArea(in, a, uint64(n)-1), 1, Store); e != ExitNone {
		return e
	}
	return c.probeArea(a+first, 1, n-int(first), Store)
}

// firstMoved is the first byte of an area that Intel reads or writes: the x87
// state, MXCSR, which the compacted format has only with SSE, or the header.
func firstMoved(rfbm uint64, compact bool) uint64 {
	switch {
	case rfbm&xfeatX87 != 0:
		return 0
	case rfbm&xfeatSSE != 0, rfbm&xfeatAVX != 0 && !compact:
		return 24
	}
	return xsaveHeader
}

// end returns the size of an area with the components in bits.
func (l *XLayout) end(at *[64]uint32, bits uint64) int {
	n := uint32(xsaveExtended)
	for i := 2; i < 63; i++ {
		if bits>>i&1 != 0 {
			n = max(n, at[i]+l.Sizes[i])
		}
	}
	return int(n)
}

// compacted returns the offsets of the components of an XCOMP_BV.
func (l *XLayout) compacted(bits uint64) (at [64]uint32) {
	off := uint32(xsaveExtended)
	for i := 2; i < 63; i++ {
		if bits>>i&1 == 0 {
			continue
		}
		if l.Aligned>>i&1 != 0 {
			off = (off + 63) &^ 63
		}
		at[i] = off
		off += l.Sizes[i]
	}
	return at
}

// xrstor loads either format, as the header says.
func xrstor(c *CPU, in *Inst) Exit {
	a := c.ea(in)
	if a&63 != 0 {
		return c.gp()
	}
	l := c.layout()
	rfbm := c.rfbm(l)
	var b [xsaveExtended]byte
	if e := c.loadXHeader(in, a, b[:]); e != ExitNone {
		return e
	}
	at, bv, allowed, compact, ok := l.parseHeader(b[xsaveHeader:])
	intel := c.ID.Vendor == VendorIntel
	if intel {
		if e := c.loadLegacy(in, a, l, &at, rfbm, allowed, compact, b[:]); e != ExitNone {
			return e
		}
	}
	if !ok {
		return c.gp()
	}
	if !intel {
		if e := c.probeEnd(c.inArea(in, a, uint64(l.end(&at, rfbm))-1)); e != ExitNone {
			return e
		}
	}
	load := bv & rfbm
	mxcsr := binary.LittleEndian.Uint32(b[24:])
	loadMXCSR := rfbm&(xfeatSSE|xfeatAVX) != 0
	if compact {
		loadMXCSR = load&xfeatSSE != 0
	}
	wide := in.Flags&InstW != 0
	bad := loadMXCSR && mxcsr&^mxcsrMask(c.ID.Vendor) != 0
	switch {
	case !bad || compact && l.Narrow:
	case compact && intel: // finds it when it comes to the upper halves
		c.xrstorCommit(rfbm&^(load&xfeatAVX), load, b[:], nil, wide)
		return c.gp()
	case l.Narrow: // when it comes to MXCSR
		c.xrstorCommit(rfbm&xfeatX87, load, b[:], nil, wide)
		return c.gp()
	default:
		return c.gp()
	}
	var ext xextended
	if e := c.loadExtended(a, &at, load, &ext); e != ExitNone {
		return e
	}
	if bad { // behind all else
		c.xrstorCommit(rfbm, load, b[:], &ext, wide)
		return c.gp()
	}
	if e := c.xrstorOthers(a, l, &at, load&^(xfeatModelled|xfeatPKRU)); e != ExitNone {
		return e
	}
	c.xrstorCommit(rfbm, load, b[:], &ext, wide)
	switch {
	case loadMXCSR:
		c.MXCSR = mxcsr
	case rfbm&xfeatSSE != 0:
		c.MXCSR = mxcsrInit
	}
	return ExitNone
}

// probeEnd looks whether the last byte of an area can be loaded, as AMD does whether it is
// or not. What the byte holds does not matter, so it need not be known.
func (c *CPU) probeEnd(a uint64) Exit {
	e := c.probe(a, 1, Load)
	if e != ExitNone && c.Fault.Kind == FaultNotCaptured {
		return ExitNone
	}
	return e
}

// loadXHeader loads the header of an area, on AMD all that stands before it too.
// Intel looks at XCOMP_BV first, which says which format it is, and at nothing
// that is not asked for.
func (c *CPU) loadXHeader(in *Inst, a uint64, b []byte) Exit {
	if c.ID.Vendor == VendorIntel {
		if e := c.probe(c.inArea(in, a, xsaveHeader+8), 1, Load); e != ExitNone {
			return e
		}
		return c.loadBytes(a+xsaveHeader, b[xsaveHeader:])
	}
	if e := c.probe(a, 1, Load); e != ExitNone {
		return e
	}
	if e := c.probe(a+xsaveHeader, 64, Load); e != ExitNone {
		return e
	}
	return c.loadBytes(a, b)
}

// loadLegacy loads what stands before the header as Intel does: XCOMP_BV is
// judged, then the last byte of the area is looked at, then what is asked for is
// loaded; the rest of the header is judged afterwards.
func (c *CPU) loadLegacy(in *Inst, a uint64, l *XLayout, at *[64]uint32, rfbm, allowed uint64, compact bool, b []byte) Exit {
	if allowed&^l.XCR0 != 0 {
		return c.gp()
	}
	if e := c.probe(c.inArea(in, a, uint64(l.end(at, rfbm))-1), 1, Load); e != ExitNone {
		return e
	}
	first := firstMoved(rfbm&allowed, compact)
	return c.loadBytes(a+first, b[first:xsaveHeader])
}

// parseHeader checks the 64 bytes of an XSAVE header and returns where the
// components stand, XSTATE_BV, which components it may have, and whether the
// format is the compacted one.
func (l *XLayout) parseHeader(h []byte) (at [64]uint32, bv, allowed uint64, compact, ok bool) {
	bv, allowed = binary.LittleEndian.Uint64(h), l.XCR0
	comp := binary.LittleEndian.Uint64(h[8:])
	reserved := h[8:24]
	if compact = comp&xcompCompact != 0; compact {
		reserved, allowed = h[16:64], comp&^xcompCompact
		at = l.compacted(comp)
	} else {
		at = l.Offsets
	}
	return at, bv, allowed, compact, allZero(reserved) && bv&^allowed == 0 && allowed&^l.XCR0 == 0
}

// xextended holds the modelled components behind the header.
type xextended struct {
	ymm  [256]byte
	wide [len(wideComponents)][1024]byte
	pkru [4]byte
}

// loadExtended loads the modelled components behind the header that load names.
func (c *CPU) loadExtended(a uint64, at *[64]uint32, load uint64, ext *xextended) Exit {
	if load&xfeatAVX != 0 {
		if e := c.loadBytes(a+uint64(at[2]), ext.ymm[:]); e != ExitNone {
			return e
		}
	}
	if load&xfeatPKRU != 0 {
		if e := c.loadBytes(a+uint64(at[numberPKRU]), ext.pkru[:]); e != ExitNone {
			return e
		}
	}
	for i, w := range wideComponents {
		if load>>w.number&1 == 0 {
			continue
		}
		if e := c.loadBytes(a+uint64(at[w.number]), ext.wide[i][:w.size]); e != ExitNone {
			return e
		}
	}
	return ExitNone
}

// xrstorCommit loads the modelled components of rfbm, those not in load with
// their initial values.
func (c *CPU) xrstorCommit(rfbm, load uint64, legacy []byte, ext *xextended, wide bool) {
	if ext == nil {
		ext = new(xextended)
	}
	if rfbm&xfeatX87 != 0 {
		c.FPU.Reset()
		if load&xfeatX87 != 0 {
			c.FPU.restore(legacy, wide, c.layout())
			c.dropSelectors()
		}
	}
	if rfbm&xfeatSSE != 0 {
		if load&xfeatSSE == 0 {
			legacy = make([]byte, 416)
		}
		c.loadXMM(legacy[160:])
	}
	if rfbm&xfeatAVX != 0 {
		c.loadYMM(ext.ymm[:]) // zeros where it was not loaded
	}
	if rfbm&xfeatPKRU != 0 {
		c.PKRU = binary.LittleEndian.Uint32(ext.pkru[:])
	}
	for i, w := range wideComponents {
		if rfbm>>w.number&1 != 0 {
			c.loadWide(w.number, ext.wide[i][:])
		}
	}
	if c.apart() {
		c.stop |= stopCode
	}
	c.NotInUse &^= uint8(rfbm & load)
	c.unuse(uint8(rfbm & xfeatModelled &^ load))
}

// xrstorOthers looks at the components that the emulator does not model: zeros
// are their initial state, anything else is outside the emulated set.
func (c *CPU) xrstorOthers(a uint64, l *XLayout, at *[64]uint32, bits uint64) Exit {
	var buf [256]byte
	for i := 3; i < 63; i++ {
		if bits>>i&1 == 0 {
			continue
		}
		for off, n := uint32(0), l.moved(i); off < n; off += 256 {
			b := buf[:min(256, n-off)]
			if e := c.loadBytes(a+uint64(at[i]+off), b); e != ExitNone {
				return e
			}
			if !allZero(b) {
				c.undef.name = "XRSTOR of a state component that is not emulated"
				c.undef.n = 0
				return ExitUnsupported
			}
		}
	}
	return ExitNone
}

func allZero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// xgetbv reads XCR0, or the components of it that are in use.
func xgetbv(c *CPU, _ *Inst) Exit {
	l := c.layout()
	var v uint64
	switch uint32(c.R[RCX]) {
	case 0:
		v = l.XCR0
	case 1:
		inuse, e := c.shown(c.inUseMXCSR(c.ID.Vendor), l.XCR0, func(maybe uint64) InUse { return InUse{Maybe: maybe} })
		if e != ExitNone {
			return e
		}
		v = l.XCR0 & inuse
	default:
		return c.gp()
	}
	c.R[RAX], c.R[RDX] = v&0xffffffff, v>>32
	return ExitNone
}

// xsupervisor is XSAVES and XRSTORS, which user code may not execute.
func xsupervisor(c *CPU, _ *Inst) Exit { return c.gp() }
