package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vplay/tests/need"
)

// misuses are the ways in which tests/guest/heapmisuse.cc misuses the heap, and what the script heap says of each: kind,
// access, how many bytes, where the first bad one is in its block, the block's size, and the marks of the
// lines that allocated and freed it, as far as they are the program's own.
var misuses = []struct {
	how, kind, access    string
	size, offset, length int
	made, freed          string
}{
	{"after-read", "use after free", "read", 1, 33, 40, "MADE", "FREED"},
	{"after-write", "use after free", "write", 4, 20, 40, "MADE", "FREED"},
	{"after-call", "use after free", "read", 10, 0, 40, "MADE", "FREED"},
	{"after-vector", "use after free", "read", 10, 0, 40, "MADE", "FREED"},
	{"call-over", "overflow", "write", 11, 10, 10, "MADE", ""},
	{"after-copy", "use after free", "read", 16, 0, 40, "MADE", "FREED"},
	{"after-strlen", "use after free", "read", 24, 16, 40, "MADE", "GONE"},
	{"over-read", "overflow", "read", 1, 17, 17, "MADE", ""},
	{"over-write", "overflow", "write", 1, 24, 24, "MADE", ""},
	{"over-strlen", "overflow", "read", 0, 20, 20, "MADE", ""}, // how many depends on what is behind
	{"over-copy", "overflow", "write", 16, 20, 20, "MADE", ""},
	{"under-read", "underflow", "read", 1, -1, 24, "MADE", ""},
	{"under-apart", "underflow", "read", 1, -1, 1500, "MADE", ""},
	{"new-over", "overflow", "write", 8, 24, 24, "NEW", ""},
	{"calloc-over", "overflow", "read", 1, 21, 21, "CALLOC", ""},
	{"aligned-over", "overflow", "read", 1, 100, 100, "ALIGNED", ""},
	{"strdup-over", "overflow", "read", 1, 6, 6, "", ""},
	{"realloc-moved", "use after free", "read", 1, 3, 40, "MADE", "MOVED"},
	{"realloc-shrunk", "overflow", "read", 1, 100, 100, "SHRUNK", ""},
	{"rep-over", "overflow", "write", 1, 48, 48, "MADE", ""},
	{"loop", "use after free", "read", 1, 0, 40, "MADE", "FREED"},
	{"unmapped", "use after free", "access", 0, 5, 4 << 20, "MADE", "FREED"},
	{"twice", "double free", "free", 0, 0, 40, "MADE", "FREED"},
}

// heapRow is what the script heap says of an error.
type heapRow struct {
	Kind, Access, Position string
	Size                   int
	PC                     uint64
	Kernel                 bool
	Stack                  []string
	Block                  struct{ Size, Offset int }
	Allocated, Freed       struct{ Place string }
}

// heapRows runs the script heap and returns its errors.
func heapRows(t testing.TB, args ...string) (rows []heapRow, said string) {
	t.Helper()
	out, errs, code := runScript(t, append([]string{"--json"}, args...)...)
	if code != 0 {
		t.Fatalf("the script exits with %d\n%s%s", code, out, errs)
	}
	for line := range strings.Lines(out) {
		var r heapRow
		if json.Unmarshal([]byte(line), &r) == nil && r.Access != "" {
			rows = append(rows, r)
		}
	}
	return rows, out
}

// TestHeapMisuse has the script heap find each kind of misuse, with its place, its position and its block, and nothing else:
// before and behind it the program reads strings in the ways of the C library.
func TestHeapMisuse(t *testing.T) {
	t.Parallel()
	g := compile(t, "heapmisuse", "-O1", "-fno-builtin")
	at := func(mark string) string { return fmt.Sprintf("heapmisuse.cc:%d", g.line(t, mark)) }
	record := func(t *testing.T, how string) string {
		rec := filepath.Join(t.TempDir(), "rec.vplay")
		out, _ := exec.CommandContext(limited(t, patience), vplayd, "record", "-q", "--slim", "never", "--keep", "always", "-o", rec, "--", g.bin, how).CombinedOutput()
		if _, err := os.Stat(rec); err != nil { // some of them end by a signal
			t.Fatalf("nothing was recorded: %s", out)
		}
		return rec
	}
	if rows, said := heapRows(t, "heap", record(t, "not")); len(rows) > 0 {
		t.Errorf("without a misuse:\n%s", said)
	}
	for _, c := range misuses {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			rec := record(t, c.how)
			rows, said := heapRows(t, "heap", rec)
			if len(rows) != 1 {
				t.Fatalf("%d errors are told:\n%s", len(rows), said)
			}
			r := rows[0]
			if c.size == 0 {
				c.size = r.Size
			}
			if r.Kind != c.kind || r.Access != c.access || r.Size != c.size || r.Block.Offset != c.offset || r.Block.Size != c.length {
				t.Errorf("%+v, want %+v", r, c)
			}
			if stack := strings.Join(r.Stack[:min(2, len(r.Stack))], "\n"); !strings.Contains(stack, at("BUG "+c.how)) {
				t.Errorf("it is at %q, want line %s", r.Stack, at("BUG "+c.how))
			}
			if c.made != "" && !strings.HasSuffix(r.Allocated.Place, at(c.made)) || c.freed != "" && !strings.HasSuffix(r.Freed.Place, at(c.freed)) {
				t.Errorf("allocated by %+v, freed by %+v, want %s and %s", r.Allocated, r.Freed, c.made, c.freed)
			}
			if c.how == "after-read" || c.how == "rep-over" { // the position is that of the instruction
				out := gdb(t, serve(t, rec), loadCommands, "vplay seek "+r.Position, "output/x (long) $pc")
				expect(t, out, fmt.Sprintf("%#x", r.PC))
			}
		})
	}
}

// TestHeapScriptSilent has the script heap say nothing of real programs that have nothing wrong; three without -analyses.
func TestHeapScriptSilent(t *testing.T) {
	t.Parallel()
	need.Recorder(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("one two three\nfour five\n", 300)), 0o600); err != nil {
		t.Fatal(err)
	}
	sums := filepath.Join(dir, "sums")
	if err := os.WriteFile(sums, []byte("2^500\nsqrt(2)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	programs := [][]string{
		{"sort", "-r", text}, {"awk", "{ n[$1]++ } END { for (k in n) print k, n[k] }", text}, {"gzip", "-c", text}, {"xz", "-c", text},
		{"bc", "-q", sums}, {"cat", text}, {"date"}, {"find", dir}, {"perl", "-e", "%h = map { $_ => \"x$_\" } (1 .. 500); print join(',', sort values %h)"},
		{"bash", "-c", "for i in 1 2 3; do a[$i]=x$i; done; echo ${a[@]}"},
	}
	if !*allPrograms {
		programs = programs[:3]
	}
	for _, args := range programs {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			need.Program(t, args[0])
			rec := filepath.Join(t.TempDir(), "rec.vplay")
			if out, err := exec.CommandContext(limited(t, patience), vplayd, append([]string{"record", "-q", "--slim", "never", "--keep", "always", "-o", rec, "--"}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("record: %v\n%s", err, out)
			}
			if rows, said := heapRows(t, "heap", rec); len(rows) > 0 {
				t.Errorf("%v:\n%s", args, said)
			}
		})
	}
}

// TestHeapRealProgram has the script heap and memcheck look at mistakes of programs of Debian 12: sgitopnm of netpbm writes behind a block when a row of an SGI
// image takes more than twice its width in the file (2:11.01.00-2), and the awk of busybox goes on with a field when it has moved all of
// them (1:1.35.0-4). The script tells the same instruction as memcheck.
func TestHeapRealProgram(t *testing.T) {
	t.Parallel()
	need.Recorder(t)
	need.Program(t, "valgrind")
	picture := filepath.Join(t.TempDir(), "a.sgi")
	const width, row = 30, 66 // 62 fit
	data := make([]byte, 512, 512+8+row)
	copy(data, "\x01\xda\x01\x01\x00\x02") // compressed, of bytes, of two dimensions
	data[7], data[9], data[11], data[19] = width, 1, 1, 255
	data = append(data, 0, 0, 2, 8, 0, 0, 0, row) // where the row begins, and how long it is
	data = append(data, width, 'A')               // one run
	if err := os.WriteFile(picture, append(data, make([]byte, row-2)...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command      []string
		kind, access string
		size         int // bytes that are accessed
		offset       int // in the block
		length       int // of the block
		isOnly       bool
	}{
		{[]string{"sgitopnm", picture}, "overflow", "write", 2, 124, 124, true},
		// What comes behind the first use depends on what the allocator has put there.
		{[]string{"busybox", "awk", "BEGIN { $1 = $4444 }"}, "use after free", "read", 4, 0, 512, false},
	} {
		t.Run(c.command[0], func(t *testing.T) {
			t.Parallel()
			c.command[0] = need.Program(t, c.command[0])
			want := pageOffsets(t, c.command)
			rec := filepath.Join(t.TempDir(), "rec.vplay")
			out, _ := exec.CommandContext(limited(t, patience), vplayd, append([]string{"record", "-q", "--slim", "never", "--keep", "always", "-o", rec, "--"}, c.command...)...).CombinedOutput()
			if _, err := os.Stat(rec); err != nil { // the allocator may end it
				t.Fatalf("nothing was recorded: %s", out)
			}
			rows, said := heapRows(t, "heap", rec)
			if len(want) == 0 || len(rows) == 0 || rows[0].PC%4096 != want[0] || c.isOnly && len(rows) != len(want) {
				t.Fatalf("memcheck has %#x, the script:\n%s", want, said)
			}
			if r := rows[0]; r.Kind != c.kind || r.Access != c.access || r.Size != c.size || r.Block.Offset != c.offset || r.Block.Size != c.length {
				t.Errorf("%+v, want %+v", r, c)
			}
		})
	}
}
