package gdbstub

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vplay/replay/debug/api"
)

var update = flag.Bool("update", false, "rewrite the replies in testdata/conversation")

// A conversation is a text file. Lines begin with
//
//	#   a comment
//	=   something to turn on in the fake target
//	>   a packet to send; the replies follow
//	>>  a packet that has no reply, or none before the interrupt that follows
//	^   an interrupt; the reply to the packet before follows
//	<   a reply; console output comes before the reply proper
//
// Payloads are in Go's string syntax without the quotes.

// readConversation returns the lines of a file.
func readConversation(t testing.TB, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// unquote is the inverse of quote.
func unquote(t testing.TB, s string) string {
	t.Helper()
	out, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return out
}

// quote writes a payload; bytes that are not printable ASCII come as \x, but a
// line feed as \n.
func quote(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\\':
			b.WriteString(`\\`)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// turnOn applies a = line.
func turnOn(t testing.TB, f *fakeTarget, what string) {
	t.Helper()
	switch what {
	case "hang":
		f.hang = true
	case "attached":
		f.attached = true
	case "no siginfo":
		f.noSiginfo = true
	case "broken":
		f.panics = true
	case "divergence":
		f.resumeErr = errors.New("divergence at 0:17.0: rip")
	case "threads":
		f.threads = append(f.threads, api.Thread{PID: fakePID, TID: 0x1235, Name: "worker <1>", Core: 1})
	case "libraries":
		f.libraries = []api.Library{
			{Name: fakeExec, LinkMap: 0x5000, Main: true, Dynamic: 0x402e00},
			{Name: "/lib/libc & co.so.6", LinkMap: 0x5100, Base: 0x7f0000000000, Dynamic: 0x7f0000001000},
			{Name: "linux-vdso.so.1", LinkMap: 0x5200, Base: 0x7ffff0000000, Dynamic: 0x7ffff0000100},
			{Name: "", LinkMap: 0x5300},
		}
	default:
		t.Fatalf("what is %q?", what)
	}
}

func TestConversations(t *testing.T) {
	paths, err := filepath.Glob("testdata/conversation/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) { converse(t, path) })
	}
}

// converse holds one conversation and compares, or rewrites it.
func converse(t *testing.T, path string) {
	lines := readConversation(t, path)
	f := newFake()
	var out []string
	var c *client
	for _, line := range lines {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "=":
			turnOn(t, f, rest)
		case ">", ">>", "^":
			if c == nil {
				c = dial(t, f)
				defer func() { _ = c.hangUp() }()
			}
		}
		if kind != "<" {
			out = append(out, line)
		}
		switch kind {
		case ">", ">>":
			c.raw(frame(unquote(t, rest)))
		case "^":
			c.raw("\x03")
		}
		if kind == ">" || kind == "^" {
			out = append(out, replies(c)...)
		}
	}
	got := strings.Join(out, "\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := strings.Join(lines, "\n") + "\n"
	if got != want {
		t.Errorf("%s differs; run go test -run Conversations -update and look at the difference.\n%s", path, firstDifference(got, want))
	}
	if f.overlap.Load() {
		t.Error("calls to the target overlapped")
	}
}

// replies reads up to the reply proper.
func replies(c *client) []string {
	var out []string
	for {
		r := c.receive()
		out = append(out, strings.TrimRight("< "+quote(r), " "))
		if !strings.HasPrefix(r, "O") || r == "OK" {
			return out
		}
	}
}

// firstDifference shows where two texts part.
func firstDifference(got, want string) string {
	g, w := bufio.NewScanner(strings.NewReader(got)), bufio.NewScanner(strings.NewReader(want))
	for n := 1; ; n++ {
		a, b := g.Scan(), w.Scan()
		if g.Text() != w.Text() || a != b {
			return "line " + strconv.Itoa(n) + "\n got: " + g.Text() + "\nwant: " + w.Text()
		}
		if !a {
			return "no difference"
		}
	}
}
