package report

import (
	"context"
	"encoding/json"
	"flag"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vplay/tests/internal/browser"
	"vplay/tests/internal/tool"
	"vplay/tests/need"
)

var shots = flag.String("shots", "", "keep a picture of each page in this `FOLDER`")

// vplayd is the path of the command under test.
var vplayd string

func TestMain(m *testing.M) { tool.Main(m, &vplayd) }

// view is what page.js says of a page in one look.
type view struct {
	Look     string
	Requests []string
	Said     []string // by the console, errors and dialogs
	Survey   struct {
		Title, Background       string
		Scripts, Foreign, Texts int
		Faint                   []string
		Unnamed                 int // pictures
		Headings                []int
		TablesWithoutHeads      int
		Overflow                int // pixels, sideways
	}
	Seen map[string]struct {
		Count   int
		Visible bool
		Text    string
	}
	Folds, Links bool
	Printed      int // bytes of the PDF
}

// report records a program of tests/guest, and writes the page about it.
func report(t *testing.T, guest string, args ...string) (page string) {
	t.Helper()
	need.Program(t, "gcc")
	dir := t.TempDir()
	source, err := filepath.Abs(filepath.Join("..", "guest", guest+".c"))
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) []byte {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil && args[0] != "record" { // which ends as the program does
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return out
	}
	run("gcc", "-g", "-w", "-O0", "-pthread", "-o", "prog", source)
	run(vplayd, append([]string{"record", "-q", "--keep", "always", "--slim", "now", "-o", "prog.vplay", "--", "./prog"}, args...)...)
	run(vplayd, "report", "--source", filepath.Dir(source), "prog.vplay")
	return filepath.Join(dir, "prog.html")
}

// open shows a page to the browser in all looks; wanted are selectors of what must be seen there, by
// a name.
func open(t *testing.T, page string, wanted map[string]string) map[string]*view {
	t.Helper()
	dir := browser.Installed(t)
	show := func(folder string) []byte {
		t.Helper()
		config, err := json.Marshal(map[string]any{
			"playwright": filepath.Join(dir, "node_modules", "playwright-core"), "page": page, "wanted": wanted, "shots": folder, "name": t.Name(),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "node", "page.js", string(config))
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("page.js: %v\n%s", err, errs.String())
		}
		return out
	}
	t.Cleanup(func() { // before the page is removed
		folder := *shots
		if t.Failed() && folder == "" {
			folder = filepath.Join(os.TempDir(), "vplay-report-shots")
		}
		if folder == "" {
			return
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Error(err)
			return
		}
		show(folder)
		t.Logf("pictures are in %s", folder)
	})
	out := show("")
	views := map[string]*view{}
	for line := range strings.Lines(string(out)) {
		v := &view{}
		if err := json.Unmarshal([]byte(line), v); err != nil {
			t.Fatal(err)
		}
		v.check(t, page, wanted)
		views[v.Look] = v
	}
	if len(views) != 4 {
		t.Fatalf("%d looks", len(views))
	}
	if views["light"].Survey.Background == views["dark"].Survey.Background {
		t.Errorf("light and dark are both on %s", views["dark"].Survey.Background)
	}
	if l := views["light"]; !l.Folds || !l.Links {
		t.Errorf("folds: %v, links: %v", l.Folds, l.Links)
	}
	if views["print"].Printed < 10_000 {
		t.Errorf("the printed page has %d bytes", views["print"].Printed)
	}
	return views
}

// check holds a view to what is true of all pages.
func (v *view) check(t *testing.T, page string, wanted map[string]string) {
	t.Helper()
	s := &v.Survey
	if own := (&url.URL{Scheme: "file", Path: page}).String(); len(v.Requests) != 1 || v.Requests[0] != own {
		t.Errorf("%s: the page asked for %v", v.Look, v.Requests)
	}
	if len(v.Said) > 0 {
		t.Errorf("%s: %s", v.Look, strings.Join(v.Said, "\n"))
	}
	if s.Scripts+s.Foreign > 0 {
		t.Errorf("%s: %d scripts, %d elements that load or lead elsewhere", v.Look, s.Scripts, s.Foreign)
	}
	if s.Texts < 100 || len(s.Faint) > 0 {
		t.Errorf("%s: %d texts, hard to read: %s", v.Look, s.Texts, strings.Join(s.Faint, "; "))
	}
	if s.Unnamed+s.TablesWithoutHeads > 0 {
		t.Errorf("%s: %d pictures without a name, %d tables without heads", v.Look, s.Unnamed, s.TablesWithoutHeads)
	}
	if s.Overflow > 0 {
		t.Errorf("%s: the page is %d pixels too wide", v.Look, s.Overflow)
	}
	for i, level := range s.Headings {
		if i == 0 != (level == 1) || i > 0 && level > s.Headings[i-1]+1 {
			t.Errorf("%s: headings %v", v.Look, s.Headings)
			break
		}
	}
	for name := range wanted {
		if got := v.Seen[name]; !got.Visible {
			t.Errorf("%s: %s is not to be seen (%d are there)", v.Look, name, got.Count)
		}
	}
}

// TestPage: the crash line, the slice and both pictures are to be seen.
func TestPage(t *testing.T) {
	t.Parallel()
	views := open(t, report(t, "slice/overwrite"), map[string]string{
		"the crash line": "#source tr.here td", "the instruction": "#instructions tr.here td", "the slice": "#slice .row", "the memory": "#memory .memory .mark",
		"the writers": "#writers .letter", "the timeline": "#timeline svg[role=img]", "the turns": "#timeline svg[role=img] .turn", "the crash": "#timeline svg text.now",
		"variables": "#calls .vars td", "events": "#events td", "calls": "#last td", "commands": "#recording code",
	})
	for look, v := range views {
		if got := v.Seen["the crash line"].Text; !strings.Contains(got, "total += a->balance") {
			t.Errorf("%s: the crash line is %q", look, got)
		}
		if v.Seen["the slice"].Count < 2 || v.Seen["the memory"].Count != 8 || v.Seen["the crash"].Text != "crash" {
			t.Errorf("%s: %+v", look, v.Seen)
		}
	}
}

// TestThreads: a page of several threads has a lane for each.
func TestThreads(t *testing.T) {
	t.Parallel()
	views := open(t, report(t, "crew"), map[string]string{"a lane": "#timeline svg[role=img] .turn", "a thread": "#threads summary"})
	for look, v := range views {
		if v.Seen["a lane"].Count < 3 {
			t.Errorf("%s: %+v", look, v.Seen)
		}
	}
}

// TestMarkup: what a recording holds does nothing in the browser and is shown.
func TestMarkup(t *testing.T) {
	t.Parallel()
	page := report(t, "markup", "</td><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\xff\u202e")
	views := open(t, page, map[string]string{"the command": "#end tr:nth-child(2) td", "the function": "#code h3 span", "the slice": "#slice .row"})
	for look, v := range views {
		if got := v.Seen["the command"].Text; got != `./prog </td><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\xff\u202e` {
			t.Errorf("%s: %q", look, got)
		}
		if got := v.Seen["the function"].Text; !strings.HasPrefix(got, "<script>alert('name')</script><b title='") {
			t.Errorf("%s: %q", look, got)
		}
		if got := v.Survey.Title; !strings.HasPrefix(got, "prog: SIGSEGV in crash (script>") {
			t.Errorf("%s: the title is %q", look, got)
		}
	}
}
