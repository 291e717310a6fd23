package x86

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLayout compares the layout known for the vendor with what CPUID says.
func TestLayout(t *testing.T) {
	oraclePath(t)
	l := hostLayout(t)
	if d := DefaultLayout(l.Vendor, l.XCR0&0xe7); l.XCR0&^0xe7 == 0 && d != l {
		t.Errorf("DefaultLayout %+v, CPUID %+v", d, l)
	}
}

// randVectors fills the vector part of an image; some components stay zero,
// with or without their bit in XSTATE_BV.
func randVectors(r *rand.Rand, img []byte, avx int) {
	fill := func(a, n int) {
		for i := range n {
			img[a+i] = byte(r.Uint32())
		}
	}
	if r.IntN(3) != 0 {
		fill(160, 256)
	}
	if r.IntN(3) != 0 && avx != 0 {
		fill(avx, 256)
	}
	if r.IntN(3) == 0 {
		le.PutUint32(img[24:], r.Uint32()&0xffff|0x1f80)
	}
	bv := uint64(7)
	if r.IntN(3) == 0 {
		bv = r.Uint64() & 7
	}
	le.PutUint64(img[512:], bv)
	if bv&6 == 0 { // SetXState has the initial MXCSR then, XRSTOR loads it
		le.PutUint32(img[24:], mxcsrInit)
	}
}

// xsaveMasks are requested-feature bitmaps worth trying.
var xsaveMasks = []uint32{7, 7, 7, 1, 2, 4, 3, 5, 6, 0, 0xe7, 0xffffffff, 0xee, 0xe0, 0x20, 0xe6}

// xsaveCase makes a case whose memory holds an image: of the standard or the
// compacted format, sometimes malformed.
func xsaveCase(r *rand.Rand, l *XLayout, row *Row) fpuCase {
	fc := fpuCase{name: row.Mnemonic, mem: make([]byte, max(4096, (l.Size+4095)&^4095))}
	randState(r, &fc)
	randVectors(r, fc.img[:], 576)
	if r.IntN(4) == 0 { // the x87 unit in its initial state but for some field
		clear(fc.img[:24])
		clear(fc.img[32:160])
		le.PutUint16(fc.img[:], 0x37f)
		if k := r.IntN(48); k < 24 {
			fc.img[k] |= byte(1 << r.IntN(3))
		}
	}
	for i := range fc.mem {
		fc.mem[i] = byte(r.Uint32())
	}
	var image fpuCase
	randState(r, &image)
	randVectors(r, image.img[:], 576)
	fc.mem = append(image.img[:576:576], fc.mem[576:]...)
	m := xsaveMasks[r.IntN(len(xsaveMasks))]
	fc.rax, fc.rdx = uint64(m), uint64(m)>>31*0xffffffff
	bv := le.Uint64(fc.mem[512:])
	switch r.IntN(4) {
	case 0:
		le.PutUint64(fc.mem[520:], 1<<63|[]uint64{7, 3, 0xe7, 4, 2, 0x107}[r.IntN(6)])
	case 1:
		le.PutUint64(fc.mem[520:], 1<<63|bv)
	}
	switch r.IntN(16) {
	case 0:
		fc.mem[520+r.IntN(56)] = 1
	case 1:
		le.PutUint64(fc.mem[512:], bv|1<<r.IntN(64))
	case 2:
		le.PutUint32(fc.mem[24:], r.Uint32())
	}
	// What the emulator does not model is in its initial state.
	if le.Uint64(fc.mem[512:])&^7 != 0 {
		clear(fc.mem[832:])
		if le.Uint64(fc.mem[520:]) != 0 {
			clear(fc.mem[576:])
		}
	}
	fc.code = x87Code(r, row)
	if r.IntN(2) == 0 {
		fc.code = append([]byte{0x48}, fc.code...)
	}
	if r.IntN(16) == 0 { // [rdi+disp8], misaligned
		fc.code[len(fc.code)-1] |= 0x40
		fc.code = append(fc.code, []byte{1, 8, 16, 32}[r.IntN(4)])
	}
	return fc
}

// TestStateSaveCPU compares FXSAVE, XSAVE and their relatives with the CPU.
func TestStateSaveCPU(t *testing.T) {
	oraclePath(t)
	l := hostLayout(t)
	for i := range Rows() {
		row := &Rows()[i]
		if row.File != "xsave" || row.Encoding.Digit < 0 {
			continue
		}
		t.Run(row.Mnemonic, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(row.Encoding.Opcode), uint64(row.Encoding.Digit)))
			cases := make([]fpuCase, *x87Cases)
			for k := range cases {
				cases[k] = xsaveCase(r, &l, row)
			}
			compareCPU(t, cases, false)
		})
	}
	t.Run("XGETBV", func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		cases := make([]fpuCase, *x87Cases)
		for k := range cases {
			fc := &cases[k]
			*fc = xsaveCase(r, &l, &Row{})
			fc.name = "XGETBV"
			fc.code = []byte{0xb9, byte(r.IntN(2)), 0, 0, 0, 0x0f, 0x01, 0xd0} // mov ecx, 0 or 1; xgetbv
		}
		compareCPU(t, cases, false)
	})
}

// TestTilesOutOfReach: where an area ends with a page, with AMX's tiles behind it, XSAVEOPT and XSAVEC do not look at them, as
// no program that is replayed uses them, and the others do. By a Xeon of family 6, model 167 with tiles.
func TestTilesOutOfReach(t *testing.T) {
	l := DefaultLayout(VendorIntel, 0xe7)
	l.XCR0 |= 3 << 17
	l.Offsets[17], l.Sizes[17], l.Offsets[18], l.Sizes[18] = 2752, 64, 2816, 8192
	l.Aligned = 3 << 17
	l.setSize()
	for _, tt := range []struct {
		name string
		code []byte
		comp uint64
		sig  uint64
	}{
		{"XSAVE", []byte{0x0f, 0xae, 0x27}, 0, 11},
		{"XSAVEOPT", []byte{0x0f, 0xae, 0x37}, 0, 0},
		{"XSAVEC", []byte{0x0f, 0xc7, 0x27}, 0, 0},
		{"XRSTOR", []byte{0x0f, 0xae, 0x2f}, 0, 11},
		{"XRSTOR compact", []byte{0x0f, 0xae, 0x2f}, 1<<63 | l.XCR0, 11},
	} {
		fc := fpuCase{code: tt.code, mem: make([]byte, 4096), rax: 0x600e7}
		le.PutUint32(fc.img[24:], mxcsrInit)
		le.PutUint32(fc.mem[24:], mxcsrInit)
		le.PutUint64(fc.mem[520:], tt.comp)
		if got := emulate(t, &fc, &l); got.sig != tt.sig {
			t.Errorf("%s: signal %d, want %d", tt.name, got.sig, tt.sig)
		}
		fc.rax = 0x200e7 // without the tiles themselves
		if tt.comp != 0 {
			le.PutUint64(fc.mem[520:], 1<<63|fc.rax)
		}
		if got := emulate(t, &fc, &l); got.sig != 0 {
			t.Errorf("%s without tiles: signal %d", tt.name, got.sig)
		}
	}
}

// TestXStateRoundTrip: what SetXState takes XState gives back.
func TestXStateRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, vendor := range []Vendor{VendorIntel, VendorAMD} {
		l := DefaultLayout(vendor, 0xe7)
		for range 200 {
			fc := xsaveCase(r, &l, &Row{})
			img := make([]byte, l.Size)
			copy(img, fc.img[:576])
			copy(img[l.Offsets[2]:], fc.img[576:])
			for i := int(l.Offsets[5]); i < len(img); i++ {
				img[i] = byte(i)
			}
			le.PutUint64(img[512:], le.Uint64(img[512:])|0xe0)
			var s, s2 State
			if err := s.SetXState(img, &l); err != nil {
				t.Fatal(err)
			}
			out := s.XState(slices.Clone(img), &l)
			if !bytes.Equal(out[l.Offsets[5]:], img[l.Offsets[5]:]) || out[512]&0xe0 != 0xe0 {
				t.Fatal("components that are not modelled changed")
			}
			if err := s2.SetXState(out, &l); err != nil {
				t.Fatal(err)
			}
			if s.MXCSR != mxcsrInit {
				s.NotInUse &^= xfeatSSE
			}
			if vendor == VendorAMD && !s.FPU.Pending() {
				s.FPU.FIP, s.FPU.FDP, s.FPU.FOP = 0, 0, 0
			}
			if s != s2 {
				t.Fatalf("state %+v, after a round trip %+v", s, s2)
			}
		}
	}
}

// TestXStateErrors: malformed images are errors and change nothing.
func TestXStateErrors(t *testing.T) {
	l := DefaultLayout(VendorAMD, 7)
	compact := make([]byte, 832)
	le.PutUint64(compact[520:], 1<<63|7)
	noAVX := make([]byte, 576)
	noAVX[512] = 4
	for name, img := range map[string][]byte{"empty": nil, "short": make([]byte, 575), "compacted": compact, "avx missing": noAVX} {
		s := State{MXCSR: 0x1234}
		if err := s.SetXState(img, &l); !errors.Is(err, ErrXState) || s != (State{MXCSR: 0x1234}) {
			t.Errorf("%s: error %v, MXCSR %x", name, err, s.MXCSR)
		}
	}
}
