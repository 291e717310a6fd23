package corefile

import (
	"encoding/binary"
	"testing"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// xsaveImage is an XSAVE image of n bytes as Linux gives it to debuggers.
func xsaveImage(n int, xcr0, inUse uint64) []byte {
	b := make([]byte, n)
	b[0], b[1] = 0x7f, 3 // FCW
	le := binary.LittleEndian
	le.PutUint64(b[xcr0At:], xcr0)
	le.PutUint64(b[legacySize:], inUse)
	return b
}

// TestXSaveLayout: where the components are is taken from the note, else from the size.
func TestXSaveLayout(t *testing.T) {
	const avx512, pkru = 0xe7, 1 << 9
	note := binary.LittleEndian.AppendUint32(nil, 2)
	for _, v := range []uint32{256, 640, 0} {
		note = binary.LittleEndian.AppendUint32(note, v)
	}
	for _, c := range []struct {
		name   string
		size   int
		xcr0   uint64
		note   []byte
		places map[uint32]uint32 // offset by component
	}{
		{"AVX alone", 832, 7, nil, map[uint32]uint32{2: 576}},
		{"AMD, AVX-512", 2432, avx512, nil, map[uint32]uint32{2: 576, 5: 832, 6: 896, 7: 1408}},
		{"AMD, PKRU", 2440, avx512 | pkru, nil, map[uint32]uint32{2: 576, 5: 832, 6: 896, 7: 1408, 9: 2432}},
		{"Intel, AVX-512", 2688, avx512, nil, map[uint32]uint32{2: 576, 5: 1088, 6: 1152, 7: 1664}},
		{"Intel, PKRU", 2696, avx512 | pkru, nil, map[uint32]uint32{2: 576, 5: 1088, 6: 1152, 7: 1664, 9: 2688}},
		{"SSE alone", 576, 3, nil, nil},
		{"a note", 896, 7, note, map[uint32]uint32{2: 640}},
		{"a component that no note places", 2696, 7 | 1<<17, nil, map[uint32]uint32{2: 576}},
	} {
		b := smallCore()
		b.note("LINUX", abi.NT_X86_XSTATE, xsaveImage(c.size, c.xcr0, 7))
		if c.note != nil {
			b.note("LINUX", abi.NT_X86_XSAVE_LAYOUT, c.note)
		}
		core, err := openBytes(t, b.bytes(), nil)
		if err != nil {
			t.Fatal(err)
		}
		x := core.xsave()
		id := x.identity()
		if len(x.components) != len(c.places) || len(id.CPUID) != 1+len(c.places) {
			t.Errorf("%s: components %v", c.name, x.components)
		}
		for _, k := range x.components {
			if c.places[k.Index] != k.Offset || x.xcr0>>k.Index&1 == 0 {
				t.Errorf("%s: component %d is at %d", c.name, k.Index, k.Offset)
			}
		}
		if !x.isOf(&checkpoint.Identity{XCR0: c.xcr0, CPUID: id.CPUID}) {
			t.Errorf("%s: the CPU of the layout has it not", c.name)
		}
		if len(x.components) > 0 && x.isOf(&checkpoint.Identity{XCR0: c.xcr0, CPUID: id.CPUID[:1]}) {
			t.Errorf("%s: a CPU that tells no places has them", c.name)
		}
	}
}

// TestXSaveImage: an image that cannot be what it says gives x87 and SSE alone; without any there is nothing.
func TestXSaveImage(t *testing.T) {
	x := xsave{xcr0: 7, components: layoutAMD[:1]}
	whole, short, compact := xsaveImage(832, 7, 7), xsaveImage(700, 7, 7), xsaveImage(832, 7, 7)
	compact[legacySize+15] = 0x80
	floats := xsaveImage(legacySize+8, 0, 0)[:legacySize]
	for _, c := range []struct {
		name  string
		t     thread
		size  int
		inUse uint64
		ok    bool
	}{
		{"whole", thread{xstate: whole, floats: floats}, 832, 7, true},
		{"too short for AVX", thread{xstate: short}, xsaveMin, bitsLegacy, true},
		{"compacted", thread{xstate: compact}, xsaveMin, bitsLegacy, true},
		{"FXSAVE alone", thread{floats: floats}, xsaveMin, bitsLegacy, true},
		{"nothing", thread{}, xsaveMin, 0, false},
	} {
		img, ok := x.image(&c.t)
		if len(img) != c.size || ok != c.ok || binary.LittleEndian.Uint64(img[legacySize:]) != c.inUse || c.ok != (img[0] == 0x7f) {
			t.Errorf("%s: %d bytes, %x, %t", c.name, len(img), img[legacySize:legacySize+8], ok)
		}
	}
}

// TestAreas: lines of /proc/PID/maps, and what is no such line.
func TestAreas(t *testing.T) {
	l := &Live{Maps: []byte("00400000-00401000 r-xp 00002000 08:21 1234                      /usr/bin/a b (deleted)\n" +
		"7f0000000000-7f0000002000 rw-s 00000000 00:05 9 /memfd:x (deleted)\n7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n" +
		"00500000-00501000 rw-p 00000000 00:00 0 \nffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\nrubbish\n1-2 r--p 0 0:0 0 /x\n5000-4000 r--p 0 0:0 0 /x\n")}
	want := []area{
		{start: 0x400000, end: 0x401000, offset: 0x2000, path: "/usr/bin/a b (deleted)", dev: 0x821, inode: 1234},
		{start: 0x7f0000000000, end: 0x7f0000002000, path: "/memfd:x (deleted)", dev: 5, inode: 9, shared: true},
		{start: 0x7ffd00000000, end: 0x7ffd00021000, path: "[stack]"},
		{start: 0x500000, end: 0x501000},
	}
	got := l.areas()
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}
