package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"vplay/replay/debug/text"
)

// heard returns what f writes to standard error.
func heard(t *testing.T, f func()) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	was := os.Stderr
	os.Stderr = file
	f()
	os.Stderr = was
	b, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestStderrEscaped has all that writes to standard error without cobra say what a
// terminal acts on.
func TestStderrEscaped(t *testing.T) {
	const bad = "a\x1b]0;title\ab\u009bc\u202ed\x7f"
	for name, f := range map[string]func(){
		"error":   func() { printError(errors.New(bad)) },
		"hint":    func() { printError(withHint(errors.New("x"), exitFailed, "%s", bad)) },
		"summary": func() { fmt.Fprintf(stderr, "vplayd: %s: slimmed\n", bad) },
		"panic":   func() { bugReport(bad) },
		"log":     func() { logIn(t, "json").Warn().Str("path", bad).Msg(bad) },
		"console": func() { logIn(t, "console").Warn().Str("path", bad).Err(errors.New(bad)).Msg(bad) },
		"progress": func() {
			p := &progress{on: true}
			p.show("%s", bad)
			p.done()
		},
	} {
		said := heard(t, f)
		for _, own := range []string{"\r\x1b[K", "\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[36m", "\x1b[90m"} {
			said = strings.ReplaceAll(said, own, "") // the progress line's, and the console's colours
		}
		if said == "" || text.Escape(said) != said {
			t.Errorf("%s: %q", name, said)
		}
	}
}

// logIn returns a logger as the flag --log-format makes it.
func logIn(t *testing.T, format string) *zerolog.Logger {
	t.Helper()
	root := newRoot(io.Discard)
	if err := root.ParseFlags([]string{"--log-format", format}); err != nil {
		t.Fatal(err)
	}
	l := logger(root, "test")
	return &l
}

// TestStderrOnlyEscaped looks for what writes to standard error past the escapes:
// no line but those of fixed text, and the progress line, which escapes by itself.
func TestStderrOnlyEscaped(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	direct := regexp.MustCompile(`Fprint\w*\(os\.Stderr, (.*)`)
	fixed := regexp.MustCompile(`^"[^%]*"\)$`)
	own := map[string]bool{`"\r\x1b[K%s", p.text)`: true, `"%s", debug.Stack())`: true}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range direct.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasSuffix(name, "_test.go") && !fixed.MatchString(m[1]) && !own[m[1]] {
				t.Errorf("%s writes past the escapes: %s", name, m[0])
			}
		}
	}
}
