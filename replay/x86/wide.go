package x86

import "encoding/binary"

// What AVX-512 adds to the state: mask registers, upper halves of the sixteen ZMM
// registers that AVX knows the lower halves of, and sixteen registers more.
//
// Whatever is encoded with VEX and writes a vector register clears that register up to
// bit 511. Options: a store in every handler, case of the loop and piece of generated code;
// a test at every instruction; none while there is nothing to clear. Chosen: none. Upper says
// which upper halves are not zero, and while there are any, instructions are executed
// one by one through their handlers (CPU.runApart), and CPU.exec clears what they
// must clear. Programs end such stretches by VZEROUPPER, and those that use
// ZMM16 to ZMM31 alone, as glibc does, are never in one.

// Wide is the state of AVX-512.
type Wide struct {
	K     [8]uint64 // the mask registers
	High  [16]Vec   // bits 511 to 256 of ZMM0 to ZMM15
	More  [16]zmm   // ZMM16 to ZMM31
	Upper uint16    // a bit for each of High that is not zero
}

// zmm is a vector register of 512 bits, low quadword first.
type zmm = [8]uint64

// wideComponent is a state component of AVX-512 (SDM vol. 1, 13.5.4).
type wideComponent struct {
	number uint
	size   int // bytes
}

var wideComponents = [...]wideComponent{{5, 64}, {6, 512}, {7, 1024}}

// wide returns the offset of a component, or 0 where the layout has none or places it
// outside size bytes.
func (l *XLayout) wide(w wideComponent, size int) int {
	off := int(l.Offsets[w.number])
	if l.XCR0>>w.number&1 == 0 || off < xsaveExtended || off+w.size > size {
		return 0
	}
	return off
}

// quads returns the quadwords of a component, one after the other.
func (w *Wide) quads(component uint, f func(q *uint64)) {
	switch component {
	case 5:
		for i := range w.K {
			f(&w.K[i])
		}
	case 6:
		for i := range w.High {
			for j := range w.High[i] {
				f(&w.High[i][j])
			}
		}
	default:
		for i := range w.More {
			for j := range w.More[i] {
				f(&w.More[i][j])
			}
		}
	}
}

// loadWide takes a component from b, storeWide puts it there.
func (s *State) loadWide(component uint, b []byte) {
	s.Wide.quads(component, func(q *uint64) {
		*q, b = binary.LittleEndian.Uint64(b), b[8:]
	})
	s.Wide.Look()
}

func (s *State) storeWide(component uint, b []byte) {
	s.Wide.quads(component, func(q *uint64) {
		binary.LittleEndian.PutUint64(b, *q)
		b = b[8:]
	})
}

// Look sets Upper by the values.
func (w *Wide) Look() {
	w.Upper = 0
	for i := range w.High {
		if w.High[i] != (Vec{}) {
			w.Upper |= 1 << i
		}
	}
}

// clearHigh clears the upper halves of the registers in set.
func (w *Wide) clearHigh(set uint16) {
	for i := range w.High {
		if set&w.Upper>>i&1 != 0 {
			w.High[i] = Vec{}
		}
	}
	w.Upper &^= set
}

// inUse returns the components that are not in their initial state.
func (w *Wide) inUse() (u uint64) {
	if w.K != [8]uint64{} {
		u |= xfeatMask
	}
	if w.Upper != 0 {
		u |= xfeatHigh
	}
	if w.More != [16]zmm{} {
		u |= xfeatMore
	}
	return u
}

// ZMM returns vector register n, 0 to 31.
func (s *State) ZMM(n uint8) zmm {
	if n >= 16 {
		return s.Wide.More[n&15]
	}
	v, h := &s.V[n], &s.Wide.High[n]
	return zmm{v[0], v[1], v[2], v[3], h[0], h[1], h[2], h[3]}
}

// SetZMM sets vector register n.
func (s *State) SetZMM(n uint8, z zmm) {
	if n >= 16 {
		s.Wide.More[n&15] = z
		return
	}
	s.V[n] = Vec(z[:4])
	h := Vec(z[4:])
	s.Wide.High[n] = h
	s.Wide.Upper &^= 1 << n
	if h != (Vec{}) {
		s.Wide.Upper |= 1 << n
	}
}

// setZMM is SetZMM as an instruction does it: the block ends where the state becomes
// one that engines do not know.
func (c *CPU) setZMM(n uint8, z *zmm) {
	was := c.Wide.Upper
	c.SetZMM(n, *z)
	if was == 0 && c.Wide.Upper != 0 {
		c.stop |= stopCode
	}
}

// destinations says by which fields an instruction names the vector registers that it
// writes.
type destinations uint8

const (
	destReg destinations = 1 << iota
	destRM
	destVVVV
	destFirst // XMM0
	destMask  // a mask register
	destZMM   // the vector register may be ZMM16 to ZMM31
)

// destinationsOf returns those of row r.
func destinationsOf(r *Row) (d destinations) {
	for i, at := range operandFields(r) {
		if i >= len(r.Dirs) || r.Dirs[i]&DirWrite == 0 {
			continue
		}
		switch o := r.Operands[i]; {
		case o[0] == 'k':
			d |= destMask
			continue
		case o[0] != 'x' && o[0] != 'y' && o[0] != 'z':
			continue
		case r.Encoding.EVEX:
			d |= destZMM
		}
		switch at {
		case fieldReg:
			d |= destReg
		case fieldRM:
			d |= destRM
		case fieldVVVV:
			d |= destVVVV
		case fieldNone, fieldIs4:
		}
	}
	if r.Encoding.EVEX && r.Attr("vsib") {
		d |= destMask // it is cleared
	}
	for _, i := range r.Implied {
		if i.Name == "xmm0" && i.Dir&DirWrite != 0 {
			d |= destFirst
		}
	}
	return d
}

// written returns the vector registers that in writes, of ZMM0 to ZMM15.
func (u *rowUse) written(in *Inst) (set uint16) {
	if u.dest&destReg != 0 {
		set |= 1 << (in.Reg & 15)
	}
	if u.dest&destRM != 0 && in.Flags&InstMem == 0 {
		set |= 1 << (in.RM & 15)
	}
	if u.dest&destVVVV != 0 {
		set |= 1 << (in.VVVV & 15)
	}
	if u.dest&destFirst != 0 {
		set |= 1
	}
	return set
}

// ofWide returns the components that an instruction of AVX-512 puts in use, on Intel: as
// each has its own bit, from what it writes.
func (u *rowUse) ofWide(in *Inst) (set uint8) {
	if u.dest&destMask != 0 {
		set |= xfeatMask
	}
	if u.dest&destZMM == 0 || u.dest&destRM != 0 && in.Flags&InstMem != 0 {
		return set
	}
	n := in.Reg
	switch {
	case u.dest&destRM != 0:
		n = in.RM
	case u.dest&destVVVV != 0:
		n = in.VVVV
	}
	if n >= 16 {
		return set | xfeatMore
	}
	set |= xfeatSSE
	length := in.EVEX.length()
	switch {
	case u.scalar:
		return set
	case in.EVEX.broadcasts() && in.Flags&InstMem == 0:
		length = 2 // the field is the rounding mode
	}
	if length > 0 {
		set |= xfeatAVX
	}
	if length > 1 {
		set |= xfeatHigh
	}
	return set
}
