package dwarf

import (
	"debug/elf"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	realgdb "vplay/tests/gdb"
	"vplay/tests/need"
)

// lineSources are the programs whose lines are compared, and the ways in which they
// are compiled.
var (
	lineSources = []string{"testdata/vars.c", "testdata/vars.cc", "../tests/guest/stl.cc"}
	lineFlags   = []string{"-O0 -gdwarf-5", "-O1 -gdwarf-4", "-O2 -gdwarf-5", "-O3 -gdwarf-5 -ffunction-sections"}
)

// TestLinesAgainstGDB compares the line of every address of the code with what gdb
// says of it, and the places of a breakpoint on every line of the source.
func TestLinesAgainstGDB(t *testing.T) {
	need.Program(t, "gdb", "gcc", "g++")
	for _, source := range lineSources {
		for _, flags := range lineFlags {
			t.Run(path.Base(source)+" "+flags, func(t *testing.T) {
				t.Parallel()
				compiler, args := "gcc", append([]string{"-no-pie"}, strings.Fields(flags)...)
				if path.Ext(source) == ".cc" {
					compiler, args = "g++", append(args, "-std=gnu++17")
				}
				bin, image := compiled(t, compiler, source, args...)
				m, err := Open(image, nil)
				if err != nil {
					t.Fatal(err)
				}
				compareLines(t, bin, m)
				comparePlaces(t, bin, source, m)
			})
		}
	}
}

// asked runs one gdb with a file of commands; the answers are by their mark.
func asked(t *testing.T, bin string, marks []string, command func(mark string) string) map[string]string {
	t.Helper()
	var b strings.Builder
	for _, m := range marks {
		fmt.Fprintf(&b, "echo @@%s\\n\n%s\n", m, command(m))
	}
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for _, part := range strings.Split(realgdb.Batch(t, "file "+bin, "source "+script), "@@")[1:] {
		mark, text, _ := strings.Cut(part, "\n")
		answers[mark] = text
	}
	if len(answers) != len(marks) {
		t.Fatalf("%d answers to %d questions", len(answers), len(marks))
	}
	return answers
}

var infoLine = regexp.MustCompile(`Line (\d+) of "([^"]*)"`)

func compareLines(t *testing.T, bin string, m *Module) {
	t.Helper()
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	var marks []string
	for a := text.Addr; a < text.Addr+text.Size; a += max(1, text.Size/3000) {
		marks = append(marks, fmt.Sprintf("%#x", a))
	}
	bad := 0
	for mark, answer := range asked(t, bin, marks, func(mark string) string { return "info line *" + mark }) {
		a, _ := strconv.ParseUint(mark, 0, 64)
		want, got := "", ""
		if x := infoLine.FindStringSubmatch(answer); x != nil {
			want = path.Base(x[2]) + ":" + x[1]
		}
		if file, num, ok := m.Line(a); ok {
			got = path.Base(file) + ":" + strconv.Itoa(num)
		}
		if got != want {
			if bad++; bad < 10 {
				t.Errorf("%s: line %q, gdb says %q", mark, got, want)
			}
		}
	}
	t.Logf("%d addresses, %d differ", len(marks), bad)
}

var breakAt = regexp.MustCompile(`(?m)^\d+(?:\.\d+)? .*\b(0x[0-9a-f]{16}) in `)

func comparePlaces(t *testing.T, bin, source string, m *Module) {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	base := path.Base(source)
	var marks []string
	for i := range strings.Count(string(text), "\n") {
		marks = append(marks, strconv.Itoa(i+1))
	}
	bad, places := 0, 0
	for mark, answer := range asked(t, bin, marks, func(mark string) string {
		return "break " + base + ":" + mark + "\ninfo breakpoints\ndelete"
	}) {
		var want, got []string
		for _, x := range breakAt.FindAllStringSubmatch(answer, -1) {
			a, _ := strconv.ParseUint(x[1], 0, 64)
			want = append(want, fmt.Sprintf("%#x", a))
		}
		num, _ := strconv.Atoi(mark)
		for _, p := range m.Places(base, num) {
			got = append(got, fmt.Sprintf("%#x", p.Addr))
		}
		slices.Sort(want)
		slices.Sort(got)
		places += len(want)
		if !slices.Equal(got, want) {
			if bad++; bad < 10 {
				t.Errorf("break %s:%s is at %v, gdb says %v", base, mark, got, want)
			}
		}
	}
	t.Logf("%d lines, %d places, %d lines differ", len(marks), places, bad)
}
