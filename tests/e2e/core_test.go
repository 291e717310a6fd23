package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	realgdb "vplay/tests/gdb"
	"vplay/tests/need"
)

// Recordings of core files: what gdb says of one is what gdb says of the core file with the program's
// files, on a machine that has none of them.

// coreGuest is a program that dumps core.
type coreGuest struct {
	src   string // below tests/guest, or testdata for Go
	flags []string
	env   string
	ask   []string // besides what all are asked
}

var coreGuests = map[string]coreGuest{
	"libraries": {"core/sorted", []string{"-Wl,--no-as-needed", "-lm"}, "", []string{"p compared", "p orders", "p *orders[2].item@3", "up 4", "info locals", "p $_siginfo._sifields._sigfault"}},
	"exception": {"core/thrown", nil, "", []string{"p shelf.sizes", "frame function total", "p sum", "info locals"}},
	"threads":   {"core/four", []string{"-pthread"}, "", []string{"thread apply all p own", "thread apply all bt 3"}},
	"static":    {"core/sorted", []string{"-static", "-Wl,--start-group", "-lm"}, "", []string{"p compared", "p orders", "frame function sort", "info locals"}},
	"stripped":  {"core/sorted", []string{"-pie", "-fPIE", "-s", "-Wl,--no-as-needed", "-lm"}, "", []string{"x/4i $pc", "x/8gx $sp"}},
	"go":        {"gopanic", nil, "GOTRACEBACK=crash", []string{"p 'main.opened'", "thread apply all bt 2"}},
}

// asked is what gdb is asked of every core file.
var asked = []string{`echo BEGIN\n`, "bt", "info threads", "info registers", "p/x $xmm0.v2_int64", "p/x $xmm7.v2_int64", "p $st0", "p/x $mxcsr", "p/x $fctrl", "info sharedlibrary", "info auxv", "x/2i $pc"}

func (c *coreGuest) build(t *testing.T) *guest {
	t.Helper()
	if c.env == "" {
		return compile(t, c.src, c.flags...)
	}
	need.LinuxAMD64(t)
	g := &guest{name: c.src, dir: t.TempDir()}
	g.bin = filepath.Join(g.dir, c.src)
	src := filepath.Join("testdata", c.src, "main.go")
	if out, err := exec.Command("go", "build", "-gcflags", "all=-N -l", "-o", g.bin, src).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return g
}

// kernelCore runs a program until the kernel writes its core file.
func kernelCore(t *testing.T, g *guest, env string) string {
	t.Helper()
	pattern, _ := os.ReadFile("/proc/sys/kernel/core_pattern") // none: no name
	name := strings.TrimSpace(string(pattern))
	need.Machine(t, "a core_pattern that is a file's name", name != "" && !strings.ContainsAny(name, "|/%"))
	dir := t.TempDir()
	before, rest, _ := strings.Cut(env, ";") // what the shell does first
	if rest == "" {
		before, rest = ":", env
	}
	cmd := exec.CommandContext(limited(t, patience), need.Program(t, "sh"), "-c", before+` && ulimit -c unlimited && exec "$0"`, g.bin)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), rest, "VPLAY_TEST_TOKEN=abracadabra")
	_ = cmd.Run() // it dies
	return need.File(t, filepath.Join(dir, name), fmt.Sprintf("%s.%d", filepath.Join(dir, name), cmd.Process.Pid))
}

// gdbCore runs a program in gdb and has that write its core file.
func gdbCore(t *testing.T, g *guest, env string) string {
	t.Helper()
	need.Ptrace(t)
	path := filepath.Join(t.TempDir(), "gcore")
	commands := []string{"set env VPLAY_TEST_TOKEN=abracadabra", "run", "generate-core-file " + path}
	if env != "" {
		// Go takes the first signal for a panic; the second one is the end.
		commands = slices.Insert(commands, 0, "set env "+env, "handle SIGSEGV nostop noprint pass", "handle SIGURG nostop noprint pass")
	}
	out := realgdb.BatchWith(t, []string{g.bin}, commands...)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("gdb wrote no core file:\n%s", out)
	}
	return path
}

// unexpected is what gdb 13 says of the extended state of a CPU with AMX, which it reads all the same.
var unexpected = regexp.MustCompile("warning: Unexpected size of section .*\n")

// TestImportCore compares gdb on a recording of a core file with gdb on the core file.
func TestImportCore(t *testing.T) {
	t.Parallel()
	ways := map[string]func(*testing.T, *guest, string) string{"kernel": kernelCore, "gcore": gdbCore}
	for name, c := range coreGuests {
		for way, dump := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				g := c.build(t)
				core := dump(t, g, c.env)
				commands := slices.Concat(asked, c.ask)
				want := realgdb.BatchWith(t, []string{"-iex", "set auto-load python-scripts off", g.bin, core}, commands...)
				rec := importCore(t, core)
				if err := os.Rename(g.bin, g.bin+".hidden"); err != nil {
					t.Fatal(err)
				}
				addr := serve(t, rec)
				got := gdb(t, addr, commands...)
				compareCore(t, answers(got), answers(unexpected.ReplaceAllString(want, "")))
				noTime(t, gdb(t, addr, "continue", "stepi", "next", "reverse-continue", "reverse-stepi", "p $_siginfo.si_signo", "x/i $pc"))
			})
		}
	}
}

// TestImportElsewhere: the program's file is found where the flags say, on a machine that does not have it at
// its path; another file than the one that ran is refused, and one that is missing is named.
func TestImportElsewhere(t *testing.T) {
	t.Parallel()
	g := compile(t, "core/sorted", "-Wl,--no-as-needed", "-lm")
	core := gdbCore(t, g, "")
	other := compile(t, "core/sorted", "-O2", "-Wl,--no-as-needed", "-lm")
	root, symbols, patched := t.TempDir(), t.TempDir(), t.TempDir()
	b, err := os.ReadFile(g.bin)
	if err != nil {
		t.Fatal(err)
	}
	spoiled := slices.Clone(b)
	spoiled[64+56]++ // a program header, which is in the core file
	for name, data := range map[string][]byte{filepath.Join(root, g.bin): b, filepath.Join(symbols, "any.name"): b, filepath.Join(patched, "sorted"): spoiled} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, data, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(g.bin); err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{
		"exe": {"--exe", filepath.Join(symbols, "any.name")}, "sysroot": {"--sysroot", root}, "symbols": {"--symbols", symbols},
	} {
		t.Run(name, func(t *testing.T) {
			rec := importCore(t, core, flags...)
			out := gdb(t, serve(t, rec), "bt")
			expect(t, out, fmt.Sprintf(`#0 .*by_next \(.*sorted\.c:%d$`, g.line(t, "CRASH")), fmt.Sprintf(`sort \(.*n=4\) at .*sorted\.c:%d$`, g.line(t, "SORT")))
		})
	}
	t.Run("missing", func(t *testing.T) {
		rec := importCore(t, core)
		out, err := exec.Command(vplayd, "info", rec).CombinedOutput()
		if want := "note         " + g.bin + ": what the core file lacks of it is not in the recording: there is no file here with its build-id "; err != nil || !strings.Contains(string(out), want) {
			t.Errorf("info does not say %q:\n%s", want, out)
		}
	})
	for name, exe := range map[string]string{"build-id": other.bin, "was changed since": filepath.Join(patched, "sorted"), "no program": filepath.Join("testdata", "gopanic", "main.go")} {
		dir := t.TempDir()
		out, err := exec.Command(vplayd, "import-core", "-o", filepath.Join(dir, "x.vplay"), "--exe", exe, core).CombinedOutput()
		left, _ := os.ReadDir(dir) // it is there
		if err == nil || !strings.Contains(string(out), name) || len(left) > 0 {
			t.Errorf("--exe %s: %v, %v is left: %s", exe, err, left, out)
		}
	}
}

// TestImportWithoutHeaders: a core file without the first pages of ELF files, as bit 4 of coredump_filter leaves them out,
// says of no file which it is. The program that the user names is believed.
func TestImportWithoutHeaders(t *testing.T) {
	t.Parallel()
	g := compile(t, "core/sorted", "-Wl,--no-as-needed", "-lm")
	core := kernelCore(t, g, "echo 0x3 >/proc/self/coredump_filter;A=1")
	lines := func(flags ...string) (bt, notes string) {
		rec := importCore(t, core, flags...)
		out, err := exec.Command(vplayd, "info", rec).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return gdb(t, serve(t, rec), "bt 1", "p compared"), string(out)
	}
	bt, notes := lines()
	if strings.Contains(bt, "by_next") || !strings.Contains(notes, g.bin+": what the core file lacks of it is not in the recording: the core file has no ELF header of it") {
		t.Errorf("the program was found without a proof:\n%s\n%s", bt, notes)
	}
	bt, notes = lines("--exe", g.bin)
	expect(t, bt, `#0 .*by_next \(.*sorted\.c:\d+$`, `= 4$`)
	expect(t, notes, `sorted was taken for the program without a proof`)
}

// importCore imports a core file and returns the recording.
func importCore(t *testing.T, core string, flags ...string) string {
	t.Helper()
	rec := filepath.Join(t.TempDir(), "rec.vplay")
	args := append([]string{"import-core", "-o", rec}, flags...)
	out, err := exec.CommandContext(limited(t, patience), vplayd, append(args, core)...).CombinedOutput()
	if err != nil {
		t.Fatalf("import-core: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	return rec
}

var (
	// notCompared are lines about how gdb has come to the target, and what native gdb has beyond the recording.
	notCompared = regexp.MustCompile(`^(Reading |warning: |\[New |\[Thread debugging|\[Inferior|Using host|Core was|Program terminated|The current thread|k[0-7] |\[Current thread|  Id |\s*$|--)`)
	// threadTitle is what gdb calls a thread: by the handle of its thread library, or by its name.
	threadTitle = regexp.MustCompile(`Thread (0x[0-9a-f]+ \(LWP (\d+)\)|\d+\.(\d+)( "[^"]*")?)|LWP (\d+)`)
	// fromLibrary is a frame of a library without debugging information, which has names of its own.
	fromLibrary = regexp.MustCompile(` in \S+ \(\) from (target:)?(\S+)`)
	nameless    = regexp.MustCompile(`\bfun_[0-9a-f]+ \(\)`)
	offset      = regexp.MustCompile(` ?<(fun_[0-9a-f]+|[a-z_]+)\+\d+>`)
	valueNumber = regexp.MustCompile(`^\$\d+ = `)
	// splicedIn is what gdb 13 says of extended state of an AMD CPU with AVX-512, in the middle of lines.
	splicedIn  = regexp.MustCompile(`\s*warning: Section .* in core file too small\.\n`)
	threadLine = regexp.MustCompile(`^\*? ?\d+ (Thread \d+ .*)$`)
	applied    = regexp.MustCompile(`^Thread \d+ \((Thread \d+).*\):$`)
	blanks     = regexp.MustCompile(`\s+`)
)

// answers returns the lines that are compared. Threads have other numbers, and another order.
func answers(out string) (lines []string) {
	_, out, _ = strings.Cut(out, "BEGIN\n") // where it stands is said in two ways
	out = splicedIn.ReplaceAllString(out, " ")
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if notCompared.MatchString(line) {
			continue
		}
		line = threadTitle.ReplaceAllString(line, "Thread $2$3$5")
		line = fromLibrary.ReplaceAllString(line, " in ?? () from $2")
		line = offset.ReplaceAllString(line, "")
		line = nameless.ReplaceAllString(line, "?? ()")
		line = valueNumber.ReplaceAllString(line, "= ")
		lines = append(lines, strings.TrimSpace(blanks.ReplaceAllString(strings.ReplaceAll(line, "target:", ""), " ")))
	}
	listed := func(pattern *regexp.Regexp) {
		for i := 0; i < len(lines); i++ {
			n := 0
			for i+n < len(lines) && pattern.MatchString(lines[i+n]) {
				lines[i+n] = pattern.ReplaceAllString(lines[i+n], "$1")
				n++
			}
			slices.Sort(lines[i : i+n])
			i += n
		}
	}
	listed(threadLine)
	return byThread(lines)
}

// byThread sorts what thread apply prints by thread. It is what was asked last.
func byThread(lines []string) []string {
	var blocks [][]string
	for i, line := range lines {
		if m := applied.FindStringSubmatch(line); m != nil {
			lines[i] = m[1]
			blocks = append(blocks, nil)
		}
		if len(blocks) > 0 {
			blocks[len(blocks)-1] = append(blocks[len(blocks)-1], lines[i])
		}
	}
	if len(blocks) == 0 {
		return lines
	}
	lines = lines[:len(lines)-len(slices.Concat(blocks...))]
	slices.SortStableFunc(blocks, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return slices.Concat(lines, slices.Concat(blocks...))
}

// compareCore compares the answers line by line.
func compareCore(t *testing.T, got, want []string) {
	t.Helper()
	if len(want) < 30 {
		t.Fatalf("gdb says only %q of the core file", want)
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d differs.\nof the recording:\n%s\nof the core file:\n%s", i,
				strings.Join(got[min(i, len(got)):], "\n"), strings.Join(want[min(i, len(want)):], "\n"))
		}
	}
	t.Logf("%d lines are the same", len(want))
}

// noTime expects that nothing moves, that gdb is told why, and that the connection lives.
func noTime(t *testing.T, out string) {
	t.Helper()
	const why = "vplay: the recording holds one moment, with no past and no future"
	if n := strings.Count(out, why); n != 5 {
		t.Errorf("gdb was told %d times of 5 why nothing moves:\n%s", n, out)
	}
	if n := strings.Count(out, "No more reverse-execution history"); n != 5 {
		t.Errorf("gdb has stopped %d times of 5 at the end of history:\n%s", n, out)
	}
	expect(t, out, `= (6|8|11)$`, `=> 0x[0-9a-f]+`)
}
