package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"vplay/tests/need"
)

// library compiles tests/guest/NAME.c as a shared library.
func library(t *testing.T, cc, name, file string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), file)
	args := append([]string{"-g", "-fPIC", "-shared", "-Wl,--build-id", "-o", out}, flags...)
	if b, err := exec.Command(need.Program(t, cc), append(args, filepath.Join("..", "guest", name+".c"))...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, b)
	}
	return out
}

// TestThreadLocal prints thread-local variables of the program, a library and one
// that was opened at run time, at the end and at earlier moments.
func TestThreadLocal(t *testing.T) {
	t.Parallel()
	linked := library(t, "gcc", "tls_lib", "liblinked.so")
	opened := library(t, "gcc", "tls_lib", "libopened.so", "-Din_library=in_opened", "-Din_library_too=in_opened_too", "-Dlibrary_add=opened_add")
	g := compile(t, "tls", "-O0", "-Wl,--no-as-needed", linked, "-Wl,-rpath,"+filepath.Dir(linked))
	g.args = []string{opened}
	rec := g.record(t, "--keep", "always")
	addr := serve(t, rec, "--symbols", g.dir+"/symbols", "--symbols", filepath.Dir(linked), "--symbols", filepath.Dir(opened))
	expect(t, gdb(t, addr, "tbreak opened_add", "reverse-continue", "print in_opened", "next", "print in_opened_too", "finish", "print in_opened", "print in_library",
		"tbreak main", "reverse-continue", "print in_program", "print aligned", "print cleared[3]", "print in_library"),
		`opened_add \(n=5\)`, `Cannot find thread-local storage`, `= \{1, 7, 3\}`, `= 105`, `= 105`, `= 108`,
		`main \(argc=2`, `= 7`, `"aligned`, `= 0`, `= 100`)
	script := scriptFile(t, "on_line('tls_lib.c:7', lambda m: print(m.function, m.value('in_program')))\n")
	out, errs, code := runScript(t, "--symbols", g.dir+"/symbols", "--symbols", filepath.Dir(linked), "--symbols", filepath.Dir(opened), script, rec)
	if want := "library_add 8\nopened_add 8\n"; code != 0 || out != want {
		t.Errorf("a script exits with %d and prints\n%s%s\nwant\n%s", code, out, errs, want)
	}
}

// TestThreadLocalStatic is about a program without a dynamic linker.
func TestThreadLocalStatic(t *testing.T) {
	t.Parallel()
	g := compile(t, "divert", "-O0", "-static")
	addr := serve(t, g.record(t, "--keep", "always"), "--symbols", g.dir+"/symbols", "--at", "begin")
	expect(t, gdb(t, addr, "print per_thread", "tbreak walk if i == 3", "continue", "print per_thread", "print zeroed[7]"), `no thread-local storage yet|Cannot`, `walk`, `= 44`, `122 'z'`)
}

// TestThreadLocalMusl: its dynamic thread vector has another form.
func TestThreadLocalMusl(t *testing.T) {
	t.Parallel()
	linked := library(t, "musl-gcc", "tls_lib", "liblinked.so")
	g := compile(t, "tls", "-O0", "-Wl,--no-as-needed", library(t, "gcc", "tls_lib", "liblinked.so"))
	args := []string{"-g", "-w", "-O0", "-Wl,--build-id", "-o", g.bin, filepath.Join("..", "guest", "tls.c"), "-Wl,--no-as-needed", linked, "-Wl,-rpath," + filepath.Dir(linked)}
	if b, err := exec.Command(need.Program(t, "musl-gcc"), args...).CombinedOutput(); err != nil {
		t.Fatalf("musl-gcc: %v\n%s", err, b)
	}
	addr := serve(t, g.record(t, "--keep", "always"), "--symbols", g.dir+"/symbols", "--symbols", filepath.Dir(linked))
	expect(t, gdb(t, addr, "tbreak library_add", "reverse-continue", "print in_library", "print in_library_too", "finish", "print in_library", "print in_program", "print aligned"),
		`library_add \(n=8\)`, `= 100`, `= \{1, 2, 3\}`, `= 108`, `= 8`, `"aligned`)
}
