package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"vplay/tests/need"
)

// The verb run, on real recordings: what scripts are told, the scripts that come with vplayd, and how a script ends.

// runScript runs vplayd run and returns what it prints and its exit code.
func runScript(t testing.TB, args ...string) (out, errors string, code int) {
	t.Helper()
	cmd := exec.CommandContext(limited(t, 2*time.Minute), vplayd, append([]string{"run"}, args...)...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run() // the code says how it ended
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// scriptFile writes a script into a file of the test's.
func scriptFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.star")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestScript has one script use all that there is, and compares with what the program does.
func TestScript(t *testing.T) {
	t.Parallel()
	g := compile(t, "ledger", "-O0")
	rec := g.record(t)
	symbols := filepath.Join(g.dir, "symbols")
	path := scriptFile(t, fmt.Sprintf(`
seen = {"calls": [], "returns": [], "lines": 0, "stores": 0, "signals": [], "syscalls": 0}

def on_rename(m):
    seen["calls"].append((m.string(m.arg(1)), m.caller.function, m.name))

def on_rename_body(m):
    print(m.show("name"), m.value("a") == m.arg(0), m.function, m.kind)

def on_sum(m):
    seen["lines"] += 1
    if seen["lines"] == 1:
        print(m.value("total"), m.source.endswith("ledger.c:38"), len(m.backtrace()) > 1, m.registers["rip"] == m.pc)
        print(m.value("nothing_of_that_name", default="none"), m.value("accounts[0].balance", frame=1))

def on_store(m):
    seen["stores"] += 1
    if m.old_value != m.new_value:
        print("next", hex(m.old_value), hex(m.new_value), m.size, m.function, m.kernel)

def on_a_signal(m):
    seen["signals"].append((m.name, m.fault, m.function))

def on_a_syscall(m):
    seen["syscalls"] += 1

def finish(m):
    print(seen["calls"], seen["signals"], seen["lines"] > 0, seen["syscalls"] > 0, m.ended, m.crashed, m.function)
    print(args, recording.pid > 0, recording.crashed, signed(0xffffffff, 32), hex(255), recording.whole)
    row(a=1, b=[1, {"c": None}], text="a row")

on_call("rename_account", on_rename)
on_call("rename_account", on_rename_body, body=True)
on_line("ledger.c:38", on_sum)
on_access("accounts[2].next", on_store, kind="w")
on_signal(on_a_signal)
on_syscall(None, on_a_syscall)
on_end(finish)
`))
	out, errs, code := runScript(t, "--no-local-files", "--symbols", symbols, path, rec, "--", "one", "two")
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	for _, want := range []string{
		`"overlong name"`, "True rename_account call", "True True True", "none ", "rename_account False", `[("SIGSEGV", True, "sum")] True True killed by SIGSEGV True sum`,
		`["one", "two"] True True -1 0xff`, "a row", `"main", "rename_account")`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s%s", want, out, errs)
		}
	}
	out, _, _ = runScript(t, "--json", "--symbols", symbols, path, rec)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, l := range lines {
		var o map[string]any
		if err := json.Unmarshal([]byte(l), &o); err != nil || o["recording"] != rec {
			t.Errorf("%s: %v", l, err)
		}
	}
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, `,"a":1,"b":[1,{"c":null}],"text":"a row"}`) {
		t.Errorf("the row is %s", last)
	}
}

// TestScriptCalls calls functions of the program, by an expression, by name, and in vain. Nothing of that is there behind the
// expression, and the replay goes on exactly.
func TestScriptCalls(t *testing.T) {
	t.Parallel()
	g := compile(t, "divert", "-O0")
	rec := g.record(t, "--keep", "always")
	path := scriptFile(t, strings.ReplaceAll(`
def f(m):
    print("twice", m.value("twice(21)"), m.call("twice", 4), m.value("half(5)"), m.value("twice(3) + calls"), m.value("calls"))
    print("none", m.value("twice(1, 2)", default="error"), m.value("hurt()", default="hurt"), m.value("quit()", default="quit"))
def g(m):
    print("end", m.value("calls"))
on_line("divert.c:EXIT", g)
on_call("main", f, body=True)
`, "EXIT", strconv.Itoa(g.line(t, "EXIT"))))
	out, errs, code := runScript(t, "--symbols", filepath.Join(g.dir, "symbols"), path, rec)
	for _, want := range []string{"twice 42 8 2.5 7 0\n", "none error hurt quit\n", "end 1\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("no %q\n%s%s", want, out, errs)
		}
	}
}

// TestScriptEnds ends scripts in all ways there are: the exit code, and what is said with which place.
func TestScriptEnds(t *testing.T) {
	t.Parallel()
	rec := compile(t, "ledger", "-O0").record(t)
	const crash = "def f(m):\n    g(m)\ndef g(m):\n    fail(\"no\", m.kind)\non_signal(f)\n"
	for _, c := range []struct {
		name, text string
		flags      []string
		code       int
		want       string
	}{
		{"syntax", "def f(:\n", nil, 2, "test.star:1:8: "},
		{"name", "print(nothing)\n", nil, 2, "test.star:1:7: undefined: nothing"},
		{"type", "print(1 + \"\")\n", nil, 1, "test.star:1:9: unknown binary op: int + string"},
		{"fail", crash, nil, 1, "test.star:4:9: in g: no signal\n  called from f "},
		{"function", "def f(m):\n    pass\non_call(\"none_such\", f)\n", nil, 1, "test.star:3:8: on_call: no function, and no symbol, is called none_such"},
		{"optional", "on_call(\"none_such\", print, optional=True)\n", nil, 0, ""},
		{"late", "def f(m):\n    on_end(f)\non_signal(f)\n", nil, 1, "while the script is loaded"},
		{"over", "l = []\ndef f(m):\n    l.append(m)\ndef g(m):\n    l[0].memory(0, 8)\non_signal(f)\non_end(g)\n", nil, 1, "the moment is over"},
		{"no file", "load(\"x.star\", \"y\")\n", nil, 1, "load not implemented"},
		{"open", "open(\"/etc/passwd\")\n", nil, 2, "undefined: open"},
		{"steps", "def f(m):\n    for i in range(1 << 40): pass\non_signal(f)\n", []string{"--steps", "100000"}, 1, "more than 100000 steps"},
		{"time", "def f(m):\n    for i in range(1 << 40): pass\non_signal(f)\n", []string{"--time", "300ms"}, 1, "longer than 300ms"},
		{"time at the top", "while True: pass\n", []string{"--time", "300ms"}, 1, "longer than 300ms"},
		{"memory", "l = []\ndef f(m):\n    while True: l.append(\"x\" * 1000 + str(len(l)))\non_signal(f)\n", []string{"--memory", "64"}, 1, "more than 64 MiB"},
		{"line", "on_line(\"ledger\", print)\n", nil, 1, "a line is named FILE:LINE"},
		{"syscall", "on_syscall(\"nothing\", print)\n", nil, 1, "there is no system call nothing"},
		{"range", "on_access((2, 1), print)\n", nil, 1, "START below END"},
		{"attribute", "def f(m):\n    m.result\non_signal(f)\n", nil, 1, "moment has no .result"},
	} {
		out, errs, code := runScript(t, append(c.flags, scriptFile(t, c.text), rec)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, want %d with %q\n%s%s", c.name, code, c.code, c.want, out, errs)
		}
	}
	if _, errs, code := runScript(t, "nothing", rec); code != 2 || !strings.Contains(errs, "strace") {
		t.Errorf("a script that is not there: exit code %d\n%s", code, errs)
	}
	if _, _, code := runScript(t, "strace", os.Args[0]); code != 4 {
		t.Errorf("a file that is no recording: exit code %d", code)
	}
}

// TestScriptInlined: who asks for the calls of a function that was inlined everywhere is told how to have them.
func TestScriptInlined(t *testing.T) {
	t.Parallel()
	g := compile(t, "inline", "-O2")
	rec, symbols := g.record(t), g.dir+"/symbols"
	_, errs, code := runScript(t, "--symbols", symbols, scriptFile(t, "on_call(\"money::Bank::close\", print)\n"), rec)
	if want := "money::Bank::close was inlined wherever it is called"; code != 1 || !strings.Contains(errs, want) {
		t.Errorf("exit code %d, no %q\n%s", code, want, errs)
	}
	out, errs, code := runScript(t, "--symbols", symbols, scriptFile(t, "def f(m):\n    print(m.inlined)\non_call(\"money::Bank::close\", f, inlined=True)\n"), rec)
	if code != 0 || !strings.Contains(out, "True") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestScriptInterrupted ends a script by SIGINT.
func TestScriptInterrupted(t *testing.T) {
	t.Parallel()
	rec := compile(t, "ledger", "-O0").record(t)
	cmd := exec.CommandContext(limited(t, patience), vplayd, "run", scriptFile(t, "def f(m):\n    print(\"here\")\n    for i in range(1 << 50): pass\non_signal(f)\n"), rec)
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = pw
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pw.Close()
	if _, err := pr.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
	pr.Close()
}

// TestDescriptorsOfRealPrograms: fdleaks finds what jq leaves open of its input, and nothing of others. What valgrind 3.19 has with
// --track-fds=yes is the same.
func TestDescriptorsOfRealPrograms(t *testing.T) {
	t.Parallel()
	need.Recorder(t)
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := os.WriteFile(in, []byte("1\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"jq", ".", in}, "1 open at the end, 0 closed that were not open"},
		{[]string{"grep", "1", in}, "0 open at the end, 0 closed that were not open"},
		{[]string{"sort", in}, "0 open at the end, 0 closed that were not open"},
	} {
		rec := filepath.Join(dir, c.args[0]+".vplay")
		args := append([]string{"record", "-q", "--keep", "always", "--slim", "never", "-o", rec, "--", need.Program(t, c.args[0])}, c.args[1:]...)
		if out, err := exec.CommandContext(limited(t, patience), vplayd, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c.args[0], err, out)
		}
		out, errs, code := runScript(t, "fdleaks", rec)
		if code != 0 || !strings.Contains(out, c.want) || c.args[0] == "jq" && !regexp.MustCompile(`openat\(AT_FDCWD, "`+in+`".* in (lib)?jq`).MatchString(out) {
			t.Errorf("%s: no %q\n%s%s", c.args[0], c.want, out, errs)
		}
	}
}

// TestShippedScripts runs each script that comes with vplayd on a program that it is for, and lists them.
func TestShippedScripts(t *testing.T) {
	t.Parallel()
	list, _, _ := runScript(t, "--list")
	for line := range strings.Lines(list) {
		name, _, _ := strings.Cut(line, " ")
		if about, _, code := runScript(t, "--about", name); code != 0 || !strings.Contains(about, "vplayd run "+name) {
			t.Errorf("%s says of itself %q", name, about)
		}
	}
	t.Run("heap", testHeapScript)
	t.Run("descriptors", func(t *testing.T) {
		g := compile(t, "descriptors")
		rec := g.record(t, "--keep", "always")
		out, errs, code := runScript(t, "--symbols", filepath.Join(g.dir, "symbols"), "fdleaks", rec)
		for _, want := range []string{"1 open at the end, 1 closed that were not open", "opens+", "/proc/self/stat", fmt.Sprintf("descriptors.c:%d", g.line(t, "TWICE"))} {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("fdleaks: no %q\n%s%s", want, out, errs)
			}
		}
		out, errs, code = runScript(t, "strace", rec, "--", "epoll_create1", "dup", "exit_group")
		for _, want := range []string{"epoll_create1(0) = ", "dup(3) = ", "exit_group(0) = ?"} {
			if code != 0 || !strings.Contains(out, want) || strings.Count(out, "\n") != 3 {
				t.Errorf("strace: no %q, or more\n%s%s", want, out, errs)
			}
		}
		out, errs, code = runScript(t, "--symbols", filepath.Join(g.dir, "symbols"), "ltrace", rec)
		for _, want := range []string{`fopen("/proc/self/maps", "r") = 0x`, "fclose(0x", "main+"} {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("ltrace: no %q\n%s%s", want, out, errs)
			}
		}
	})
}

func testHeapScript(t *testing.T) {
	for fault, want := range [][]string{
		{"; 0 errors; 0 leaked, "},
		{"; 0 errors; 5 leaked, ", "leak: 560 bytes in 5 blocks, allocated by make+", "heapuse.cc:MADE"},
		{"; 1 errors; 0 leaked, ", "double free: operator delete(", "a block of 8 bytes", "heapuse.cc:AGAIN"},
		{"; 1 errors; 0 leaked, ", "invalid free: free(", "16 bytes into a block of 112", "heapuse.cc:INSIDE"},
	} {
		g := compile(t, "heapuse", fmt.Sprintf("-DFAULT=%d", fault), "-pthread")
		rec := g.record(t, "--keep", "always")
		out, errs, code := runScript(t, "--symbols", filepath.Join(g.dir, "symbols"), "heap", rec)
		for _, w := range want {
			if file, mark, ok := strings.Cut(w, ":"); ok && file == "heapuse.cc" {
				line := g.line(t, mark)
				if mark == "MADE" {
					line -= 2
				}
				w = fmt.Sprintf("%s:%d", file, line)
			}
			if code != 0 || !strings.Contains(out, w) {
				t.Errorf("fault %d: no %q\n%s%s", fault, w, out, errs)
			}
		}
		if fault == 0 && strings.Count(out, "\n") != 1 {
			t.Errorf("a program without a fault:\n%s", out)
		}
	}
}
