package e2e

import (
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	realgdb "vplay/tests/gdb"
)

// diverted records the guest divert, with its memory as far as it was in use, and
// serves it from the beginning. The symbols have the libraries, too, so that
// functions can be called that the program did not use.
func diverted(t *testing.T, flags ...string) (g *guest, rec, addr string) {
	g = compile(t, "divert", "-O0")
	out, err := exec.Command("ldd", g.bin).Output()
	if err != nil {
		t.Fatalf("ldd: %v", err)
	}
	rec = g.record(t, append([]string{"--keep", "always"}, flags...)...)
	for _, lib := range regexp.MustCompile(`/\S+`).FindAllString(string(out), -1) {
		b, err := os.ReadFile(lib)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(g.dir, "symbols", filepath.Base(lib)), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return g, rec, serve(t, rec, "--symbols", g.dir+"/symbols", "--at", "begin")
}

// start goes to the beginning and from there to a breakpoint that it deletes.
func start(at string) []string {
	return []string{"monitor seek begin", "maintenance flush register-cache", "tbreak " + at, "continue"}
}

const dropped = `vplay: what was changed is dropped`

var diversions = []struct {
	name     string
	from     string
	commands []string
	want     []string
}{
	{
		"calls with results of all kinds",
		"walk",
		[]string{
			"print twice(21)", "print twice(4) + twice(5)", "print half(9.0)", "print swapped(3, 4)", "print memory()", "print $_siginfo.si_signo",
			"bt", "stepi", "print calls",
		},
		[]string{`= 42`, `= 18`, `= 4\.5`, `= \{a = 4, b = 3\}`, `= 2016`, `= 0`, `#0 +walk .*i=0\)`, `#1 .*main`, `= 0$`},
	},
	{
		"output of calls",
		"walk",
		[]string{`call (int)puts("hello")`, `print say("x")`, "print refused()", "bt 1"},
		[]string{`^hello$`, `= \d`, `^it says x, well, 2\.50$`, `= 0`, `rename gets ENOSYS`, `= -1`, `#0 +walk`},
	},
	{
		"calls in conditions, and after going backwards",
		"main",
		[]string{
			"break walk if (int)strlen(s) > 3 && twice(i) > 4", "continue", "print s", "print twice(i)", "continue", "reverse-continue",
			"print twice(i)", "reverse-stepi", "print twice(8)", "print calls",
		},
		[]string{`Breakpoint \d+, walk \(s=.*"ddddd", i=3\)`, `"ddddd"`, `= 6`, `exits with code`, `walk \(s=`, `= \d`, `= 16`, `= \d`},
	},
	{
		"changes are seen, and dropped by the next movement",
		"twice",
		[]string{
			"set var calls = 77", "print calls", "print twice(0)", "print calls", "stepi", "print calls",
			"set var $rax = 5", "print $rax", "set var $xmm3.v4_float[1] = 2.5", "print $xmm3.v4_float[1]", "set var $mxcsr = 0x1f90", "print $mxcsr",
			"print $st0 = 1.5", "print $st0", "reverse-stepi", "print $mxcsr",
			"return 100", "bt 1", "stepi", "bt 1", "jump twice", "monitor when",
		},
		[]string{
			`= 77`, `= 0`, `= 78`, dropped, `= 0`,
			`= 5`, `= 2\.5`, `= \[ .*DAZ|= \[ .*`, `= 1\.5`, `= 1\.5`, dropped, `= \[ IM DM ZM OM UM PM \]`,
			`#0 .* nested`, dropped, `#0 .* twice`, dropped,
		},
	},
	{
		"a breakpoint in a call, with a call inside it",
		"walk",
		[]string{
			"break twice", "print nested(5)", "bt", "delete", "print half(5.0)", "up", "print x", "finish", "bt", "print twice(1)",
		},
		[]string{`Breakpoint \d+, twice \(x=1\)`, `stopped while in a function called from GDB`, `#0 .*twice`, `#1 .*nested`, `<function called from gdb>`, `#\d .*walk`, `= 2\.5`, `= 5`, `= 7`, `#0 .*walk`, `= 2`},
	},
	{
		"calls that do not come back leave the position usable",
		"walk",
		[]string{
			"print touch(700000)", "bt 1", "stepi", "bt 1",
			"print quit()", "bt 1",
			"print hurt()", "print $_siginfo.si_signo", "reverse-stepi", "bt 1",
			"set unwindonsignal on", "print poke(0)", "bt 1", "stepi", "print twice(3)",
		},
		[]string{
			`the call cannot go on at 0x[0-9a-f]+: it needs the byte at 0x[0-9a-f]+, which the recording does not hold`, `#0 .* touch`, dropped, `#0 .*walk`,
			`the program called exit\(3\) in the call`, `#0 .*walk`,
			`SIGABRT`, `= 6`, dropped, `#0 .*walk`,
			`SIGSEGV`, `restored the context`, `#0 .*walk`, `= 6`,
		},
	},
	{
		"thread-local variables",
		"walk",
		[]string{"print per_thread", "print zeroed[7]", "print sizeof(zeroed)", "print per_thread = 9", "print per_thread", "reverse-stepi", "print per_thread", "print (int)errno"},
		[]string{`= 41`, `= 122 'z'`, `= 100`, `= 9`, `= 9`, dropped, `= 41`, `= \d+`},
	},
	{
		"Python: a value from a function, FinishBreakpoint, write_memory",
		"nested",
		[]string{
			"python print('twice', gdb.parse_and_eval('twice(4)'))",
			"python n = gdb.parse_and_eval('&counter')",
			"python gdb.selected_inferior().write_memory(int(n), b'\\x01\\x02\\0\\0')",
			"print counter",
			"tbreak twice", "continue",
			"python class F(gdb.FinishBreakpoint):\n  def stop(self): print('returns', self.return_value, gdb.parse_and_eval('twice(50)')); return True",
			"python f = F(gdb.newest_frame(), internal=True)", "continue", "bt 1",
		},
		[]string{`twice 8`, `= 513`, dropped, `twice \(x=1\)`, `returns 2 100`, `#0 .*nested`},
	},
}

func TestDiversions(t *testing.T) {
	t.Parallel()
	_, _, addr := diverted(t)
	for _, c := range diversions {
		t.Run(c.name, func(t *testing.T) {
			expect(t, gdb(t, addr, append(start(c.from), c.commands...)...), c.want...)
		})
	}
}

// TestDivertedNothing compares all that is visible before and after calls and
// changes: position, registers, memory, and the recording's file.
func TestDivertedNothing(t *testing.T) {
	t.Parallel()
	_, rec, addr := diverted(t, "--slim-time", "0")
	sum := func() [32]byte {
		b, err := os.ReadFile(rec)
		if err != nil {
			t.Fatal(err)
		}
		return sha256.Sum256(b)
	}
	before := sum()
	look := []string{"echo @\\n", "monitor when", "info all-registers", "x/64xg $sp - 256", "x/8xw &counter", "info proc mappings"}
	commands := append(start("walk"), look...)
	commands = append(commands, `call (int)puts("x")`, "print memory()", "set var counter = 5", "print nested(1)", "print forever = forever", "return", "stepi", "reverse-stepi", "stepi", "reverse-stepi")
	parts := strings.Split(gdb(t, addr, append(append(commands, look...), "echo @\\n")...), "@\n")
	if len(parts) != 4 {
		t.Fatalf("%d parts", len(parts))
	}
	again := parts[2]
	if first, _, _ := strings.Cut(parts[1], "\nx\n"); first != strings.TrimSuffix(again, "\n") {
		t.Errorf("before:\n%s\nafter:\n%s", first, again)
	}
	if sum() != before {
		t.Error("the recording has changed")
	}
}

// TestDivertedSlim: in a slimmed recording a call needs the program's files where
// it leaves what the program did.
func TestDivertedSlim(t *testing.T) {
	t.Parallel()
	g, rec, addr := diverted(t)
	commands := append(start("walk"), "print twice(3)", "print half(3.0)", "print touch(0)", "bt 1")
	expect(t, gdb(t, addr, commands...), `= 6`, `= 1\.5`, `= 1`, `#0 +walk`)
	// At the end nothing has been replayed yet.
	end := serve(t, rec, "--symbols", filepath.Join(g.dir, "symbols"))
	expect(t, gdb(t, end, "print twice(3)", "set var counter = 9", "print counter", "monitor when", "print counter", "reverse-stepi", "print counter", "print twice(4)"),
		`= 6`, `= 9`, `0:\d+`, `= 9`, dropped, `= 10`, `= 8`)
	bare := serve(t, rec, "--at", "begin")
	expect(t, gdb(t, bare, `print ((int(*)(const char*))puts)(0)`, "bt 1"), `recording does not hold|[Nn]o symbol`, `#0`)
}

// TestDivertedInterrupt stops a call that never ends.
func TestDivertedInterrupt(t *testing.T) {
	t.Parallel()
	_, _, addr := diverted(t)
	m := realgdb.StartMI(t)
	m.Say("-gdb-set mi-async on", `\^done`)
	m.Say("-target-select remote "+addr, `\*stopped`)
	m.Say("-break-insert -t walk", `\^done`)
	m.Say("-exec-continue", `\*stopped`)
	m.Say("-gdb-set unwindonsignal on", `\^done`)
	m.Say("-gdb-show width\n-data-evaluate-expression forever()", `\^done`)
	time.Sleep(300 * time.Millisecond)
	start := time.Now()
	m.Interrupt()
	m.Say("", `signaled while in a function called from GDB`)
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("the interrupt took %v", d)
	}
	m.Say("-stack-list-frames", `func="walk".*func="main"`)
}
