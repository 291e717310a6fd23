package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vplay/tests/need"
)

// The script uninit beside valgrind's memcheck, on programs whose mistakes are known and on some that
// have none.

// uninitRow is what vplayd run --json uninit prints for a use.
type uninitRow struct {
	Use, Position, Place, Text string
	PC                         uint64
	Stack                      []string
	Origin                     string
	OriginKind                 string `json:"origin_kind"`
}

// runUninit records a program and runs the script.
func runUninit(t *testing.T, command []string, args ...string) (rows []uninitRow) {
	t.Helper()
	rec := filepath.Join(t.TempDir(), "rec.vplay")
	ctx := limited(t, 2*time.Minute)
	cmd := exec.CommandContext(ctx, vplayd, append([]string{"record", "-q", "--slim", "never", "--keep", "always", "-o", rec, "--"}, command...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("record: %v\n%s", err, out)
	}
	out, errs, code := runScript(t, append([]string{"--json", "uninit", rec}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	for line := range strings.Lines(out) {
		var r uninitRow
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			continue // what it prints
		}
		if r.Use != "" {
			rows = append(rows, r)
		}
	}
	return rows
}

// memcheckUse is a line of a report of memcheck's, its first.
var memcheckUse = regexp.MustCompile(`(?m)^==\d+== (?:Conditional jump or move depends on uninitialised|Use of uninitialised value|Syscall param .* (?:points to|contains) uninitialised).*\n(?:==\d+==    (?:at|by) .*\n)*?==\d+==    (?:at|by) .*\((uninit\.c:\d+)\)`)

// TestUninitLikeMemcheck: of each mistake of tests/guest/uninit.c the line and the origin are told, and memcheck tells
// the same line. What is copied or behind an end is not told.
func TestUninitLikeMemcheck(t *testing.T) {
	need.Program(t, "valgrind")
	for _, level := range []string{"-O0", "-O1"} {
		g := compile(t, "uninit", level)
		for _, c := range []struct{ name, use, kind, origin string }{
			{"branch", "branch", "stack", "the frame of branch"},
			{"heap", "branch", "heap", "a block of 32 bytes, allocated at "},
			{"copied", "branch", "heap", "a block of 32 bytes, allocated at "},
			{"array", "branch", "stack", "the frame of array"},
			{"output", "buffer", "heap", "a block of 16 bytes, allocated at "},
			{"index", "address", "stack", "the frame of at"},
			{"grown", "branch", "realloc", "the end of a block of 64 bytes, made by realloc, allocated at "},
			{"text", "string", "heap", "a block of 64 bytes, allocated at "},
			{"pointer", "string", "stack", "the frame of pointer"},
			{"number", "branch", "heap", "a block of 32 bytes, allocated at "},
			{"both", "branch", "heap", "a block of 32 bytes, allocated at "},
			{"swapped", "", "", ""},
			{"copy", "", "", ""},
			{"clean", "", "", ""},
		} {
			if level != "-O0" && !*allPrograms && (c.name == "number" || c.name == "both" || c.name == "swapped") {
				continue
			}
			t.Run(c.name+level, func(t *testing.T) {
				t.Parallel()
				var lines []string
				if c.use != "" {
					lines = []string{fmt.Sprintf("uninit.c:%d", g.line(t, "use: "+c.name))}
				}
				if (level == "-O0" || *allPrograms) && c.name != "swapped" { // memcheck knows fewer shapes of that
					out, err := exec.CommandContext(limited(t, patience), "valgrind", g.bin, c.name).CombinedOutput()
					if err != nil {
						t.Fatalf("valgrind: %v\n%s", err, out)
					}
					var memcheck []string
					for _, m := range memcheckUse.FindAllStringSubmatch(string(out), -1) {
						memcheck = append(memcheck, m[1])
					}
					memcheck = slices.Compact(memcheck) // two instructions of strlen
					if !slices.Equal(memcheck, lines) {
						t.Errorf("memcheck has %v, want %v\n%s", memcheck, lines, out)
					}
				}
				rows := runUninit(t, []string{g.bin, c.name})
				if len(rows) != len(lines) {
					t.Fatalf("%d uses, want %v: %+v", len(rows), lines, rows)
				}
				if c.use == "" {
					return
				}
				if !strings.HasSuffix(rows[0].Place, lines[0]) || rows[0].Use != c.use {
					t.Errorf("want %s at %s: %+v", c.use, lines[0], rows[0])
				}
				if r := rows[0]; r.OriginKind != c.kind || !strings.HasPrefix(r.Origin, c.origin) || c.kind != "stack" && !strings.Contains(r.Origin, "uninit.c:") {
					t.Errorf("origin %q %q", r.OriginKind, r.Origin)
				}
			})
		}
	}
}

// memcheckPC is the instruction of a report of memcheck's.
var memcheckPC = regexp.MustCompile(`(?m)^==\d+== (?:Conditional jump or move depends on uninitialised|Use of uninitialised|Invalid (?:read|write)).*\n==\d+==    at 0x([0-9A-F]+):`)

// pageOffsets runs memcheck and returns where in its page each instruction is that it reports: the page is another one in each run.
func pageOffsets(t *testing.T, command []string) (offsets []uint64) {
	t.Helper()
	out, err := exec.CommandContext(limited(t, patience), "valgrind", command...).CombinedOutput()
	if err != nil {
		t.Fatalf("valgrind: %v\n%s", err, out)
	}
	for _, m := range memcheckPC.FindAllStringSubmatch(string(out), -1) {
		pc, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, pc%4096)
	}
	return offsets
}

// TestUninitRealProgram: yasm decides by what it has never written, when it writes debugging information (1.3.0, Debian's
// 1.3.0-4). The script tells the same instruction as memcheck, and nothing else.
func TestUninitRealProgram(t *testing.T) {
	t.Parallel()
	need.Recorder(t)
	need.Program(t, "valgrind")
	dir := t.TempDir()
	source := filepath.Join(dir, "a.asm")
	if err := os.WriteFile(source, []byte("nop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := []string{need.Program(t, "yasm"), "-f", "elf64", "-g", "dwarf2", "-o", filepath.Join(dir, "a.o"), source}
	want := pageOffsets(t, command)
	rows := runUninit(t, command)
	if len(want) != 1 || len(rows) != 1 || rows[0].PC%4096 != want[0] || rows[0].Use != "branch" || rows[0].OriginKind != "stack" {
		t.Errorf("memcheck has %#x, the script %+v", want, rows)
	}
}

// TestUninitClean: programs in which memcheck finds nothing have nothing told, not even inside of the C
// library. Two without -analyses.
func TestUninitClean(t *testing.T) {
	need.Program(t, "valgrind")
	need.Recorder(t)
	dir := t.TempDir()
	lines := filepath.Join(dir, "lines")
	sums := filepath.Join(dir, "sums")
	for path, text := range map[string]string{lines: "alpha 3\nbeta 1\ngamma 2\n", sums: "2^100\ns(1)\nquit\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	programs := [][]string{
		{"sed", "-e", `s/a\(.\)/\1b/g`, lines},
		{"grep", "-n", "a.*2", lines},
		{"bc", "-l", sums},
		{"gawk", "{ s += $2 } END { print s }", lines},
		{"git", "--no-pager", "diff", "--no-index", lines, lines},
		{"gzip", "-c", lines},
		{"ls", "-l", dir},
		{"sqlite3", ":memory:", "create table t(a, b); insert into t values (1, 2), (3, 4); select sum(a * b) from t;"},
		{"xz", "-c", lines},
		{"sort", "-k2", lines},
	}
	if !*allPrograms {
		programs = programs[:2]
	}
	for _, p := range programs {
		t.Run(p[0], func(t *testing.T) {
			t.Parallel()
			p[0] = need.Program(t, p[0])
			ctx := limited(t, 5*time.Minute)
			cmd := exec.CommandContext(ctx, "valgrind", append([]string{"--error-exitcode=99"}, p...)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("memcheck: %v\n%s", err, out)
			}
			for _, r := range runUninit(t, p, "--", "all") {
				t.Error(r.Text)
			}
		})
	}
}
