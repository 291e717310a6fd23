package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"vplay/replay/debug"
)

// TestClipper: whatever a text holds, it becomes a line of plain text, and a long one says that it
// was cut.
func TestClipper(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                        "plain",
		"a\x1b[31mb\u202ec\xff":        `a\x1b[31mb\u202ec\xff`,
		"two\nlines\tand\x00":          `two\nlines and\x00`,
		"<b>\"'&":                      "<b>\"'&", // the template's work
		strings.Repeat("x", 300):       strings.Repeat("x", 300),
		strings.Repeat("x", 301):       strings.Repeat("x", 300) + " ... (301 bytes in all)",
		strings.Repeat("é", 400):       strings.Repeat("é", 150) + " ... (800 bytes in all)",
		"x" + strings.Repeat("é", 400): "x" + strings.Repeat("é", 149) + " ... (801 bytes in all)",
	} {
		var c clipper
		if got := c.text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestClipperBound: all texts together have a bound, and those behind it are short.
func TestClipperBound(t *testing.T) {
	var c clipper
	sum := 0
	for range 20_000 {
		s := c.text(strings.Repeat("\u202e", 200))
		if sum += len(s); !utf8.ValidString(s) {
			t.Fatalf("%q", s)
		}
	}
	if sum < maxTexts || sum > maxTexts+20_000*(2*maxShort+30) {
		t.Errorf("%d bytes in all", sum)
	}
}

// TestSources: files are found by the ends of their paths in the folders that were named, and
// nothing else is read: not what lies outside, and no file without the name of a source.
func TestSources(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	for name, text := range map[string]string{
		"in/src/a.c": "one\ntwo\r\n", "in/a.c": "other\n", "in/secret.txt": "secret\n", "out.c": "secret\n", "in/binary.c": "\x7fELF\x00\x01",
	} {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if runtime.GOOS != "windows" {
		if err := os.Symlink(filepath.Join(dir, "out.c"), filepath.Join(in, "link.c")); err != nil {
			t.Fatal(err)
		}
	}
	s, err := NewSources([]string{in})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, k := range []struct {
		file string
		line int
		want string
	}{
		{"/build/src/a.c", 2, "two"},
		{"/build/x/a.c", 1, "other"},
		{filepath.ToSlash(in) + "/src/a.c", 1, "one"},
		{`C:\build\src\a.c`, 1, "one"},
		{"src/../a.c", 1, "other"},
		{"a.c", 2, ""},
		{"a.c", 0, ""},
		{"a.c", -1, ""},
		{"/build/secret.txt", 1, ""},
		{"/build/out.c", 1, ""},
		{"../out.c", 1, ""},
		{filepath.ToSlash(dir) + "/out.c", 1, ""},
		{"/x/../../out.c", 1, ""},
		{"/build/link.c", 1, ""},
		{"/build/binary.c", 1, ""},
		{"src", 1, ""},
		{"", 1, ""},
		{strings.Repeat("a/", 10_000) + "a.c", 1, "other"},
		{"a.c\x00.c", 1, ""},
	} {
		if got := s.line(k.file, k.line); got != k.want {
			t.Errorf("%.80s:%d: %q, want %q", k.file, k.line, got, k.want)
		}
	}
	var none *Sources
	if none.line("a.c", 1) != "" {
		t.Error("a finder that is not there finds something")
	}
}

// TestTree: the tree of the page has each row of the slice once, below what it is a part of.
func TestTree(t *testing.T) {
	s := &debug.Slice{Rows: make([]debug.SliceRow, 7)}
	needs := [][]int{{1}, {2, 3}, {4}, {5, 6}, {}, {2}, {}}
	for i := range s.Rows {
		s.Rows[i] = debug.SliceRow{Number: i, Kind: "start", Source: "x", Needs: needs[i]}
	}
	s.Rows[0].Kind = "value"
	m := maker{o: &Options{}}
	var write func(b *branch) string
	write = func(b *branch) (out string) {
		for _, r := range b.Rows {
			out += string(rune('0' + r.Number))
		}
		for _, k := range b.Branches {
			out += "(" + write(k) + ")"
		}
		return out
	}
	if got, want := write(m.tree(s)), "1(24)(3(5)(6))"; got != want {
		t.Errorf("%s, want %s\n%s", got, want, s)
	}
	s.Rows[1].Needs, s.Rows[1].Addresses = []int{2}, []int{3}
	if got, want := write(m.tree(s)), "124(3(5)(6))"; got != want {
		t.Errorf("%s, want %s\n%s", got, want, s)
	}
}

// TestWindow: the picture has the bytes that it is about, and stays in their mapping.
func TestWindow(t *testing.T) {
	const low, high = 0x1000, 0x3000
	for _, addr := range []uint64{low, low + 7, 0x1888, high - 8, high - 1} {
		for _, h := range []heap{{}, {start: addr &^ 15, end: addr&^15 + 24}, {start: low, end: low + 24}, {start: low, end: high}} {
			from, to := window(&subject{addr: addr, len: 8}, h, low, high)
			if from > addr || to <= addr || from < low || to > high || from%rowBytes != 0 || to%rowBytes != 0 || to-from > (maxRows+1)*rowBytes {
				t.Errorf("%#x in %+v: %#x-%#x", addr, h, from, to)
			}
		}
	}
}

func TestOutward(t *testing.T) {
	for first := range 5 {
		seen := map[int]bool{}
		for i, n := range outward(first, 5) {
			if seen[n] || n < 0 || n >= 5 || i == 0 && n != first {
				t.Errorf("from %d: %v", first, outward(first, 5))
			}
			seen[n] = true
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"a-1.vplay": "a-1.vplay", "a b": "'a b'", "it's;rm": `'it'\''s;rm'`, "-rf": "./-rf", "$(x)": "'$(x)'"} {
		if got := quote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// TestPolicy: the style sheet of the page is the one that its policy allows, and a page of nothing
// has no text of the template's own errors.
func TestPolicy(t *testing.T) {
	var b bytes.Buffer
	if err := (&page{Title: "</title><script>", Lead: `" onload="`}).render(&b); err != nil {
		t.Fatal(err)
	}
	css := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(b.String())
	if css == nil || css[1] != style {
		t.Fatal("the style sheet is not as it was")
	}
	sum := sha256.Sum256([]byte(css[1]))
	if want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(html.UnescapeString(b.String()), want) {
		t.Errorf("the policy has no %s", want)
	}
	for _, bad := range []string{"<script", "ZgotmplZ", "<no value>", `" onload="`} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("the page has %s", bad)
		}
	}
}
