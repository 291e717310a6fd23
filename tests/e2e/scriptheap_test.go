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
	"time"

	"vplay/tests/need"
)

var (
	memcheckLost = regexp.MustCompile(`(?:definitely|indirectly) lost: ([\d,]+) bytes in ([\d,]+) blocks`)
	scriptLeak   = regexp.MustCompile(`(?m)^leak: (\d+) bytes in (\d+) blocks`)
)

// sum adds what a pattern finds: bytes and blocks.
func sum(t *testing.T, pattern *regexp.Regexp, text string) (bytes, blocks int) {
	t.Helper()
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		b, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
		n, also := strconv.Atoi(strings.ReplaceAll(m[2], ",", ""))
		if err != nil || also != nil {
			t.Fatal(err, also)
		}
		bytes, blocks = bytes+b, blocks+n
	}
	return bytes, blocks
}

// TestHeapScriptLikeMemcheck has the script heap and valgrind's memcheck look at the same programs: as many bytes in
// as many blocks are lost. Of the blocks that memcheck has no opinion of (possibly lost, since a pointer leads into them) the
// script has that they are held.
func TestHeapScriptLikeMemcheck(t *testing.T) {
	t.Parallel()
	need.Recorder(t)
	need.Program(t, "valgrind")
	leaks := compile(t, "heapuse", "-DFAULT=1", "-pthread")
	dir := t.TempDir()
	lines := filepath.Join(dir, "lines")
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintln(&text, i)
	}
	if err := os.WriteFile(lines, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"heapuse", []string{leaks.bin}},
		{"sort", []string{"sort", "-r", lines}},
		{"perl", []string{"perl", "-e", "@a = map { $_ * 2 } (1 .. 2000); print scalar(@a)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			need.Program(t, c.args[0])
			var diff string
			for range 3 { // a word that looks like a pointer by chance holds a block in one run and not in the next one
				if diff = heapDifference(t, filepath.Join(t.TempDir(), "rec.vplay"), c.args); diff == "" {
					return
				}
			}
			t.Error(diff)
		})
	}
}

// heapDifference has memcheck and the script look at a program, and says how they differ, "" where they do not.
func heapDifference(t *testing.T, rec string, args []string) string {
	t.Helper()
	ctx := limited(t, 2*time.Minute)
	out, err := exec.CommandContext(ctx, "valgrind", append([]string{"--leak-check=full"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("valgrind: %v\n%s", err, out)
	}
	bytes, blocks := sum(t, memcheckLost, string(out))
	if out, err := exec.CommandContext(ctx, vplayd, append([]string{"record", "-q", "--slim", "now", "--keep", "always", "-o", rec, "--"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("record: %v\n%s", err, out)
	}
	said, errs, code := runScript(t, "heap", rec)
	if code != 0 {
		t.Fatalf("the script exits with %d\n%s%s", code, said, errs)
	}
	if gotBytes, gotBlocks := sum(t, scriptLeak, said); gotBytes != bytes || gotBlocks != blocks {
		return fmt.Sprintf("%d bytes in %d blocks are leaked, memcheck has %d in %d\n%s%s\n%s", gotBytes, gotBlocks, bytes, blocks, said, errs, out)
	}
	return ""
}

// TestHeapScriptWithoutHeap: of a program that has no allocator, as one of Go has none, the script says so, and does not
// look at its accesses one by one.
func TestHeapScriptWithoutHeap(t *testing.T) {
	t.Parallel()
	rec := compile(t, "windows", "-O1", "-static", "-nostdlib", "-fno-stack-protector").record(t)
	out, err := exec.CommandContext(limited(t, patience), vplayd, "run", "heap", rec).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "no block was followed: the program has none of malloc's functions") || strings.Contains(string(out), "0 errors") {
		t.Errorf("%v\n%s", err, out)
	}
}
