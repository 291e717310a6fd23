package x86

// EVEX gathers and scatters. Elements are accessed lowest first; each one that is done
// clears its bit of the mask register, so that an instruction that faulted goes on where it
// stopped.

// vectorMemory is the memory operand of a gather or scatter.
type vectorMemory struct {
	n            int
	index        zmm
	indexWidth   uint
	elementWidth uint
	base         uint64
	k            *uint64 // the mask register
}

// vectorMemory returns what in addresses: elements of the row, indexes of width bits.
func (c *CPU) vectorMemory(in *Inst, width uint) vectorMemory {
	f := &tablesVar.rows[in.Row].evex
	m := vectorMemory{
		indexWidth: width, elementWidth: uint(f.elem) * 8, index: c.ZMM(in.Index), k: &c.Wide.K[in.EVEX.Mask()],
	}
	m.n = 64 * in.vectorLength() / int(max(m.indexWidth, m.elementWidth))
	scalar := *in // the address without the index
	scalar.Index = NoReg
	scalar.Seg, scalar.Flags = NoSeg, in.Flags&^InstAddr32
	m.base = c.ea(&scalar)
	return m
}

// address returns that of element i.
func (m *vectorMemory) address(c *CPU, in *Inst, i int) uint64 {
	x := element(&m.index, m.indexWidth, i)
	if m.indexWidth == 32 {
		x = uint64(int64(int32(x)))
	}
	return c.gatherAddress(in, m.base, int64(x))
}

// evGather loads elements by indexes of width bits.
//
//go:noinline
func evGather(width uint) Handler {
	return func(c *CPU, in *Inst) Exit {
		m := c.vectorMemory(in, width)
		d, before := c.ZMM(in.Reg), *m.k
		for i := range m.n {
			if *m.k>>i&1 == 0 {
				continue
			}
			v, e := c.loadN(m.address(c, in, i), uint8(m.elementWidth/8))
			if e != ExitNone {
				if *m.k != before {
					clear(d[in.vectorLength():])
				}
				c.setZMM(in.Reg, &d)
				return e
			}
			setElement(&d, m.elementWidth, i, v)
			*m.k &^= 1 << i
		}
		*m.k = 0
		clear(d[(m.n*int(m.elementWidth)+63)/64:])
		c.setZMM(in.Reg, &d)
		return ExitNone
	}
}

// evScatter stores elements by indexes of width bits.
//
//go:noinline
func evScatter(width uint) Handler {
	return func(c *CPU, in *Inst) Exit {
		m := c.vectorMemory(in, width)
		s := c.ZMM(in.Reg)
		for i := range m.n {
			if *m.k>>i&1 == 0 {
				continue
			}
			if e := c.storeN(m.address(c, in, i), uint8(m.elementWidth/8), element(&s, m.elementWidth, i)); e != ExitNone {
				return e
			}
			*m.k &^= 1 << i
		}
		*m.k = 0
		return ExitNone
	}
}
