package corefile

import (
	"encoding/binary"
	"slices"

	"vplay/checkpoint"
)

// The layout of extended state (SDM vol. 1, chapter 13). Core files of Linux 6.12 and later
// say it in a note. In older ones the components are where the makers of CPUs have them: AVX at
// the same place always, of AVX-512 and PKRU there are two ways, which the size tells apart.

const (
	legacySize = 512 // what FXSAVE writes
	xsaveMin   = 576 // with the header
	xcr0At     = 464 // where Linux puts XCR0 into the legacy region (asm/user.h, user_xstateregs)

	bitsLegacy = 1<<0 | 1<<1 // x87 and SSE
	bitAVX     = 1 << 2
	compacted  = 1 << 63
)

// xsave is the layout of the extended state of all threads.
type xsave struct {
	xcr0       uint64
	components []checkpoint.XSAVEComponent
}

// The places of the components by their makers.
var (
	layoutIntel = []checkpoint.XSAVEComponent{
		{Index: 2, Offset: 576, Size: 256}, {Index: 3, Offset: 960, Size: 64}, {Index: 4, Offset: 1024, Size: 64}, {Index: 5, Offset: 1088, Size: 64},
		{Index: 6, Offset: 1152, Size: 512}, {Index: 7, Offset: 1664, Size: 1024}, {Index: 9, Offset: 2688, Size: 8},
	}
	layoutAMD = []checkpoint.XSAVEComponent{
		{Index: 2, Offset: 576, Size: 256}, {Index: 5, Offset: 832, Size: 64}, {Index: 6, Offset: 896, Size: 512},
		{Index: 7, Offset: 1408, Size: 1024}, {Index: 9, Offset: 2432, Size: 8},
	}
)

// noteLayout reads NT_X86_XSAVE_LAYOUT: rows of four u32, which are number, size, offset and
// flags (uapi/asm/elf.h).
func (c *Core) noteLayout(b []byte) error {
	le := binary.LittleEndian
	var list []checkpoint.XSAVEComponent
	for ; len(b) >= 16; b = b[16:] {
		x := checkpoint.XSAVEComponent{Index: le.Uint32(b), Size: le.Uint32(b[4:]), Offset: le.Uint32(b[8:])}
		if x.Index < 2 || x.Index > 62 || x.Offset < xsaveMin || x.Offset > 64<<10 || x.Size > 64<<10 || len(list) > 0 && x.Index <= list[len(list)-1].Index {
			return c.damaged("its note NT_X86_XSAVE_LAYOUT says component %d is %d bytes at %d", x.Index, x.Size, x.Offset)
		}
		list = append(list, x)
	}
	c.layout = list
	return nil
}

// xsave returns the layout. Of components that it cannot place nothing is in XCR0.
func (c *Core) xsave() xsave {
	var x xsave
	size := 0
	for i := range c.threads {
		if img := c.threads[i].xstate; img != nil {
			le := binary.LittleEndian
			x.xcr0 |= le.Uint64(img[xcr0At:])
			size = max(size, len(img))
		}
	}
	known := c.layout
	if known == nil {
		known = layoutAMD
		if !fits(layoutAMD, x.xcr0, size) || fits(layoutIntel, x.xcr0, size) {
			known = layoutIntel
		}
	}
	has := uint64(bitsLegacy)
	for _, k := range known {
		if x.xcr0>>k.Index&1 != 0 {
			has |= 1 << k.Index
			x.components = append(x.components, k)
		}
	}
	x.xcr0 = has
	return x
}

// fits reports whether all components of xcr0 lie within size bytes in a layout.
func fits(layout []checkpoint.XSAVEComponent, xcr0 uint64, size int) bool {
	for _, k := range layout {
		if xcr0>>k.Index&1 != 0 && int(k.Offset+k.Size) > size {
			return false
		}
	}
	return true
}

// image returns the XSAVE image of a thread in standard format. ok is false where the core file has no
// such state of the thread: the image is then that of a processor that was just started.
func (x *xsave) image(t *thread) (img []byte, ok bool) {
	le := binary.LittleEndian
	legacy := t.floats
	if t.xstate != nil {
		in := le.Uint64(t.xstate[legacySize:])
		if le.Uint64(t.xstate[legacySize+8:])&compacted == 0 && fits(x.components, in, len(t.xstate)) && in&bitAVX&^x.xcr0 == 0 {
			return t.xstate, true
		}
		legacy = t.xstate[:legacySize]
	}
	img = make([]byte, xsaveMin)
	if legacy != nil {
		copy(img, legacy)
		le.PutUint64(img[legacySize:], bitsLegacy)
	}
	return img, legacy != nil
}

// identity describes a CPU of which the extended state alone is known.
func (x *xsave) identity() checkpoint.Identity {
	id := checkpoint.Identity{XCR0: x.xcr0, XSAVE: x.components}
	size := uint32(xsaveMin)
	for _, k := range x.components {
		size = max(size, k.Offset+k.Size)
	}
	const leaf = 0xd
	id.CPUID = append(id.CPUID, checkpoint.CPUIDLeaf{Leaf: leaf, EAX: uint32(x.xcr0), EBX: size, ECX: size, EDX: uint32(x.xcr0 >> 32)})
	for _, k := range x.components {
		id.CPUID = append(id.CPUID, checkpoint.CPUIDLeaf{Leaf: leaf, Subleaf: k.Index, EAX: k.Size, EBX: k.Offset})
	}
	return id
}

// isOf reports whether a CPU has the layout: an image of one that does not would be misread.
func (x *xsave) isOf(id *checkpoint.Identity) bool {
	if len(id.CPUID) == 0 || x.xcr0&^id.XCR0 != 0 {
		return false
	}
	for _, k := range x.components {
		has := func(l checkpoint.CPUIDLeaf) bool {
			return l.Leaf == 0xd && l.Subleaf == k.Index && l.EBX == k.Offset && l.EAX == k.Size
		}
		if !slices.ContainsFunc(id.CPUID, has) {
			return false
		}
	}
	return true
}
