package dwarf

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"vplay/tests/need"
)

// compiled compiles a source, without warnings, and returns the program and its file.
func compiled(t *testing.T, compiler, source string, flags ...string) (bin string, image []byte) {
	t.Helper()
	bin = filepath.Join(t.TempDir(), "prog")
	args := append([]string{"-w", "-o", bin, source}, flags...)
	if out, err := exec.Command(need.Program(t, compiler), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", compiler, flags, err, out)
	}
	image, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	return bin, image
}
