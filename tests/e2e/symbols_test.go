package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"vplay/tests/need"
)

// symbolFiles lays a guest's symbols out in the ways that people keep them and
// returns the folders by name.
func (g *guest) symbolFiles(t *testing.T) map[string]string {
	t.Helper()
	need.Program(t, "objcopy", "readelf")
	full := filepath.Join(g.dir, "symbols")
	flat := filepath.Join(g.dir, "flat")
	debug := filepath.Join(flat, "some-name.debug")
	if err := os.MkdirAll(flat, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("objcopy", "--only-keep-debug", filepath.Join(full, filepath.Base(g.bin)), debug).CombinedOutput(); err != nil {
		t.Fatalf("objcopy: %v\n%s", err, out)
	}
	notes, err := exec.Command("readelf", "-n", debug).Output()
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`Build ID: ([0-9a-f]+)`).FindSubmatch(notes)
	if id == nil {
		t.Fatalf("no build-id in\n%s", notes)
	}
	byID := filepath.Join(g.dir, "by-id")
	sub := filepath.Join(byID, ".build-id", string(id[1][:2]))
	if err := os.MkdirAll(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(debug)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sub, string(id[1][2:])+".debug"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"full": full, "debug": flat, "build-id": byID}
}

// recordStripped records the guest without its symbols and leaves the file that has
// them in g.dir/symbols.
func (g *guest) recordStripped(t *testing.T) string {
	t.Helper()
	need.Program(t, "strip")
	whole, err := os.ReadFile(g.bin)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("strip", g.bin).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, out)
	}
	rec := g.record(t)
	if err := os.WriteFile(filepath.Join(g.dir, "symbols", filepath.Base(g.bin)), whole, 0o755); err != nil {
		t.Fatal(err)
	}
	return rec
}

// inOrder fails unless the regular expressions match one behind the other.
func inOrder(t *testing.T, out string, patterns ...string) {
	t.Helper()
	rest := out
	for _, p := range patterns {
		m := regexp.MustCompile(p).FindStringIndex(rest)
		if m == nil {
			t.Errorf("%q is missing, or not where it belongs, in\n%s", p, out)
			return
		}
		rest = rest[m[1]:]
	}
}

var linkings = map[string][]string{
	"pie":        {"-O1", "-pie", "-fPIE"},
	"no-pie":     {"-O2", "-no-pie", "-fno-pie"},
	"static":     {"-O1", "-static"},
	"static-pie": {"-O0", "-static-pie", "-fPIE"},
}

// TestSymbols looks at the same crash in programs linked in each way, with
// symbol files of each kind and with none, and with the program itself gone.
func TestSymbols(t *testing.T) {
	need.Program(t, "gdb", "strip")
	for name, flags := range linkings {
		t.Run(name, func(t *testing.T) {
			g := compile(t, "callbacks", flags...)
			rec := g.recordStripped(t)
			for kind, dir := range g.symbolFiles(t) {
				t.Run(kind, func(t *testing.T) { withSymbols(t, g, serve(t, rec, "--symbols", dir)) })
			}
			t.Run("none", func(t *testing.T) { withoutSymbols(t, serve(t, rec), strings.HasPrefix(name, "static")) })
		})
	}
}

// withSymbols expects names, lines, locals and breakpoints by both.
func withSymbols(t *testing.T, g *guest, addr string) {
	at := func(mark string) string { return fmt.Sprintf(`callbacks\.c:%d\b`, g.line(t, mark)) }
	out := gdb(t, addr, "bt", "frame function main", "print orders[0]", "print compared", "info symbol main",
		"break by_number", "break callbacks.c:"+strconv.Itoa(g.line(t, "MAIN")), "reverse-continue", "reverse-continue", "bt", "info proc mappings")
	inOrder(t, out,
		`#\d+ .*\babort \(\)`,
		`#\d+ .*\bon_usr1 \(sig=.*`+at("CULPRIT"),
		`#\d+ +<signal handler called>`,
		`#\d+ .*\bby_number \(.*`+at("RAISE"),
		`#\d+ .*\bqsort(_r)? \(`,
		`#\d+ .*\bsmallest \(.*`+at("SORT"),
		`#\d+ .*\bmain \(.*`+at("MAIN"),
		`\$1 = \{number = \d, item = 0x[0-9a-f]+ "\w+"\}`,
		`\$2 = 13\b`,
		`main in section \.text`,
		`Breakpoint 1 at .*callbacks\.c`,
		`Breakpoint 2 at .*callbacks\.c`,
		`received signal SIGUSR1`,
		`Breakpoint 1, .*by_number \(`,
		`#0 .*by_number \(`,
		`#\d+ .*\bmain \(`,
		`r-xp .*callbacks`,
	)
}

// withoutSymbols expects unwinding through all of it, and the names that
// shared libraries export.
func withoutSymbols(t *testing.T, addr string, static bool) {
	if static {
		out := gdb(t, addr, "bt")
		if n := len(regexp.MustCompile(`(?m)^#\d+ `).FindAllString(out, -1)); n < 10 {
			t.Errorf("%d frames, wanted at least 10:\n%s", n, out)
		}
		inOrder(t, out, `<signal handler called>`, `#\d+ `, `#\d+ `, `#\d+ `, `#\d+ `)
		return
	}
	out := gdb(t, addr, "bt", "info symbol qsort", "info sharedlibrary", "break raise", "reverse-continue", "reverse-continue", "bt 1", "x/i 0")
	inOrder(t, out,
		`#\d+ .*\babort \(\)`, `#\d+ .* in fun_[0-9a-f]+ \(\)`, `<signal handler called>`, `\braise \(\)`, `#\d+ .* in fun_[0-9a-f]+ \(\)`, `\bqsort(_r)? \(\)`,
		`__libc_start_main`,
		`qsort in section \.text of target:.*libc\.so\.6`,
		`Yes \(\*\) +target:.*libc\.so\.6`,
		`Yes \(\*\) +target:.*ld-linux`,
		`Breakpoint 1 at`, `Breakpoint 1, .*raise \(\)`, `received signal SIGUSR1`,
		`Cannot access memory at address 0x0`,
	)
}

// TestInfoBacktrace: the same stack by our own unwinder.
func TestInfoBacktrace(t *testing.T) {
	g := compile(t, "callbacks", "-O1", "-static")
	rec := g.record(t)
	at := func(mark string) string { return fmt.Sprintf(`callbacks\.c:%d\b`, g.line(t, mark)) }
	b, err := exec.Command(vplayd, "info", "--json", "--symbols", filepath.Join(g.dir, "symbols"), rec).CombinedOutput()
	if err != nil {
		t.Fatalf("info: %v\n%s", err, b)
	}
	out := regexp.MustCompile(`"file":"[^"]*/(callbacks\.c)","line":`).ReplaceAllString(string(b), `$1:`)
	inOrder(t, out, `"function":"abort"`, `"on_usr1".*?`+at("CULPRIT"), `"by_number".*?`+at("RAISE"), `qsort`, `"smallest".*?`+at("SORT"), `"main".*?`+at("MAIN"))
}
