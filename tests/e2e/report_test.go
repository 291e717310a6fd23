package e2e

import (
	"bytes"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The page that vplayd report writes, as a text. In a browser it is tested by tests/report.

// htmlPage is a page taken apart.
type htmlPage struct {
	raw      string
	elements []string
	texts    map[string]string // what is shown, by the id of the section that it is in
	links    []string
}

// maxPage bounds the size of all pages here, in bytes.
const maxPage = 1 << 20

// report runs vplayd report, and takes the page apart. A page that is not well-formed fails the test.
func (g *guest) report(t *testing.T, rec string, args ...string) *htmlPage {
	t.Helper()
	cmd := exec.Command(vplayd, append([]string{"report", "-o", "-", "--symbols", filepath.Join(g.dir, "symbols"), rec}, args...)...)
	cmd.Dir = g.dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, errs.String())
	}
	if len(out) > maxPage || !utf8.Valid(out) {
		t.Errorf("%d bytes, UTF-8: %v", len(out), utf8.Valid(out))
	}
	return parsePage(t, string(out))
}

// allowed are the elements that a page has.
var allowed = strings.Fields(`html head meta title style body main h1 h2 h3 p nav ul li a section div table caption thead tbody tr th td span b br code details summary ol
	svg text rect line path g footer`)

// parsePage takes a page apart, and holds it to what is true of all pages.
func parsePage(t *testing.T, page string) *htmlPage {
	t.Helper()
	p := &htmlPage{raw: page, texts: map[string]string{}}
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta", "br"}, xml.HTMLEntity
	section, depth := "", 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			depth++
			p.elements = append(p.elements, x.Name.Local)
			if !slices.Contains(allowed, x.Name.Local) {
				t.Errorf("the page has a %s", x.Name.Local)
			}
			for _, a := range x.Attr {
				switch name := a.Name.Local; {
				case x.Name.Local == "section" && name == "id":
					section = a.Value
				case name == "href":
					p.links = append(p.links, a.Value)
				case name == "src" || name == "style" || strings.HasPrefix(name, "on"):
					t.Errorf("a %s has %s=%q", x.Name.Local, name, a.Value)
				}
			}
		case xml.EndElement:
			depth--
			if x.Name.Local == "section" {
				section = ""
			}
			p.texts[section] += " "
		case xml.CharData:
			p.texts[section] += string(x)
		}
	}
	if depth != 0 {
		t.Errorf("%d elements are open at the end", depth)
	}
	for _, l := range p.links {
		if !strings.HasPrefix(l, "#") || !strings.Contains(page, `id="`+l[1:]+`"`) {
			t.Errorf("a link to %s", l)
		}
	}
	if !strings.Contains(page, `http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;;`) {
		t.Error("the page has no policy")
	}
	for _, s := range []string{"end", "code", "calls", "slice", "memory", "timeline", "last", "events", "threads", "registers", "modules", "recording"} {
		if len(strings.TrimSpace(p.texts[s])) < 20 {
			t.Errorf("the section %s has %q", s, p.texts[s])
		}
	}
	return p
}

// wants looks for texts in sections, which begin with the section's id and a colon.
func (p *htmlPage) wants(t *testing.T, texts ...string) {
	t.Helper()
	for _, w := range texts {
		section, want, _ := strings.Cut(w, ": ")
		if !regexp.MustCompile(want).MatchString(p.texts[section]) {
			t.Errorf("no %s in the section %s:\n%s", want, section, p.texts[section])
		}
	}
}

// here returns the line that is marked in a listing.
func (p *htmlPage) here(listing string) string {
	_, rest, _ := strings.Cut(p.raw, `id="`+listing+`"`)
	m := regexp.MustCompile(`class="here"[^>]*><th scope="row">([^<]*)</th><td>([^<]*)`).FindStringSubmatch(rest)
	if m == nil {
		return ""
	}
	return m[1] + " " + strings.TrimSpace(html.UnescapeString(m[2]))
}

// TestReport: the page of a crash has what gdb, slice and the questions to the past say of it.
func TestReport(t *testing.T) {
	t.Parallel()
	g := compile(t, "slice/overwrite")
	rec := g.record(t)
	source, err := filepath.Abs("../guest")
	if err != nil {
		t.Fatal(err)
	}
	p := g.report(t, rec, "--source", source)
	if got := p.here("source"); got != "21 total += a->balance;" {
		t.Errorf("the marked line is %q", got)
	}
	if got := p.here("instructions"); !strings.Contains(got, "mov 0x10(%rax),%rax") {
		t.Errorf("the marked instruction is %q", got)
	}
	p.wants(t, "end: killed by SIGSEGV", "calls: #0 +main +at +overwrite.c:21", "calls: total +0 +long", "calls: from +0x[0-9a-f]+ .much too long.",
		`slice: #\d+ \d+:\d+\.\d+ +main overwrite.c:18 +accounts\[1\].name\[i\] = from\[i\]; // cause`, "slice: instructions of [0-9,]+ executed",
		`memory:  long..\.`, "memory: A +0:[0-9.]+ +main overwrite.c:18", "timeline: a thread runs", "timeline: crash", "last: main", `events: \d+ +0:\d+\.\d+ +\d+ +munmap\(.*\) = 0`,
		`threads: \d+ overwrite, runs`, "registers: rip +0x[0-9a-f]+ <main\\+231>", "modules: overwrite +[0-9a-f]{40}", "recording: vplayd replay rec.vplay")
	if path := os.Getenv("PATH"); path == "" || strings.Contains(p.raw, path) {
		t.Errorf("the environment is on the page: %q", path)
	}
	// A position of the page can be sought.
	at := regexp.MustCompile(`#\d+ (0:\d+\.\d+)`).FindStringSubmatch(p.texts["slice"])
	if at == nil {
		t.Fatal("no position in the slice")
	}
	moment := g.report(t, rec, "--at", at[1])
	if !strings.Contains(moment.texts[""], "another moment than the end") || !strings.Contains(moment.texts[""], at[1]) {
		t.Errorf("the page about %s: %s", at[1], moment.texts[""])
	}
	moment.wants(t, "code: was not found: --source", "timeline: this moment", "end: killed by SIGSEGV")
}

// TestReportOfHeap: the block and the function that wrote behind it are on the page, and so is what was written.
func TestReportOfHeap(t *testing.T) {
	t.Parallel()
	g := compile(t, "heapabort")
	g.args = []string{"1"}
	p := g.report(t, g.record(t))
	p.wants(t, "end: overwritten +size of the block", "memory: what was overwritten", "memory: size, then block 0x[0-9a-f]+ of 24 bytes", "memory: damaged size of a block",
		"memory: onger than twent", "memory: for spoil heapabort.c:6", "slice: size of the block at 0x[0-9a-f]+, .*which was overwritten", "slice: spoil heapabort.c:6", "slice: main heapabort.c:17")
}

// TestReportWithoutCrash: the page is about the end, with all threads.
func TestReportWithoutCrash(t *testing.T) {
	t.Parallel()
	g := compile(t, "crew", "-pthread")
	p := g.report(t, g.record(t, "--keep", "always"))
	p.wants(t, "end: exited", "slice: does not follow from this moment", "memory: does not follow", "timeline: end: the moment", "last: pass +start_thread")
	if !strings.Contains(p.texts[""], "did not crash in this recording") {
		t.Errorf("%s", p.texts[""])
	}
}

// TestReportOfMarkup: what a recording holds is text on the page, whatever it is.
func TestReportOfMarkup(t *testing.T) {
	t.Parallel()
	g := compile(t, "markup")
	g.args = []string{"</td><script>alert(1)</script>\x1b[31m\xff\u202e" + strings.Repeat("<", 10_000)}
	p := g.report(t, g.record(t))
	for _, r := range p.raw {
		if r < ' ' && r != '\n' || r == 0x7f || r == 0x202e || r == utf8.RuneError {
			t.Errorf("the page has %U", r)
		}
	}
	p.wants(t, `end: </td><script>alert\(1\)</script>\\x1b\[31m\\xff\\u202e<+ \.\.\. \(\d+ bytes in all\)`, `code: <script>alert\('name'\)</script><b title='`,
		`calls: script>"'&\\x1b\[31m.c:23`, `calls: </style></title><script>alert\('%s'\)</script><img src=`, `threads: <b>.*&'"`, `events: write\(-1, "</style></title><script>`)
	if n := strings.Count(p.raw, "<style>"); n != 1 {
		t.Errorf("%d style sheets", n)
	}
}

// TestReportFiles: a page is written whole, for its owner, and replaces nothing unless told to.
func TestReportFiles(t *testing.T) {
	t.Parallel()
	g := compile(t, "slice/divide")
	rec := g.record(t)
	run := func(code int, want string, args ...string) {
		t.Helper()
		cmd := exec.Command(vplayd, append([]string{"report"}, args...)...)
		cmd.Dir = g.dir
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), want) {
			t.Errorf("%v: exit code %d, want %d\n%s", args, got, code, out)
		}
	}
	run(0, "rec.html: ", rec)
	page := filepath.Join(g.dir, "rec.html")
	st, err := os.Stat(page)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Fatal(st, err)
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	parsePage(t, string(b))
	run(1, "hint: choose another name by -o FILE, or replace it with --force", rec)
	if again, err := os.ReadFile(page); err != nil || !bytes.Equal(again, b) {
		t.Errorf("the page was touched: %v", err)
	}
	run(0, "rec.html: ", "-f", rec)
	run(1, "cannot write", "-o", "no/such/folder.html", rec)
	run(2, "--source no/such is not a folder", "--source", "no/such", rec)
	run(2, "--time", "--time", "0s", rec)
	run(2, "--at takes", "--at", "99:1", "-o", "x.html", rec)
	run(2, "no process 1 in", "--process", "1", "-o", "x.html", rec)
	left, err := filepath.Glob(filepath.Join(g.dir, "*.html*"))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}
