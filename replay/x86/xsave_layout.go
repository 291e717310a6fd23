package x86

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Where the components of an XSAVE area lie (SDM vol. 1, chapter 13), and the conversion between it
// and State. The instructions are in xsave.go.

// ComponentAVX is the bit of State.NotInUse for the upper halves of YMM registers.
const ComponentAVX = xfeatAVX

// DefaultPKRU is what Linux gives each program: access by key 0 alone (arch/x86/mm/pkeys.c, init_pkru_value). The image of
// a program that has just begun does not have it.
const DefaultPKRU = 0x55555554

// State components (SDM vol. 1, 13.1) that the emulator models; the others are in
// their initial state always.
const (
	xfeatX87  = 1 << 0
	xfeatSSE  = 1 << 1
	xfeatAVX  = 1 << 2
	xfeatMask = 1 << 5 // k0 to k7
	xfeatHigh = 1 << 6 // upper halves of zmm0 to zmm15
	xfeatMore = 1 << 7 // zmm16 to zmm31
	xfeatPKRU = 1 << numberPKRU

	// xfeatTileData is AMX's tiles. XSAVEOPT and XSAVEC do not look at their place in an area, as they do at that of other components
	// that are not in use: IA32_XFD disables them in a program that does not use them (SDM vol. 1, 13.14).
	xfeatTileData = 1 << 18

	xfeatWide     = xfeatMask | xfeatHigh | xfeatMore
	xfeatModelled = xfeatX87 | xfeatSSE | xfeatAVX | xfeatWide // with bits in State.NotInUse

	xsaveHeader   = 512 // offset of the header, which is 64 bytes
	xsaveExtended = 576 // size of legacy region and header
	xcompCompact  = 1 << 63

	mxcsrInit = 0x1f80
)

// XLayout says where the components of an XSAVE area in standard format stand.
// It is a property of the recorded CPU: the makers differ.
type XLayout struct {
	// XCR0 has a bit for each component that the system has enabled.
	XCR0 uint64
	// Size is the size of an area with all of them, in bytes.
	Size uint32
	// Offsets and Sizes are in bytes, indexed by component; 0 and 1 are in the
	// legacy region and have none.
	Offsets, Sizes [64]uint32
	// Aligned has a bit for each component that stands at a multiple of 64
	// bytes in the compacted format.
	Aligned uint64
	// Vendor, NoSelectors and DataOnException say what the CPU does with the
	// x87 pointers: whether FCS and FDS are always zero, and whether FDP is
	// kept only for instructions that raise an unmasked exception.
	Vendor                       Vendor
	NoSelectors, DataOnException bool
	// Narrow says that the CPU is one of Intel's from before linear addresses of 57 bits: FIP has 48 bits, and of PKRU's
	// component four bytes are moved, where others have 57 and eight (family 6 models 85 and 207).
	Narrow bool
}

// Components of which less is moved than there is room for (SDM vol. 1, 13.5.4 and 13.5.7).
const (
	numberBNDCSR = 4
	numberPKRU   = 9
)

// moved is how many bytes of component i an instruction stores or loads.
func (l *XLayout) moved(i int) uint32 {
	switch {
	case i == numberBNDCSR:
		return min(16, l.Sizes[i])
	case i == numberPKRU && l.Narrow:
		return min(4, l.Sizes[i])
	}
	return l.Sizes[i]
}

// LayoutFromCPUID makes the layout from leaves 0DH and 7. cpuid returns eax, ebx, ecx
// and edx of a leaf and subleaf, xcr0 is what XGETBV(0) gives.
func LayoutFromCPUID(vendor Vendor, xcr0 uint64, cpuid func(leaf, subleaf uint32) [4]uint32) XLayout {
	l := XLayout{XCR0: xcr0, Vendor: vendor}
	for i := uint32(2); i < 63; i++ {
		if xcr0>>i&1 == 0 {
			continue
		}
		r := cpuid(0xd, i)
		l.Sizes[i], l.Offsets[i] = r[0], r[1]
		l.Aligned |= uint64(r[2]>>1&1) << i
	}
	r := cpuid(7, 0)
	ebx, ecx := r[1], r[2]
	l.DataOnException, l.NoSelectors = ebx>>6&1 != 0, ebx>>13&1 != 0
	l.Narrow = vendor == VendorIntel && ecx>>16&1 == 0
	l.setSize()
	return l
}

// DefaultLayout is the layout that current CPUs of vendor have, for an
// identity without the CPUID leaf.
func DefaultLayout(vendor Vendor, xcr0 uint64) XLayout {
	type place struct{ component, offset, size uint32 }
	places := []place{{2, 576, 256}, {3, 960, 64}, {4, 1024, 64}, {5, 1088, 64}, {6, 1152, 512}, {7, 1664, 1024}, {9, 2688, 8}}
	if vendor == VendorAMD {
		places = []place{{2, 576, 256}, {5, 832, 64}, {6, 896, 512}, {7, 1408, 1024}, {9, 2432, 8}}
	}
	l := XLayout{XCR0: xcr0, Vendor: vendor, NoSelectors: vendor == VendorIntel, DataOnException: vendor == VendorIntel}
	for _, p := range places {
		if xcr0>>p.component&1 != 0 {
			l.Offsets[p.component], l.Sizes[p.component] = p.offset, p.size
		}
	}
	l.setSize()
	return l
}

func (l *XLayout) setSize() {
	l.Size = xsaveExtended
	for i := range l.Offsets {
		l.Size = max(l.Size, l.Offsets[i]+l.Sizes[i])
	}
}

// avx returns the offset of the upper halves of the YMM registers, or 0 where
// the layout has none or places them outside size bytes.
func (l *XLayout) avx(size int) int {
	off := int(l.Offsets[2])
	if l.XCR0&xfeatAVX == 0 || off < xsaveExtended || off+256 > size {
		return 0
	}
	return off
}

// pkru returns the offset of PKRU, or 0 where the layout has none or places it outside size bytes.
func (l *XLayout) pkru(size int) int {
	off := int(l.Offsets[numberPKRU])
	if l.XCR0&xfeatPKRU == 0 || off < xsaveExtended || off+4 > size {
		return 0
	}
	return off
}

// ErrXState is the error of SetXState for an image that is none.
var ErrXState = errors.New("x86: malformed XSAVE image")

// SetXState takes x87, SSE, AVX and AVX-512 state from img, an XSAVE area in standard
// format as PTRACE_GETREGSET(NT_X86_XSTATE) gives it. A component whose bit in
// XSTATE_BV is clear gets its initial state. Components that the emulator does
// not model are ignored. It returns ErrXState, and changes nothing, when img is
// too short or in the compacted format.
func (s *State) SetXState(img []byte, layout *XLayout) error {
	if len(img) < xsaveExtended {
		return fmt.Errorf("%w: %d bytes", ErrXState, len(img))
	}
	bv := binary.LittleEndian.Uint64(img[xsaveHeader:])
	if binary.LittleEndian.Uint64(img[xsaveHeader+8:])&xcompCompact != 0 {
		return fmt.Errorf("%w: compacted format", ErrXState)
	}
	avx := layout.avx(len(img))
	if bv&xfeatAVX != 0 && avx == 0 {
		return fmt.Errorf("%w: no place for the AVX component", ErrXState)
	}
	s.FPU.Reset()
	if bv&xfeatX87 != 0 {
		s.FPU.restore(img, true, layout)
	}
	s.MXCSR = mxcsrInit
	if bv&(xfeatSSE|xfeatAVX) != 0 {
		s.MXCSR = binary.LittleEndian.Uint32(img[24:])
	}
	s.V = [16]Vec{}
	if bv&xfeatSSE != 0 {
		s.loadXMM(img[160:])
	}
	if bv&xfeatAVX != 0 {
		s.loadYMM(img[avx:])
	}
	s.Wide = Wide{}
	for _, w := range wideComponents {
		if off := layout.wide(w, len(img)); bv>>w.number&1 != 0 && off != 0 {
			s.loadWide(w.number, img[off:])
		}
	}
	s.PKRU = 0
	if layout.XCR0&xfeatPKRU != 0 {
		s.PKRU = DefaultPKRU
		if off := layout.pkru(len(img)); bv&xfeatPKRU != 0 && off != 0 {
			s.PKRU = binary.LittleEndian.Uint32(img[off:])
		}
	}
	s.NotInUse = 0
	if layout.Vendor == VendorIntel {
		s.NotInUse = uint8(^bv & xfeatModelled)
	}
	return nil
}

// XState puts x87, SSE, AVX and AVX-512 state into img, an area in standard format as
// SetXState takes, and returns it. The bits of XSTATE_BV say what is not in
// its initial state, and all that the layout has are written; other components and their
// bits are left as they were. An img that is too short is replaced by one of
// layout.Size bytes with what it held.
func (s *State) XState(img []byte, layout *XLayout) []byte {
	if n := max(int(layout.Size), xsaveExtended); len(img) < n {
		img = append(img, make([]byte, n-len(img))...)
	}
	s.FPU.save(img, true, layout.Vendor)
	binary.LittleEndian.PutUint32(img[24:], s.MXCSR)
	if binary.LittleEndian.Uint32(img[28:]) == 0 {
		binary.LittleEndian.PutUint32(img[28:], mxcsrMask(layout.Vendor))
	}
	s.storeXMM(img[160:])
	if avx := layout.avx(len(img)); avx != 0 {
		s.storeYMM(img[avx:])
	}
	for _, w := range wideComponents {
		if off := layout.wide(w, len(img)); off != 0 {
			s.storeWide(w.number, img[off:])
		}
	}
	if off := layout.pkru(len(img)); off != 0 {
		binary.LittleEndian.PutUint32(img[off:], s.PKRU)
	}
	bv := binary.LittleEndian.Uint64(img[xsaveHeader:]) &^ (xfeatModelled | xfeatPKRU)
	inuse := s.inUseMXCSR(layout.Vendor)
	binary.LittleEndian.PutUint64(img[xsaveHeader:], bv|inuse&(layout.XCR0|xfeatX87|xfeatSSE))
	return img
}

// mxcsrMask is the MXCSR_MASK that the CPUs of vendor store: the bits of MXCSR
// that can be set. AMD has the misaligned exception mask, bit 17.
func mxcsrMask(v Vendor) uint32 {
	if v == VendorAMD {
		return 0x2ffff
	}
	return 0xffff
}

func (s *State) loadXMM(b []byte) {
	for i := range s.V {
		s.V[i][0] = binary.LittleEndian.Uint64(b[16*i:])
		s.V[i][1] = binary.LittleEndian.Uint64(b[16*i+8:])
	}
}

func (s *State) storeXMM(b []byte) {
	for i := range s.V {
		binary.LittleEndian.PutUint64(b[16*i:], s.V[i][0])
		binary.LittleEndian.PutUint64(b[16*i+8:], s.V[i][1])
	}
}

func (s *State) loadYMM(b []byte) {
	for i := range s.V {
		s.V[i][2] = binary.LittleEndian.Uint64(b[16*i:])
		s.V[i][3] = binary.LittleEndian.Uint64(b[16*i+8:])
	}
}

func (s *State) storeYMM(b []byte) {
	for i := range s.V {
		binary.LittleEndian.PutUint64(b[16*i:], s.V[i][2])
		binary.LittleEndian.PutUint64(b[16*i+8:], s.V[i][3])
	}
}

// save stores the x87 part of the legacy region: bytes 0 to 23 and 32 to 159
// of b. wide: the pointers have 64 bits (REX.W), else 32 bits and a selector.
// AMD's CPUs store the pointers only while an exception is pending, and zeros
// otherwise (AMD APM vol. 2, 11.4.4; those with XSaveErPtr, Zen 2 and later).
func (f *FPU) save(b []byte, wide bool, v Vendor) {
	le := binary.LittleEndian
	le.PutUint16(b, f.CW)
	le.PutUint16(b[2:], f.Status())
	b[4], b[5] = f.Tag, 0
	fop, fip, fdp, fcs, fds := f.FOP, f.FIP, f.FDP, f.FCS, f.FDS
	if v == VendorAMD && !f.Pending() {
		fop, fip, fdp, fcs, fds = 0, 0, 0, 0, 0
	}
	le.PutUint16(b[6:], fop)
	if !wide {
		fip = uint64(uint32(fip)) | uint64(fcs)<<32
		fdp = uint64(uint32(fdp)) | uint64(fds)<<32
	}
	le.PutUint64(b[8:], fip)
	le.PutUint64(b[16:], fdp)
	for i := range uint8(8) {
		p := b[32+16*int(i):]
		f.st(i).put(p)
		clear(p[10:16])
	}
}

// restore is the opposite of save. Zen 4 keeps 57 bits of the pointers, an
// Intel Xeon of family 6 model 207 of FIP only, and one of model 85, which has no linear addresses of 57 bits, 48.
func (f *FPU) restore(b []byte, wide bool, l *XLayout) {
	le := binary.LittleEndian
	f.CW = le.Uint16(b)&fpuCWMask | fpuCWOne
	f.SetStatus(le.Uint16(b[2:]))
	f.Tag = b[4]
	f.FOP = le.Uint16(b[6:]) & 0x7ff
	f.FIP, f.FDP = le.Uint64(b[8:]), le.Uint64(b[16:])
	f.FCS, f.FDS = 0, 0
	if wide {
		lost := 7
		if l.Narrow {
			lost = 16
		}
		f.FIP = uint64(int64(f.FIP<<lost) >> lost)
		if l.Vendor == VendorAMD {
			f.FDP = uint64(int64(f.FDP<<7) >> 7)
		}
	}
	if !wide {
		f.FCS, f.FDS = uint16(f.FIP>>32), uint16(f.FDP>>32)
		f.FIP, f.FDP = uint64(uint32(f.FIP)), uint64(uint32(f.FDP))
	}
	for i := range uint8(8) {
		f.R[f.phys(i)] = f80At(b[32+16*int(i):])
	}
}
