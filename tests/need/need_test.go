package need

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// probe is a test that notes how it ended.
type probe struct {
	testing.TB
	how string
}

func (p *probe) Helper() {}

func (p *probe) Skip(args ...any) { p.end("skip: " + fmt.Sprint(args...)) }

func (p *probe) Fatalf(format string, args ...any) { p.end("fail: " + fmt.Sprintf(format, args...)) }

func (p *probe) end(how string) {
	p.how = how
	runtime.Goexit()
}

// ending runs f as a test and returns how it ended, "" when it went on.
func ending(f func(t testing.TB)) string {
	var p probe
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(&p)
	}()
	<-done
	return p.how
}

func TestEndings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "here")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name            string
		f               func(t testing.TB)
		want, wantForce string
	}{
		{"program", func(t testing.TB) { Program(t, "/no/program") }, "skip: needs /no/program", "fail: needs /no/program, and VPLAY_REQUIRE_ALL is set"},
		{"second program", func(t testing.TB) { Program(t, "sh", "/no/such") }, "skip: needs /no/such", "fail: needs /no/such, and VPLAY_REQUIRE_ALL is set"},
		{"program without a row", func(t testing.TB) { Program(t, "sh", "xyzzy") }, "fail: tests/need/programs.txt does not list xyzzy", "fail: tests/need/programs.txt does not list xyzzy"},
		{"program here", func(t testing.TB) { Program(t, "sh") }, "", ""},
		{"file", func(t testing.TB) { File(t, "/no/a", "/no/b") }, "skip: needs /no/a or /no/b", "fail: needs /no/a or /no/b, and VPLAY_REQUIRE_ALL is set"},
		{"file here", func(t testing.TB) { File(t, "/no/a", file) }, "", ""},
		{"machine", func(t testing.TB) { Machine(t, "a tape drive", false) }, "skip: needs a tape drive", "skip: needs a tape drive"},
		{"machine here", func(t testing.TB) { Machine(t, "a CPU", true) }, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for value, want := range map[string]string{"": c.want, "1": c.wantForce} {
				t.Setenv(requireAll, value)
				if got := ending(c.f); got != want {
					t.Errorf("with %s=%q: %q, want %q", requireAll, value, got, want)
				}
			}
		})
	}
}

// TestCPU looks for features that no, and every, x86-64 processor has.
func TestCPU(t *testing.T) {
	LinuxAMD64(t)
	if got := ending(func(t testing.TB) { CPU(t, "lm", "no-such-feature") }); got != "skip: needs a CPU with no-such-feature" {
		t.Errorf("%q", got)
	}
	if got := ending(func(t testing.TB) { CPU(t, "lm", "sse2") }); got != "" {
		t.Errorf("%q", got)
	}
}

func TestParseFlags(t *testing.T) {
	got := parseFlags("processor\t: 0\nvmx flags\t: ept\nflags\t\t: fpu sse2\n\nprocessor : 1\nflags : other\n")
	if want := []string{"fpu", "sse2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPython wants the interpreter, not a script that finds it.
func TestPython(t *testing.T) {
	LinuxAMD64(t)
	b, err := os.ReadFile(Python(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(b) < 4 || string(b[:4]) != "\x7fELF" {
		t.Errorf("%s is not an ELF file", Python(t))
	}
}
