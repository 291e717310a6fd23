package dwarf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	realgdb "vplay/tests/gdb"
	"vplay/tests/need"
)

var (
	dlv       = flag.String("dlv", "", "the dlv that TestAgainstDelve compares with; without, what one printed before (testdata/govars/*.golden)")
	toolchain = flag.String("toolchain", "", "the Go version, go1.23.12, that compiles the program of TestAgainstDelve")
	update    = flag.Bool("update", false, "write what dlv prints to testdata/govars")
)

// goStop makes gdb stop the program at its last call and write its registers and
// its memory: gdb's own core files have the gigabyte that a Go program reserves.
const goStop = `python
gdb.execute("run")
frame = gdb.newest_frame()
out = open("image", "wb")
for r in "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split():
    out.write((int(frame.read_register(r)) % 2**64).to_bytes(8, "little"))
for i in range(16):
    for half in range(2):
        out.write((int(frame.read_register("xmm%d" % i)["v2_int64"][half]) % 2**64).to_bytes(8, "little"))
inferior = gdb.selected_inferior()
maps = open("/proc/%d/maps" % inferior.pid).readlines()
out.write(min(int(line.split("-")[0], 16) for line in maps if line.endswith("/prog\n")).to_bytes(8, "little"))
for line in maps:
    span, mode = line.split()[:2]
    start, end = (int(n, 16) for n in span.split("-"))
    if mode[0] == "r" and "[v" not in line:
        memory = inferior.read_memory(start, end - start)
        out.write(start.to_bytes(8, "little") + len(memory).to_bytes(8, "little") + bytes(memory))
out.close()
print("all is written")
end`

// goImage is what goStop wrote.
type goImage struct {
	regs    Regs
	xmm     []byte
	regions []region
	base    uint64 // where the program's file begins
	bias    uint64
}

type region struct {
	start uint64
	b     []byte
}

func readGoImage(t testing.TB, path string) *goImage {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := &goImage{}
	le := binary.LittleEndian
	for i := range numRegs {
		out.regs.Set(i, le.Uint64(b[8*i:]))
	}
	b = b[8*numRegs:]
	out.xmm, b = b[:16*16], b[16*16:]
	out.base, b = le.Uint64(b), b[8:]
	for len(b) >= 16 {
		start, n := le.Uint64(b), le.Uint64(b[8:])
		out.regions = append(out.regions, region{start, b[16 : 16+n]})
		b = b[16+n:]
	}
	return out
}

func (m *goImage) ReadMemory(addr uint64, b []byte) (n int) {
	for _, r := range m.regions {
		if at := addr + uint64(n); at >= r.start && at-r.start < uint64(len(r.b)) {
			if n += copy(b[n:], r.b[at-r.start:]); n == len(b) {
				break
			}
		}
	}
	return n
}

func (m *goImage) vector(n uint64, b []byte) bool {
	if n < 17 || n > 32 {
		return false
	}
	copy(b, m.xmm[16*(n-17):][:16])
	return true
}

// goListing is what one of dlv's commands prints of a frame: variables by their
// names, in order.
type goListing struct {
	title string
	vars  []string
}

// goCommands are the commands that are compared, and this package's answer.
var goCommands = []struct {
	command string
	args    bool
	config  goConfig
	write   func(*goVar) string
}{
	{"args -v", true, goFull, (*goVar).lines},
	{"locals -v", false, goFull, (*goVar).lines},
	{"args", true, goShort, (*goVar).oneLine},
	{"locals", false, goShort, (*goVar).oneLine},
}

// ourListings is what this package says of the frames of package main, and which these
// are. The bodies of loops over iterators are left out: dlv shows all variables of the
// function around such a body in it, this package those that it uses.
func ourListings(t *testing.T, image *goImage, m *Module) (out []goListing, frames []int) {
	t.Helper()
	n, globals := 0, goListing{}
	for _, e := range image.envs(m) {
		for _, s := range e.Scopes() {
			if strings.HasPrefix(s.Function, "main.") && !isRangeBody(s.Function) {
				frames = append(frames, n)
				for _, c := range goCommands {
					l := goListing{title: fmt.Sprintf("frame %d %s", n, c.command)}
					for i, entry := range s.goEntries() {
						if entry.isArg != c.args {
							continue
						}
						v := s.goValue(&s.golang.entries[i])
						g := v.goVar()
						g.load(c.config)
						name := entry.name
						if entry.shadowed {
							name = "(" + name + ")"
						}
						l.vars = append(l.vars, name+" = "+c.write(g))
					}
					out = append(out, l)
				}
			}
			n++
			if n == 1 {
				globals = ourGlobals(e)
			}
		}
	}
	return append(out, globals), frames
}

// globalsCommand lists the variables of package main.
const globalsCommand = `vars -v ^main\.`

// ourGlobals is what this package says of them.
func ourGlobals(e *Env) goListing {
	l := goListing{title: globalsCommand}
	for _, v := range e.Globals() {
		if strings.HasPrefix(v.Name, "main.") && !strings.Contains(v.Name, "..") {
			g := v.goVar()
			g.load(goFull)
			l.vars = append(l.vars, v.Name+" = "+g.lines())
		}
	}
	return l
}

// delveListings is what dlv says of frames.
func delveListings(t *testing.T, dir string, frames []int) (out []goListing) {
	t.Helper()
	var script strings.Builder
	script.WriteString("goroutine 1\n")
	for _, i := range frames {
		for _, c := range goCommands {
			title := fmt.Sprintf("frame %d %s", i, c.command)
			fmt.Fprintf(&script, "print \"=== %s\"\n%s\n", title, title)
		}
	}
	fmt.Fprintf(&script, "print `=== %s`\n%s\n", globalsCommand, globalsCommand)
	script.WriteString("print \"===\"\nexit\n")
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(need.Program(t, *dlv), "core", "prog", "core", "--init", "script", "--allow-non-terminal-interactive=true", "--check-go-version=false")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "NO_COLOR=1")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("dlv: %v\n%s", err, text)
	}
	out = parseListings(string(text))
	slices.Sort(out[len(out)-1].vars)
	return out
}

// parseListings takes dlv's output apart, or a golden file.
func parseListings(text string) (out []goListing) {
	head := regexp.MustCompile(`^\(?[\w~.]+\)? = `)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, `"=== `) {
			title, _ := strconv.Unquote(line)
			out = append(out, goListing{title: strings.TrimPrefix(title, "=== ")})
			continue
		}
		if len(out) == 0 || line == `"==="` || line == "(no args)" || line == "(no locals)" {
			continue
		}
		l := &out[len(out)-1]
		if n := len(l.vars); n > 0 && !head.MatchString(line) {
			l.vars[n-1] += "\n" + line
		} else {
			l.vars = append(l.vars, line)
		}
	}
	return out
}

// goBuild compiles the program with flags into a folder.
func goBuild(t testing.TB, flags ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	source, err := filepath.Abs(filepath.Join("testdata", "govars", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"build", "-trimpath", "-o", "prog"}, flags...)
	cmd := exec.Command("go", append(args, source)...)
	cmd.Dir = dir // outside of the module, which older compilers cannot read
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if *toolchain != "" {
		cmd.Env = append(cmd.Env, "GOTOOLCHAIN="+*toolchain)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go: %v\n%s", err, out)
	}
	return dir
}

// goStopped compiles the program and runs it to its innermost call; image in the
// folder is its memory then, core, if that is wanted, gdb's core file.
func goStopped(t testing.TB, core bool, flags ...string) (dir string) {
	t.Helper()
	need.Ptrace(t)
	dir = goBuild(t, flags...)
	script := filepath.Join(dir, "gdb.script")
	if err := os.WriteFile(script, []byte(goStop), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := []string{"cd " + dir, "file " + filepath.Join(dir, "prog"), "handle SIGURG nostop noprint pass", "break main.stop", "source " + script}
	if core {
		commands = append(commands, "generate-core-file "+filepath.Join(dir, "core"))
	}
	if said := realgdb.Batch(t, commands...); !strings.Contains(said, "all is written") {
		t.Fatalf("gdb said\n%s", said)
	}
	return dir
}

// openStopped reads what goStopped left.
func openStopped(t testing.TB, dir string) (*Module, *goImage) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(dir, "prog"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	image := readGoImage(t, filepath.Join(dir, "image"))
	for _, p := range parsed.Progs {
		if p.Type == elf.PT_LOAD && p.Off == 0 {
			image.bias = image.base - p.Vaddr
		}
	}
	return m, image
}

// envs are the program's frames, innermost first.
func (m *goImage) envs(of *Module) []*Env {
	find := func(addr uint64) (*Module, uint64, bool) {
		_, _, ok := of.Function(addr - m.bias)
		return of, m.bias, ok
	}
	out := Envs(Backtrace(m.regs, m, find, 30), m)
	for _, e := range out {
		e.Vector = m.vector
	}
	return out
}

// TestAgainstDelve compares the variables of a Go program with what dlv core prints
// of the same moment: all of them in each frame, as its commands args and locals show them.
func TestAgainstDelve(t *testing.T) {
	for _, c := range []delveCase{
		{"unoptimized", "unoptimized", []string{"-gcflags=all=-N -l"}, 200, true},
		{"optimized", "optimized", nil, 100, true},
		{"position-independent, no symbols", "unoptimized", []string{"-gcflags=-N -l", "-buildmode=pie", "-ldflags=-s -w=0"}, 200, false},
	} {
		if c.live || *toolchain == "" { // golden files are this Go's
			t.Run(c.name, c.run)
		}
	}
}

// delveCase is one way to compile the program.
type delveCase struct {
	name, golden string
	flags        []string
	variables    int  // that are compared, at least
	live         bool // dlv reads such a program
}

func (c delveCase) run(t *testing.T) {
	live := c.live && *dlv != ""
	dir := goStopped(t, live, c.flags...)
	m, image := openStopped(t, dir)
	got, frames := ourListings(t, image, m)
	golden := filepath.Join("testdata", "govars", c.golden+".golden")
	var want []goListing
	if live {
		want = delveListings(t, dir, frames)
		if *update && *toolchain == "" {
			writeListings(t, golden, want)
		}
	} else {
		b, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		version, text, _ := bytes.Cut(b, []byte("\n"))
		need.Machine(t, string(version), strings.HasPrefix(runtime.Version()+".", string(version)+"."))
		want, got = parseListings(string(text)), masked(got)
	}
	compareListings(t, got, want, c.variables)
}

// compareListings reports what differs, and how many variables do not. Where a slice's
// capacity is optimized out dlv shows 0.
func compareListings(t *testing.T, got, want []goListing, least int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d lists, dlv has %d", len(got), len(want))
	}
	same, values := 0, map[string]bool{}
	for i, w := range want {
		g := got[i]
		if g.title != w.title {
			t.Fatalf("%s, dlv has %s", g.title, w.title)
		}
		for j := range max(len(g.vars), len(w.vars)) {
			var a, b string
			if j < len(g.vars) {
				a = g.vars[j]
			}
			if j < len(w.vars) {
				b = w.vars[j]
			}
			a = strings.ReplaceAll(register.ReplaceAllString(a, "REGISTER"), "cap: (optimized out)", "cap: 0")
			b = gone.ReplaceAllString(register.ReplaceAllString(b, "REGISTER"), "(unreadable optimized out)")
			if nameOf(a) == nameOf(b) && unread.MatchString(b) {
				t.Logf("%s: here %s; dlv says %s", g.title, a, b)
				continue
			}
			if a == b {
				same++
				frame := strings.TrimSuffix(g.title, " -v")
				values[fmt.Sprintf("%s %d %s", frame, j, nameOf(a))] = true
				continue
			}
			t.Errorf("%s:\nhere     %s\ndlv says %s", g.title, a, b)
		}
	}
	t.Logf("%d variables, printed %d times as dlv prints them", len(values), same)
	if len(values) < least {
		t.Errorf("only %d variables compared", len(values))
	}
}

func nameOf(s string) string { name, _, _ := strings.Cut(s, " = "); return name }

// gone is how dlv says that a variable, or part of it, is optimized out: its location
// list has no entry, its location is empty, it ends before the part, or a slice's
// pointer is not there and 0 to dlv.
var gone = regexp.MustCompile(`\(unreadable (could not find loclist entry[^()]*|empty OP stack|read out of bounds|non-zero length array with nil base)\)`)

// unread is how dlv says that it could not read something. Of an interface that is
// partly in registers it looks for the types there, and not in memory.
var unread = regexp.MustCompile(`\(unreadable (error loading module data: .*|unknown or unsupported kind: "invalid")\)`)

// register is the address of what lies in registers: each side counts on its own.
var register = regexp.MustCompile(`0xbeef[0-9a-f]{12}`)

// addresses differ from run to run, and what is computed from them from build to build.
var addresses = regexp.MustCompile(`0x[0-9a-f]{4,}|\b(Hash|Str|PtrToThis): \d+`)

// masked hides what differs from run to run: addresses, hashes, and in which order
// a map that is not small has its entries.
func masked(list []goListing) []goListing {
	list = slices.Clone(list)
	for i, l := range list {
		list[i].vars = slices.Clone(l.vars)
		for j, v := range l.vars {
			v = addresses.ReplaceAllString(v, "N")
			if strings.Contains(v, "= map[") {
				lines := strings.Split(v, "\n")
				slices.Sort(lines[1:])
				v = strings.Join(lines, "\n")
				if head, rest, _ := strings.Cut(v, "\n"); strings.Contains(rest, "more") {
					v = head + " ..."
				}
			}
			list[i].vars[j] = v
		}
	}
	return list
}

// writeListings writes a golden file.
func writeListings(t *testing.T, path string, list []goListing) {
	t.Helper()
	var b strings.Builder
	b.WriteString(strings.Join(strings.SplitN(runtime.Version(), ".", 3)[:2], ".") + "\n")
	for _, l := range masked(list) {
		fmt.Fprintf(&b, "%q\n", "=== "+l.title)
		for _, v := range l.vars {
			b.WriteString(v + "\n")
		}
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
