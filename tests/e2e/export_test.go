package e2e

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vplay/tests/need"
)

// The verb export, by the programs that its formats are for. Every format that counts instructions has as many as verify replays.

// exported is a recording that is exported, and how many instructions it has.
type exported struct {
	rec, symbols string
	instructions uint64
	pages        map[uint64]bool // that lackey's trace has accesses to
}

func newExported(t *testing.T, g *guest, rec string) *exported {
	t.Helper()
	x := &exported{rec: rec, symbols: filepath.Join(g.dir, "symbols")}
	lines := strings.Split(strings.TrimSpace(vplaydOutput(t, "verify", "--json", rec)), "\n")
	var sum struct{ Instructions, Divergences uint64 }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &sum); err != nil || sum.Instructions == 0 || sum.Divergences != 0 {
		t.Fatalf("verify: %v, %s", err, lines)
	}
	x.instructions = sum.Instructions
	return x
}

// to exports to a file of the test's and returns its name.
func (x *exported) to(t *testing.T, format string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	vplaydOutput(t, append([]string{"export", "--to", format, "--symbols", x.symbols, "-o", out, x.rec}, flags...)...)
	return out
}

func (x *exported) text(t *testing.T, format string, flags ...string) string {
	t.Helper()
	b, err := os.ReadFile(x.to(t, format, flags...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// toolOutput runs a consumer.
func toolOutput(t *testing.T, stdin string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(limited(t, patience), name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, args, err, stderr.Bytes())
	}
	return string(out)
}

// TestExport exports a program with signals, faults, longer calls than an interval, and many intervals.
func TestExport(t *testing.T) {
	t.Parallel()
	g := compile(t, "moves", "-O0", "-static")
	x := newExported(t, g, g.record(t, "--keep", "always", "--interval", "5ms", "--force-every", "5", "--no-slim"))
	t.Run("folded", x.folded)
	t.Run("pprof", x.pprof)
	t.Run("callgrind", x.callgrind)
	t.Run("flamegraph", x.flamegraph)
	t.Run("lackey", x.lackey)
	t.Run("csv", x.csv)
	t.Run("strace", x.strace)
	t.Run("perfetto", x.perfetto)
	t.Run("lcov", func(t *testing.T) { x.lcov(t, g) })
}

// TestExportBorders: intervals that end at any instruction, between a call and the function, or two signals at one, change no count.
func TestExportBorders(t *testing.T) {
	t.Parallel()
	for range 8 {
		g := compile(t, "moves", "-O0", "-static")
		newExported(t, g, g.record(t, "--keep", "always", "--interval", "5ms", "--force-every", "1", "--no-slim")).csv(t)
	}
}

// TestExportProgram exports a program that is no guest.
func TestExportProgram(t *testing.T) {
	t.Parallel()
	need.Recorder(t)
	bc := need.Program(t, "bc")
	dir := t.TempDir()
	rec := filepath.Join(dir, "rec.vplay")
	cmd := exec.CommandContext(limited(t, patience), vplayd, "record", "-q", "--keep", "always", "--slim", "now", "-o", rec, "--", bc, "-l")
	cmd.Stdin = strings.NewReader("4*a(1)\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	x := newExported(t, &guest{dir: dir}, rec)
	x.symbols = dir
	t.Run("pprof", x.pprof)
	t.Run("perfetto", x.perfetto)
}

// TestExportCrash: the calls that led to a crash are those that info prints.
func TestExportCrash(t *testing.T) {
	t.Parallel()
	g := compile(t, "recursion", "-O0", "-static")
	x := newExported(t, g, g.record(t))
	var info struct{ Backtrace []struct{ Function string } }
	if err := json.Unmarshal([]byte(vplaydOutput(t, "info", "--json", "--symbols", x.symbols, x.rec)), &info); err != nil || len(info.Backtrace) < 3 {
		t.Fatalf("info: %v, %v", err, info)
	}
	var names []string
	for _, f := range slices.Backward(info.Backtrace) {
		names = append(names, f.Function)
	}
	want := strings.Join(names, ";")
	if len(names) > 60 {
		want = strings.Join(names[len(names)-40:], ";") // info does not print all
	}
	if !strings.Contains(x.text(t, "folded"), want+" ") {
		t.Errorf("no stack is %s", want)
	}
}

// TestExportWays: calls that are left by exceptions, longjmp and returns from signals are over, so that what follows is their caller's.
func TestExportWays(t *testing.T) {
	t.Parallel()
	g := compile(t, "ways", "-O1", "-fno-inline", "-pthread")
	x := newExported(t, g, g.record(t, "--keep", "always", "--interval", "5ms"))
	x.folded(t)
	text := x.text(t, "folded")
	functions := x.table(t, "functions")
	for stack, times := range map[string]int{
		"main;after_throw": 5, "main;after_jump": 5, "main;after_signal": 5, "main;deep;deep;deep;deep;deep;deep;deep": 5, "main;jumper;jumper;jumper;jumper;jumper;jumper": 5,
		"<signal handler called>;handler;in_handler": 5, "work": 2,
	} {
		name := stack[strings.LastIndexByte(stack, ';')+1:]
		found := 0
		for line := range strings.Lines(text) {
			if at := strings.LastIndexByte(line, ' '); strings.HasSuffix(line[:at], ";"+stack) {
				found++
			}
		}
		if found == 0 || strings.HasPrefix(name, "after_") && strings.Count(text, ";"+name+" ") != found {
			t.Errorf("%d stacks end in %s, and %d in %s", found, stack, strings.Count(text, ";"+name+" "), name)
		}
		calls := 0
		for _, r := range functions {
			if r["function"] == name {
				calls, _ = strconv.Atoi(r["calls"])
			}
		}
		if name != "deep" && name != "jumper" && calls != times {
			t.Errorf("%d calls of %s, want %d", calls, name, times)
		}
	}
}

// TestExportUse: mistakes are told with what is right, and leave no file.
func TestExportUse(t *testing.T) {
	t.Parallel()
	g := compile(t, "nullptr", "-O0", "-static")
	rec := g.record(t)
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "no format is named"},
		{[]string{"--to", "gif"}, 2, `there is no format "gif"`},
		{[]string{"--to", "csv", "--table", "x"}, 2, `there is no table "x"`},
		{[]string{"--to", "csv", "--functions", "("}, 2, "--functions"},
		{[]string{"--to", "perfetto", "--depth", "-1"}, 2, "is not a depth"},
		{[]string{"--to", "folded", "--intervals", "900"}, 2, "no interval"},
		{[]string{"--to", "folded", "-o", "/nowhere/x"}, 1, "cannot write"},
	} {
		cmd := exec.CommandContext(limited(t, patience), vplayd, append(append([]string{"export"}, c.args...), rec)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != c.code || !strings.Contains(string(out), c.want) || !strings.Contains(string(out), "hint") {
			t.Errorf("%v: %v\n%s", c.args, err, out)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("files are left: %v, %v", list, err)
	}
}

func (x *exported) folded(t *testing.T) {
	sum := uint64(0)
	for line := range strings.Lines(x.text(t, "folded")) {
		line = strings.TrimSuffix(line, "\n")
		n, err := strconv.ParseUint(line[strings.LastIndexByte(line, ' ')+1:], 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		sum += n
	}
	if sum != x.instructions {
		t.Errorf("%d instructions, want %d", sum, x.instructions)
	}
}

var pprofTotal = regexp.MustCompile(`% of (\d+) total`)

func (x *exported) pprof(t *testing.T) {
	path := x.to(t, "pprof")
	top := toolOutput(t, "", "go", "tool", "pprof", "-top", "-nodefraction=0", path)
	if m := pprofTotal.FindStringSubmatch(top); m == nil || m[1] != fmt.Sprint(x.instructions) {
		t.Errorf("the total is %v, want %d\n%.500s", m, x.instructions, top)
	}
	raw := toolOutput(t, "", "go", "tool", "pprof", "-raw", path)
	for _, want := range []string{"instructions/count[dflt] calls/count alloc_objects/count alloc_space/bytes", "Mappings\n", "main"} {
		if !strings.Contains(raw, want) {
			t.Errorf("-raw lacks %q", want)
		}
	}
}

func (x *exported) callgrind(t *testing.T) {
	annotate := need.Program(t, "callgrind_annotate")
	path := x.to(t, "callgrind")
	out := strings.ReplaceAll(toolOutput(t, "", annotate, "--auto=no", path), ",", "")
	if !regexp.MustCompile(fmt.Sprintf(`(?m)^ *%d \(100.0%%\) +PROGRAM TOTALS`, x.instructions)).MatchString(out) {
		t.Errorf("the total is not %d:\n%.800s", x.instructions, out)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum, isCall := uint64(0), false
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if strings.HasPrefix(line, "calls=") {
			isCall = true
		} else if len(f) == 2 && line[0] >= '0' && line[0] <= '9' {
			n, err := strconv.ParseUint(f[1], 10, 64)
			if err != nil {
				t.Fatal(line)
			}
			if !isCall {
				sum += n
			} else if n > x.instructions {
				t.Errorf("a call with %d instructions", n)
			}
			isCall = false
		}
	}
	if sum != x.instructions {
		t.Errorf("the functions have %d instructions, want %d", sum, x.instructions)
	}
}

func (x *exported) flamegraph(t *testing.T) {
	text := x.text(t, "flamegraph")
	frames := 0
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := tok.(xml.StartElement); ok && s.Name.Local == "g" && len(s.Attr) == 2 {
			frames++
		}
		if s, ok := tok.(xml.StartElement); ok {
			for _, a := range s.Attr {
				if a.Name.Local == "href" || a.Name.Local == "src" {
					t.Errorf("it needs %s", a.Value)
				}
			}
		}
	}
	if frames < 10 || !strings.Contains(text, "<title>main: ") {
		t.Errorf("%d frames", frames)
	}
}

var lackeyLine = regexp.MustCompile(`^(I  | L | S | M )[0-9a-f]{8,16},\d+\n$`)

func (x *exported) lackey(t *testing.T) {
	instructions, accesses := uint64(0), 0
	x.pages = map[uint64]bool{}
	for line := range strings.Lines(x.text(t, "lackey")) {
		if !lackeyLine.MatchString(line) {
			t.Fatalf("%q", line)
		}
		var addr, size uint64
		if n, err := fmt.Sscanf(line[3:], "%x,%d", &addr, &size); n != 2 || size == 0 {
			t.Fatalf("%q: %v", line, err)
		}
		x.pages[addr/4096], x.pages[(addr+size-1)/4096] = true, true
		if line[0] == 'I' {
			instructions++
		} else {
			accesses++
		}
	}
	if instructions != x.instructions || accesses < int(instructions)/10 {
		t.Errorf("%d instructions, want %d; %d accesses", instructions, x.instructions, accesses)
	}
}

// table reads a table by the names of its columns.
func (x *exported) table(t *testing.T, name string) (rows []map[string]string) {
	t.Helper()
	list, err := csv.NewReader(strings.NewReader(x.text(t, "csv", "--table", name))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list[1:] {
		row := map[string]string{}
		for i, c := range list[0] {
			row[c] = r[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// csv holds the calls, which are followed through the intervals in order, to the functions, of which the intervals are joined.
func (x *exported) csv(t *testing.T) {
	listed := map[string]int{}
	for _, r := range x.table(t, "calls") {
		if r["complete"] == "true" {
			listed[r["function"]]++
		}
	}
	sum, counted := uint64(0), map[string]int{}
	for _, r := range x.table(t, "functions") {
		n, err := strconv.Atoi(r["calls"])
		if err != nil {
			t.Fatal(err)
		}
		counted[r["function"]] += n
		self, err := strconv.ParseUint(r["self_instructions"], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += self
	}
	for name, n := range counted {
		if n != listed[name] {
			t.Errorf("%s: %d calls, listed are %d", name, n, listed[name])
		}
	}
	if sum != x.instructions || len(listed) < 5 {
		t.Errorf("%d instructions in functions, want %d; %d functions", sum, x.instructions, len(listed))
	}
	if len(x.table(t, "syscalls")) == 0 {
		t.Error("no system call")
	}
}

// strace holds system calls and signals to what the script of that name prints.
func (x *exported) strace(t *testing.T) {
	text := x.text(t, "strace")
	n := 0
	for line := range strings.Lines(vplaydOutput(t, "run", "strace", x.rec)) {
		if n++; !strings.Contains(text, " "+regexp.MustCompile(`^\[\d+\] `).ReplaceAllString(line, "")) {
			t.Errorf("no line is %s", line)
		}
	}
	if n == 0 {
		t.Error("no calls")
	}
	if !regexp.MustCompile(`\n\d+ \+\+\+ (exited with \d+|killed by SIG[A-Z]+) \+\+\+\n$`).MatchString(text) {
		t.Errorf("the last line says nothing of the end: %s", text[max(0, len(text)-200):])
	}
}

// TestExportDeadlySignal: the signal that a program dies of is among its signals, with what it read before.
func TestExportDeadlySignal(t *testing.T) {
	t.Parallel()
	g := compile(t, "nullptr", "-O0")
	rec := g.record(t)
	for _, c := range []struct{ want, format, table string }{{`,SIGSEGV\n$`, "csv", "signals"}, {`--- SIGSEGV \{.*\} ---\n\d+ \+\+\+ killed by SIGSEGV \+\+\+\n$`, "strace", ""}} {
		if text := vplaydOutput(t, "export", "--to", c.format, "--table", c.table, "-o", "-", rec); !regexp.MustCompile(c.want).MatchString(text) {
			t.Errorf("%s ends without the signal:\n%s", c.format, text)
		}
	}
}

// perfetto decodes the trace by a strict schema, and holds the ends of slices to their beginnings.
func (x *exported) perfetto(t *testing.T) {
	protoc := need.Program(t, "protoc")
	out := toolOutput(t, x.text(t, "perfetto", "--functions", "^main$|bump|on_signal|malloc|free"), protoc, "--decode=Trace", "--proto_path=testdata", "testdata/trace.proto")
	if m := regexp.MustCompile(`(?m)^ *\d+[:{ ].*$`).FindString(out); m != "" {
		t.Errorf("an unknown field: %s", m)
	}
	begins, ends := strings.Count(out, " type: 1\n"), strings.Count(out, " type: 2\n")
	if begins != ends || begins < 3 {
		t.Errorf("%d slices begin, %d end", begins, ends)
	}
	for _, want := range []string{`categories: "syscall"`, `categories: "call"`, `categories: "scheduling"`, `process_name: "`, `name: "position"`} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if x.pages != nil {
		x.touched(t, out)
	}
}

var touchedValue = regexp.MustCompile(`type: 4\n +track_uuid: 5\n +counter_value: (\d+)\n`)

// touched holds the counter of touched memory to the pages that lackey's trace has. The program unmaps none, and the kernel
// writes to none that it does not access itself.
func (x *exported) touched(t *testing.T, trace string) {
	if !regexp.MustCompile(`uuid: 5\n +name: "RSS touched"\n +parent_uuid: 1\n +counter \{\n +unit: 3\n`).MatchString(trace) {
		t.Error("there is no track of touched memory")
	}
	last := 0
	list := touchedValue.FindAllStringSubmatch(trace, -1)
	for _, m := range list {
		n, err := strconv.Atoi(m[1])
		if err != nil || n < last || n%4096 != 0 {
			t.Errorf("%d bytes are touched behind %d: %v", n, last, err)
		}
		last = n
	}
	if len(list) < 3 || last/4096 != len(x.pages) {
		t.Errorf("%d values, the last one %d pages; lackey's trace has %d", len(list), last/4096, len(x.pages))
	}
}

// lcov has genhtml make pages, and holds the counts of a function to each other.
func (x *exported) lcov(t *testing.T, g *guest) {
	genhtml := need.Program(t, "genhtml")
	path := x.to(t, "lcov")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, record, ok := strings.Cut(string(b), "moves.c\n")
	record, _, _ = strings.Cut(record, "end_of_record")
	calls := regexp.MustCompile(`FNDA:(\d+),bump\n`).FindStringSubmatch(record)
	line := slices.Index(g.source, "	counter += n;") + 1
	if !ok || calls == nil || calls[1] == "0" || !strings.Contains(record, fmt.Sprintf("\nDA:%d,%s\n", line, calls[1])) {
		t.Errorf("calls of bump: %v, line %d\n%.1000s", calls, line, record)
	}
	pages := t.TempDir()
	toolOutput(t, "", genhtml, "-q", "--ignore-errors", "source", "-o", pages, path)
	if _, err := os.Stat(filepath.Join(pages, "index.html")); err != nil {
		t.Error(err)
	}
}
