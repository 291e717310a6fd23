package image

import (
	"path/filepath"
	"runtime"
	"testing"

	"vplay/checkpoint"
	"vplay/loader/image/imagetest"
)

// TestWithoutBuildID: a file without a build-id is the module's when it has all that was captured, code among it, at the
// recorded path or by its name in a folder; another, and one that has a build-id, are not.
func TestWithoutBuildID(t *testing.T) {
	const note, code = 0x300, 0x1010
	unnamed := func(b []byte) { clear(b[note : note+36]) }
	for name, c := range map[string]struct {
		change   func(b []byte)
		captured bool // the code
		want     bool
	}{
		"the same":         {unnamed, true, true},
		"other code":       {func(b []byte) { unnamed(b); b[code]++ }, true, false},
		"another header":   {func(b []byte) { unnamed(b); b[48]++ }, true, false}, // e_flags
		"a build-id":       {func([]byte) {}, true, false},
		"no code captured": {unnamed, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			whole, m := uncaptured()
			if c.captured {
				m = tabled().Memory
			}
			m.Put(imagetest.Base+note, make([]byte, 36))
			maps, path := localFile(t, whole, c.change)
			mod := Modules(maps, m)[0]
			if mod.BuildID != "" {
				t.Fatalf("the module has the build-id %s", mod.BuildID)
			}
			isLocal := c.want && runtime.GOOS == "linux"
			if got, ok := testSymbols(nil, true).Find(mod, m); ok != isLocal || ok && got != path {
				t.Errorf("at its path: %q, %t", got, ok)
			}
			if _, ok := testSymbols(nil, false).Find(mod, m); ok {
				t.Error("a file of this machine is used that nobody asked for")
			}
			s := testSymbols([]string{filepath.Dir(path)}, false)
			if got, ok := s.Find(mod, m); ok != c.want || ok && got != path {
				t.Errorf("in a folder: %q, %t", got, ok)
			}
			if got, ok := s.Whole(mod, m); ok != c.want {
				t.Errorf("the whole file: %q, %t", got, ok)
			}
			if b, err := BuildELF(mod, m, s); err != nil {
				t.Error(err)
			} else if id, _, _ := idOfFile(path); c.want && (id != "" || len(b) == 0) {
				t.Errorf("%d bytes, build-id %q", len(b), id)
			}
			if n := len(testSymbols(nil, true).Files([]checkpoint.Object{{Path: path}})); (n == 1) != (runtime.GOOS == "linux") {
				t.Errorf("%d files may be opened", n)
			}
		})
	}
}
