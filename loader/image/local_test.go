package image

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"vplay/checkpoint"
	"vplay/loader/image/imagetest"
)

// localFile writes the library as a file, at the path that the map says, and
// returns the map and the bytes.
func localFile(t *testing.T, m onDisk, change func(b []byte)) (maps []checkpoint.Mapping, name string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Log("files of this machine are used on Linux alone")
	}
	name = filepath.Join(t.TempDir(), "f.so")
	b := append([]byte(nil), m.file...)
	m.ReadMemory(imagetest.Base, b[:0x3000])
	change(b)
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	maps = imagetest.Maps()
	for i := range maps {
		maps[i].Name = name
	}
	return maps, name
}

// uncaptured is the library in memory without its code, and without the file.
func uncaptured() (onDisk, imagetest.Memory) {
	whole := tabled()
	part := tabled().Memory
	delete(part, imagetest.Base+0x1000)
	return whole, part
}

// TestLocalFile: a file of this machine with the recorded build-id gives what was
// not captured; with another it is not touched.
func TestLocalFile(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b []byte)
		local  bool
		want   bool
	}{
		"the same":         {func([]byte) {}, true, true},
		"not asked for":    {func([]byte) {}, false, false},
		"another build-id": {func(b []byte) { b[0x310]++ }, true, false},
		"patched":          {func(b []byte) { b[0x441] = 'g' }, true, false}, // f was captured
	} {
		t.Run(name, func(t *testing.T) {
			whole, part := uncaptured()
			maps, path := localFile(t, whole, c.change)
			mod := Modules(maps, part)[0]
			s := testSymbols(nil, c.local)
			want := c.want && runtime.GOOS == "linux"
			var code [16]byte
			if n := s.Text(mod, part, imagetest.Base+0x1010, code[:]); (n == len(code) && code[0] == 0x90) != want {
				t.Errorf("%d bytes of code come from the file: %x", n, code)
			}
			b, err := BuildELF(mod, part, s)
			if err != nil {
				t.Fatal(err)
			}
			f, err := elf.NewFile(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			text := f.Section(".text")
			if (text.Type == elf.SHT_PROGBITS) != want {
				t.Errorf(".text is %+v", text)
			}
			if syms, err := f.DynamicSymbols(); err != nil || len(syms) != 1 || syms[0].Name != "f" {
				t.Errorf("what was captured is %+v, %v", syms, err)
			}
			if f.Section(".gnu_debugdata") == nil {
				t.Error("functions have no names")
			}
			if got, ok := s.Local(mod, part); ok && got != path {
				t.Errorf("the file is %s", got)
			}
		})
	}
}

// TestLocalOdd: what a recording may say of a path that is not a file.
func TestLocalOdd(t *testing.T) {
	s := testSymbols(nil, true)
	dir := t.TempDir()
	for _, name := range []string{"", "f.so", "/", dir, "/dev/zero", "/proc/self/exe", "/../etc/passwd", "//host/share/f.so", "/no/such/file"} {
		if got, ok := s.Local(&Module{Path: name, BuildID: "abababab"}, nil); ok {
			t.Errorf("%q: %s", name, got)
		}
	}
}

func TestWithout(t *testing.T) {
	for _, c := range []struct{ ranges, cut, want []Range }{
		{[]Range{{0, 10}, {20, 30}}, []Range{{5, 25}}, []Range{{0, 5}, {25, 30}}},
		{[]Range{{0, 10}}, []Range{{2, 3}, {4, 6}, {9, 12}}, []Range{{0, 2}, {3, 4}, {6, 9}}},
		{[]Range{{20, 30}, {0, 10}}, []Range{{0, 10}}, []Range{{20, 30}}},
		{[]Range{{0, 10}, {12, 14}}, []Range{{0, 20}}, nil},
		{[]Range{{0, 10}}, nil, []Range{{0, 10}}},
	} {
		if got := without(slices.Clone(c.ranges), slices.Clone(c.cut)); !slices.Equal(got, c.want) {
			t.Errorf("%v without %v: %v, want %v", c.ranges, c.cut, got, c.want)
		}
	}
}

// TestFiles: of the paths that a recording names, only ELF files of the recorded
// build-id may be opened, and what a folder has a link to.
func TestFiles(t *testing.T) {
	whole, _ := uncaptured()
	_, elfFile := localFile(t, whole, func([]byte) {})
	id, _, _ := idOfFile(elfFile)
	if len(id) < 4 {
		t.Fatalf("the build-id is %q", id)
	}
	dir := t.TempDir()
	text := filepath.Join(dir, "shadow")
	link := filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug")
	for _, err := range []error{
		os.WriteFile(text, []byte("root:x"), 0o600), os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(elfFile, link),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	local := runtime.GOOS == "linux"
	for name, c := range map[string]struct {
		s    *Symbols
		o    checkpoint.Object
		want string
	}{
		"the recorded build-id":  {testSymbols(nil, local), checkpoint.Object{Path: elfFile, BuildID: id}, elfFile},
		"an unknown build-id":    {testSymbols(nil, local), checkpoint.Object{Path: elfFile}, elfFile},
		"another build-id":       {testSymbols(nil, local), checkpoint.Object{Path: elfFile, BuildID: "0123456789"}, ""},
		"no ELF file":            {testSymbols(nil, local), checkpoint.Object{Path: text}, ""},
		"not asked for":          {testSymbols(nil, false), checkpoint.Object{Path: elfFile, BuildID: id}, ""},
		"a link":                 {testSymbols([]string{dir}, false), checkpoint.Object{Path: "/gone", BuildID: id}, link},
		"a debug file":           {testSymbols(nil, local).SystemFolder(dir), checkpoint.Object{Path: "/gone", BuildID: id}, link},
		"a build-id with a path": {testSymbols([]string{dir}, false), checkpoint.Object{Path: "/gone", BuildID: "../.build-id/" + id[:2] + "/" + id[2:]}, ""},
	} {
		var want []string
		if c.want != "" && (local || c.want == link && name != "a debug file") {
			want = []string{c.want}
		}
		if got := c.s.Files([]checkpoint.Object{c.o, c.o}); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
