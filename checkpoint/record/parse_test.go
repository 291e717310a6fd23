//go:build linux && amd64

package record

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"vplay/checkpoint"
)

func TestMergeTunables(t *testing.T) {
	const mine = "glibc.cpu.hwcaps=-AVX2"
	for _, c := range []struct{ old, want string }{
		{"", mine},
		{"glibc.malloc.check=3", "glibc.malloc.check=3:" + mine},
		{"glibc.cpu.hwcaps=-ERMS", "glibc.cpu.hwcaps=-ERMS,-AVX2"},
		{"a=1:glibc.cpu.hwcaps=-ERMS:b=2", "a=1:glibc.cpu.hwcaps=-ERMS,-AVX2:b=2"},
	} {
		if got := mergeTunables(c.old, mine); got != c.want {
			t.Errorf("%q: got %q, want %q", c.old, got, c.want)
		}
	}
}

// TestLimitEnv: the program's own mask for OpenSSL stays, its tunables are joined.
func TestLimits(t *testing.T) {
	caps := "GLIBC_TUNABLES=glibc.cpu.hwcaps=-" + strings.Join(hwcaps, ",-")
	const ssl = "OPENSSL_ia32cap=:~0xd0230000"
	for _, c := range []struct {
		given    []string
		replaced int
		add      []string
	}{
		{nil, -1, []string{ssl, caps}},
		{[]string{"A=1"}, -1, []string{ssl, caps}},
		{[]string{"OPENSSL_ia32cap=0", "GLIBC_TUNABLES=x=1"}, 1, []string{"GLIBC_TUNABLES=x=1:" + caps[len("GLIBC_TUNABLES="):]}},
		{[]string{caps, "OPENSSL_ia32cap=0"}, -1, nil},
	} {
		if replaced, add := limits(c.given); replaced != c.replaced || !slices.Equal(add, c.add) {
			t.Errorf("%q: got %d %q, want %d %q", c.given, replaced, add, c.replaced, c.add)
		}
	}
}

func TestTrapped(t *testing.T) {
	for _, c := range []struct {
		name string
		code []byte
		kind checkpoint.InstrKind
		size uint64
	}{
		{"rdtsc", []byte{0x0f, 0x31, 0x90}, checkpoint.InstrRDTSC, 2},
		{"rdtscp", []byte{0x0f, 0x01, 0xf9}, checkpoint.InstrRDTSCP, 3},
		{"cpuid", []byte{0x0f, 0xa2}, checkpoint.InstrCPUID, 2},
		{"rex.w rdtsc", []byte{0x48, 0x0f, 0x31}, checkpoint.InstrRDTSC, 3},
		{"mov", []byte{0x48, 0x89, 0xc3}, 0, 0},
		{"cut", []byte{0x0f}, 0, 0},
		{"nothing", nil, 0, 0},
	} {
		if kind, size := trapped(c.code); kind != c.kind || size != c.size {
			t.Errorf("%s: got %d, %d", c.name, kind, size)
		}
	}
}

func FuzzMapsLine(f *testing.F) {
	f.Add("7f00-8000 r-xp 00001000 08:01 1234                       /usr/lib/a b")
	f.Add("1000-2000 rw-p 00000000 00:00 0 ")
	f.Add("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]")
	f.Add("7ffc1000-7ffc2000 rw-s 00000000 00:01 5    /dev/zero (deleted)")
	f.Fuzz(func(t *testing.T, line string) {
		var objs objectTable
		m, ok := parseMapsLine(line, 1<<22, &objs)
		if ok && int(m.Object) > len(objs.list) {
			t.Errorf("object %d of %d", m.Object, len(objs.list))
		}
	})
}

func FuzzBuildIDNote(f *testing.F) {
	f.Add([]byte("\x04\x00\x00\x00\x04\x00\x00\x00\x03\x00\x00\x00GNU\x00abcd"))
	f.Fuzz(func(t *testing.T, b []byte) {
		buildIDNote(b, 4)
		buildIDNote(b, 8)
		buildID(bytes.NewReader(b))
	})
}

// TestRanges compares the set with a plain map.
func TestRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const space = 64
	random := func() (ranges, [space]bool) {
		var set ranges
		var plain [space]bool
		for p := uint64(0); p < space; p++ {
			if r.IntN(3) == 0 {
				set.add(p, p+1)
				plain[p] = true
			}
		}
		return set, plain
	}
	for range 2000 {
		a, pa := random()
		b, pb := random()
		or, and, not := a.union(b), a.intersect(b), a.minus(b)
		for p := range uint64(space) {
			if or.has(p) != (pa[p] || pb[p]) || and.has(p) != (pa[p] && pb[p]) || not.has(p) != (pa[p] && !pb[p]) {
				t.Fatalf("page %d of %v and %v: %v, %v, %v", p, a, b, or, and, not)
			}
		}
		for _, s := range []ranges{or, and, not} {
			for i := 1; i < len(s); i++ {
				if s[i].lo <= s[i-1].hi {
					t.Fatalf("not canonical: %v", s)
				}
			}
		}
	}
}

// TestMapModel checks the model's changes against a page by page map.
func TestMapModel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const pages = 40
	type page struct {
		mapped bool
		prot   uint8
		object uint32
		off    uint64
	}
	for range 300 {
		var m mapModel
		var plain [pages + 1]page
		for range 30 {
			lo := uint64(1 + r.IntN(pages-2))
			hi := lo + 1 + uint64(r.IntN(int(pages-lo)))
			op := checkpoint.MapOp{Start: lo << 12, End: hi << 12, Prot: uint8(r.IntN(8))}
			switch op.Kind = checkpoint.MapOpKind(1 + r.IntN(3)); op.Kind {
			case checkpoint.MapOpMove, checkpoint.MapOpDrop: // Not among those drawn.
			case checkpoint.MapOpMap:
				op.Map = checkpoint.Mapping{Prot: op.Prot, Object: uint32(r.IntN(3)), Offset: 1 << 20}
				if op.Map.Object == 0 {
					op.Map.Offset = 0
				}
				for p := lo; p < hi; p++ {
					plain[p] = page{true, op.Prot, op.Map.Object, op.Map.Offset}
					if op.Map.Object != 0 {
						plain[p].off += (p - lo) << 12
					}
				}
			case checkpoint.MapOpUnmap:
				for p := lo; p < hi; p++ {
					plain[p] = page{}
				}
			case checkpoint.MapOpProtect:
				for p := lo; p < hi; p++ {
					plain[p].prot = op.Prot
				}
			}
			m.apply(&op)
			for p := range uint64(pages) {
				x := m.at(p << 12)
				if (x != nil) != plain[p].mapped {
					t.Fatalf("page %d mapped: %v", p, x != nil)
				}
				if x == nil {
					continue
				}
				off := x.Offset
				if x.Object != 0 {
					off += p<<12 - x.Start
				}
				if x.Prot != plain[p].prot || x.Object != plain[p].object || off != plain[p].off {
					t.Fatalf("page %d: %+v, want %+v", p, x, plain[p])
				}
			}
		}
	}
}

// TestPresentRules: of a leaf 7 with every bit set, those stay that say how the
// CPU behaves rather than what it can do, and the level's own features; those
// that the emulator does not know go.
func TestPresentRules(t *testing.T) {
	l := checkpoint.CPUIDLeaf{Leaf: 7, EBX: ^uint32(0), ECX: ^uint32(0), EDX: ^uint32(0)}
	present(&l)
	for _, c := range []struct {
		name string
		reg  uint32
		bit  uint
		want bool
	}{
		{"FDP_EXCPTN_ONLY", l.EBX, 6, true},
		{"FCS and FDS are zero", l.EBX, 13, true},
		{"LA57", l.ECX, 16, true},
		{"BMI1", l.EBX, 3, true},
		{"AVX2", l.EBX, 5, true},
		{"BMI2", l.EBX, 8, true},
		{"FSGSBASE", l.EBX, 0, false},
		{"RTM", l.EBX, 11, false},
		{"AVX512F", l.EBX, 16, false},
		{"RDSEED", l.EBX, 18, false},
		{"AVX512VL", l.EBX, 31, false},
		{"PKU", l.ECX, 3, false},
		{"RDPID", l.ECX, 22, false},
		{"SERIALIZE", l.EDX, 14, false},
	} {
		if got := c.reg>>c.bit&1 != 0; got != c.want {
			t.Errorf("%s: shown %v, want %v", c.name, got, c.want)
		}
	}
}
