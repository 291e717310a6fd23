//go:build linux && amd64

package record

import (
	"bytes"
	"os"
	"path/filepath"
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

// TestLimits: the program's own mask for OpenSSL stays, its tunables are joined; what is for
// AVX-512 alone comes where the CPU has it, and for Go to programs of Go.
func TestLimits(t *testing.T) {
	caps := "GLIBC_TUNABLES=glibc.cpu.hwcaps=-" + strings.Join(hwcaps, ",-")
	const (
		ssl  = "OPENSSL_ia32cap=:~0xd0230000"
		utf  = "SIMDUTF_FORCE_IMPLEMENTATION=haswell"
		gods = "GODEBUG=cpu.avx512f=off,cpu.avx512vl=off"
	)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		given  []string
		path   string
		avx512 bool
		gone   []int
		add    []string
	}{
		{nil, "/bin/sh", false, nil, []string{ssl, caps}},
		{[]string{"A=1"}, "/bin/sh", false, nil, []string{ssl, caps}},
		{[]string{"OPENSSL_ia32cap=0", "GLIBC_TUNABLES=x=1"}, "/bin/sh", false, []int{1}, []string{"GLIBC_TUNABLES=x=1:" + caps[len("GLIBC_TUNABLES="):]}},
		{[]string{caps, "OPENSSL_ia32cap=0"}, "/bin/sh", false, nil, nil},
		{[]string{caps, ssl}, "/bin/sh", true, nil, []string{utf}},
		{[]string{caps, ssl, "SIMDUTF_FORCE_IMPLEMENTATION=x"}, self, true, nil, []string{gods}},
		{[]string{"GODEBUG=netdns=go", caps, ssl, utf}, self, true, []int{0}, []string{"GODEBUG=netdns=go," + gods[len("GODEBUG="):]}},
		{[]string{gods, caps, ssl, utf}, self, true, nil, nil},
	} {
		got := limits(c.given, c.path, c.avx512)
		var gone []int
		for i := range c.given {
			if got.gone[i] {
				gone = append(gone, i)
			}
		}
		if !slices.Equal(gone, c.gone) || !slices.Equal(got.add, c.add) {
			t.Errorf("%q: got %v %q, want %v %q", c.given, gone, got.add, c.gone, c.add)
		}
	}
}

// TestJavaLimit: launchers of the JDK get the option once, in the form that each takes.
func TestJavaLimit(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"jdk/lib/libjli.so", "jdk/bin/java", "jdk/bin/javac", "other/bin/java"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path string
		args []string
		want string
	}{
		{"jdk/bin/java", []string{"java", "Main"}, "-XX:UseAVX=2"},
		{"jdk/bin/java", []string{"java", "-XX:UseAVX=2", "Main"}, ""},
		{"jdk/bin/java", nil, ""},
		{"jdk/bin/javac", []string{"javac"}, "-J-XX:UseAVX=2"},
		{"other/bin/java", []string{"java", "Main"}, ""},
	} {
		if got := javaLimit(filepath.Join(dir, c.path), c.args); got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.path, c.args, got, c.want)
		}
	}
}

// TestStackChange: variables and the argument stand behind each other, above the lists.
func TestStackChange(t *testing.T) {
	s := newStack{args: []uint64{0x10, 0x20}, env: []uint64{0x30, 0x40, 0x50}}
	top, text, names := s.change(&stackChange{gone: map[int]bool{1: true}, add: []string{"A=1", "B=2"}, arg: "-x"}, 0x1000)
	if top != 0x1000-11 || string(text) != "A=1\x00B=2\x00-x\x00" || strings.Join(names, " ") != "A B -x" {
		t.Errorf("%q at %#x: %q", text, top, names)
	}
	if want := []uint64{0x10, top + 8, 0x20}; !slices.Equal(s.args, want) {
		t.Errorf("arguments at %#x, want %#x", s.args, want)
	}
	if want := []uint64{0x30, 0x50, top, top + 4}; !slices.Equal(s.env, want) {
		t.Errorf("variables at %#x, want %#x", s.env, want)
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

func TestWithoutLeaks(t *testing.T) {
	for _, c := range []struct {
		given    []string
		replaced int
		add      string
	}{
		{[]string{"A=1"}, -1, "LSAN_OPTIONS=detect_leaks=0"},
		{[]string{"A=1", "LSAN_OPTIONS=verbosity=1"}, 1, "LSAN_OPTIONS=verbosity=1:detect_leaks=0"},
		{[]string{"LSAN_OPTIONS=x=1:detect_leaks=0"}, -1, ""},
	} {
		if i, add := withoutLeaks(c.given); i != c.replaced || add != c.add {
			t.Errorf("%q: got %d %q", c.given, i, add)
		}
	}
}
