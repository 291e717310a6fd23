package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestUnloaded: a call into a library that was unloaded. info says what was there, and the slice has
// the code of the library with its name and line.
func TestUnloaded(t *testing.T) {
	t.Parallel()
	g := compile(t, "unloaded", "-O0")
	lib := filepath.Join(g.dir, "libgive.so")
	if out, err := exec.Command("gcc", "-g", "-O0", "-shared", "-fPIC", "-DLIBRARY", "-o", lib, filepath.Join("..", "guest", "unloaded.c")).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	g.args = []string{lib}
	rec := g.record(t)
	out, err := exec.Command(vplayd, "info", rec).CombinedOutput()
	if err != nil {
		t.Fatalf("info: %v\n%s", err, out)
	}
	expect(t, string(out), `^ +0x\w+ was \S+/libgive\.so\+0x\w+ until that was unmapped \(event \d+\)`, `^at +0x\w+: nothing is mapped there`)
	if out, err = exec.Command(vplayd, "slice", rec).CombinedOutput(); err != nil {
		t.Fatalf("slice: %v\n%s", err, out)
	}
	expect(t, string(out), places(t, g, "unloaded", []string{`give\+0x\w+ in libgive\.so .*LINE:GIVE`})...)
}
