package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	realgdb "vplay/tests/gdb"
	"vplay/tests/need"
)

// TestBoundsWithoutSymbols: in a stripped program, and in a C library without
// debug symbols, gdb finds the bounds of every function.
func TestBoundsWithoutSymbols(t *testing.T) {
	t.Parallel()
	for name, flags := range linkings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := compile(t, "callbacks", flags...)
			addr := serve(t, g.recordStripped(t))
			out := gdb(t, addr, "bt", "reverse-finish", "reverse-finish", "bt 3", "stepi", "up", "finish", "reverse-next", "reverse-finish", "bt")
			if strings.Contains(out, "Cannot find bounds") || strings.Contains(out, "in ?? ()") {
				t.Errorf("a function without bounds:\n%s", out)
			}
			inOrder(t, out, `#0 .*\b\w+ \(\)`, `<signal handler called>`, `fun_[0-9a-f]+ \(\)`)
		})
	}
}

// TestSystemDebugFiles: gdb finds debug files by the build-id in its own folder, and
// places them rightly, without --symbols.
func TestSystemDebugFiles(t *testing.T) {
	t.Parallel()
	for name, flags := range linkings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := compile(t, "callbacks", flags...)
			rec := g.recordStripped(t)
			dir := filepath.Join(g.symbolFiles(t)["build-id"])
			withDebugFile(t, g, serve(t, rec), []string{"-iex", "set debug-file-directory " + dir})
		})
	}
}

// withDebugFile expects names, lines and variables, with gdb started with flags.
func withDebugFile(t *testing.T, g *guest, addr string, flags []string) {
	t.Helper()
	out := realgdb.BatchWith(t, flags, "target remote "+addr, "bt", "frame function main", "print orders[0]", "print compared",
		"break by_number", "reverse-continue", "reverse-continue", "info symbol main", "print &compared")
	at := func(mark string) string { return fmt.Sprintf(`callbacks\.c:%d\b`, g.line(t, mark)) }
	inOrder(t, out,
		`#\d+ .*\bon_usr1 \(sig=.*`+at("CULPRIT"), `<signal handler called>`, `#\d+ .*\bby_number \(.*`+at("RAISE"), `#\d+ .*\bmain \(.*`+at("MAIN"),
		`\$1 = \{number = \d, item = 0x[0-9a-f]+ "\w+"\}`, `\$2 = 13\b`,
		`received signal SIGUSR1`, `Breakpoint 1, .*by_number \(.*callbacks\.c`, `main in section \.text`, `<compared>`)
	if strings.Contains(out, "warning: section") {
		t.Errorf("sections do not fit:\n%s", out)
	}
}

// TestDebuginfod: gdb fetches the debug file by the build-id from a server.
func TestDebuginfod(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(need.Program(t, "gdb"), "--configuration").Output()
	need.Installed(t, "a gdb with debuginfod", err == nil && strings.Contains(string(out), "--with-debuginfod"))
	g := compile(t, "callbacks", linkings["pie"]...)
	rec := g.recordStripped(t)
	dir := g.symbolFiles(t)["build-id"]
	asked := make(chan string, 64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Path:
		default:
		}
		id, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/buildid/"), "/debuginfo")
		if !ok || len(id) < 4 || strings.Contains(id, "/") {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug"))
	}))
	defer server.Close()
	cache := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	withDebugFile(t, g, serve(t, rec), []string{
		"-iex", `python import os; os.environ.update(DEBUGINFOD_CACHE_PATH="` + cache + `")`,
		"-iex", "set debuginfod urls " + server.URL, "-iex", "set debuginfod enabled on",
	})
	if len(asked) == 0 {
		t.Error("nothing was asked of the server")
	}
}

// TestLocalFiles: the program's file where it was recorded is used if, and only if, its
// build-id is the recorded one, and is named.
func TestLocalFiles(t *testing.T) {
	t.Parallel()
	g := compile(t, "tour", "-O0")
	rec := g.record(t, "--keep", "always")
	info := func(flags ...string) string {
		t.Helper()
		out, err := exec.Command(vplayd, append(append([]string{"info"}, flags...), rec)...).CombinedOutput()
		if err != nil {
			t.Fatalf("info: %v\n%s", err, out)
		}
		return string(out)
	}
	put := func(from string) {
		t.Helper()
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(g.bin, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files := regexp.MustCompile(`(?m)^files +.*/tour[,: ]`)
	lines := regexp.MustCompile(`(?m)^lines +none of (.*)$`)
	gone := info()
	if files.MatchString(gone) {
		t.Errorf("a file that is gone is used:\n%s", gone)
	}
	if m := lines.FindStringSubmatch(gone); m == nil || !regexp.MustCompile(`/tour: name the folder of a file with build-id [0-9a-f]{40} by --symbols$`).MatchString(m[1]) {
		t.Errorf("nothing says what the lines take:\n%s", gone)
	}
	put(filepath.Join(g.dir, "symbols", "tour"))
	if out := info(); !files.MatchString(out) || lines.MatchString(out) {
		t.Errorf("the file is not named, or its lines are missed:\n%s", out)
	}
	if out := info("--no-local-files"); strings.Contains(out, "\nfiles ") {
		t.Errorf("files are used in spite of the flag:\n%s", out)
	}
	session := []string{quiet, "break square if x == 5", "reverse-continue", "bt"}
	expect(t, gdb(t, serve(t, rec, "--no-local-files=false"), session...), places(t, g, "tour", []string{`square \(x=5\) at .*LINE:SQUARE`, `add \(x=5\) at .*LINE:ADD`})...)
	put(compile(t, "divide").bin)
	if out := info(); files.MatchString(out) {
		t.Errorf("a file with another build-id is used:\n%s", out)
	} else if m := lines.FindStringSubmatch(out); m == nil || !strings.Contains(m[1], "/tour: the file there is another build; ") {
		t.Errorf("nothing says that the file is another build:\n%s", out)
	}
}

// TestPrettyPrinters: gdb prints the types of the C++ library as it does with files of
// its own.
func TestPrettyPrinters(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("/usr/share/gdb/auto-load/usr/lib/*/libstdc++.so.6*-gdb.py")
	need.Installed(t, "the gdb script of libstdc++", err == nil && len(scripts) > 0)
	g := compile(t, "stl", "-O0", "-std=c++17")
	addr := serve(t, g.record(t), "--symbols", g.dir+"/symbols")
	for name, commands := range map[string][]string{
		"loaded at once":          {loadCommands},
		"when libraries are read": {"nosharedlibrary", loadCommands, "sharedlibrary"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, gdb(t, addr, append(commands, "p text", "p numbers", "p parts[1]", "p sorted", "p hashed", "p some", "p none", "p *unique", "p shared")...),
				`= "a string that is too long`, `= std::vector of length 3, capacity 3 = \{1, 2, 3\}`, `number = 8, name = "eight"`,
				`= std::map with 3 elements = \{\["one"\] = 1`, `= std::unordered_map with 1 element = \{\[1\] = "eins"\}`, `std::optional<int> = \{\[contained value\] = 5\}`,
				`std::optional<int> \[no contained value\]`, `number = 9, name = "nine"`, `std::shared_ptr<Part> \(use count 1, weak count 0\)`)
		})
	}
}
