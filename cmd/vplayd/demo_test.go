package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vplay/checkpoint"
	"vplay/replay/debug/text"
)

// runDemo runs the demo and returns what it printed.
func runDemo(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := newRoot(&out)
	root.SetArgs(append([]string{"demo", "--no-gdb"}, args...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("demo: %v\n%s", err, out.String())
	}
	return out.String()
}

// TestDemoFindsTheCause runs all of the demo: the recording replays exactly on
// this machine, and the watchpoint leads back to the mistake.
func TestDemoFindsTheCause(t *testing.T) {
	out := runDemo(t)
	for _, want := range []string{
		"killed by SIGSEGV",
		"exact",
		"si_addr=0x7d3",
		"#0 report+0x15 in weather weather.c:57",
		"#1 main+0x35 in weather weather.c:64",
		"->  57          printf(",
		"%rbx = 0x7c3 is no pointer",
		"add_reading+0x8 in weather weather.c:28",
		"->  28      s->readings[s->at++] = value;",
		"gdb -ex 'directory weather' -ex 'target remote :1234'",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not say %q:\n%s", want, out)
		}
	}
}

// TestDemoExtract leaves the files, all whole and small, and nothing that tells
// of the machine they were made on.
func TestDemoExtract(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "weather")
	runDemo(t, "--extract", dir)
	total := int64(0)
	for _, name := range []string{"weather.vplay", "weather.debug", "weather.c"} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		total += st.Size()
	}
	if total > 600_000 {
		t.Errorf("the demo's files are %d bytes", total)
	}
	rec, err := checkpoint.Open(filepath.Join(dir, "weather.vplay"))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for _, e := range rec.Manifest().Env {
		if !strings.HasPrefix(e, "GLIBC_TUNABLES=") && !strings.HasPrefix(e, "OPENSSL_ia32cap=") {
			t.Errorf("the recording holds the variable %q", e)
		}
	}
}

// TestInfo prints the embedded recording. It does so without a sandbox, which nobody
// leaves: this process has other tests to run.
func TestInfo(t *testing.T) {
	dir := t.TempDir()
	runDemo(t, "--extract", dir)
	var out bytes.Buffer
	root := newRoot(&out)
	root.SetArgs([]string{"info", "--no-sandbox", "--symbols", dir, filepath.Join(dir, "weather.vplay")})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"killed by SIGSEGV", "report+0x15 in weather: mov 0x10(%rbx),%rdx", "weather.c:57",
		"called from  main+0x35 in weather weather.c:64", "2 intervals (0 fat, 2 slim)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("info does not say %q:\n%s", want, out.String())
		}
	}
}

// TestPrintable: a recording's strings cannot move the cursor.
func TestPrintable(t *testing.T) {
	if got := text.Printable("a\x1b[2J\nb\u202ec "); got != "a?[2J?b?c" {
		t.Errorf("got %q", got)
	}
}

// TestAffectedWithoutInput: where nothing was read there is nothing to follow, which is said, and
// what was executed is counted all the same.
func TestAffectedWithoutInput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "weather")
	runDemo(t, "--extract", dir)
	out, code, err := vplayd(t, "affected", filepath.Join(dir, "weather.vplay"), "input:77")
	if want := "0 instructions of 75,022,048 executed, up to 1:4130.0; no call there has read anything\n"; code != exitOK || !strings.HasSuffix(out, want) {
		t.Errorf("exit code %d, %v:\n%s\nwant %s", code, err, out, want)
	}
}
