package debug

import (
	"bytes"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"vplay/loader"
)

// TestSystemFile has the demo's debug file where distributions put theirs: names and lines
// come from it, and the file that gdb reads is the one without, for gdb finds it, too.
func TestSystemFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, ".build-id", "e4", "06040730f10c3381ea8313a05669388c12878c.debug")
	b, err := os.ReadFile(filepath.Join(demo, "weather.debug"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	patched := bytes.Clone(b)
	id := bytes.Index(patched, []byte("\xe4\x06\x04\x07\x30"))
	patched[id]++
	for _, c := range []struct {
		what  string
		file  []byte
		local bool
		want  bool
	}{
		{"the recorded build-id", b, true, runtime.GOOS == "linux"},
		{"another build-id", patched, true, false},
		{"not asked for", b, false, false},
	} {
		if err := os.WriteFile(name, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		symbols := loader.NewSymbols(nil, c.local).SystemFolder(dir)
		g := openWith(t, filepath.Join(demo, "weather.vplay"), symbols)
		var said strings.Builder
		if err := g.Monitor(t.Context(), "first-exec add_reading", &said); (err == nil) != c.want || c.want && !strings.Contains(said.String(), "weather.c:") {
			t.Errorf("%s: add_reading: %s, %v", c.what, &said, err)
		}
		if got := g.LocalFiles() == name; got != c.want {
			t.Errorf("%s: %s is used", c.what, g.LocalFiles())
		}
		if hasInfo(t, g) {
			t.Errorf("%s: gdb gets the debugging information twice", c.what)
		}
	}
}

// hasInfo reports whether the program's file, as gdb reads it, has debugging information.
func hasInfo(t *testing.T, g *Cursor) bool {
	t.Helper()
	file, err := g.OpenFile(g.program().path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(io.NewSectionReader(file, 0, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	return f.Section(".debug_info") != nil
}
