package e2e

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	realgdb "vplay/tests/gdb"
	"vplay/tests/need"
)

// tour records the guest tour, whole, once for a test, and serves it.
func tour(t *testing.T) (g *guest, addr string) {
	g = compile(t, "tour", "-O0")
	return g, serve(t, g.record(t, "--keep", "always"), "--symbols", g.dir+"/symbols")
}

const quiet = "handle SIGUSR1 nostop noprint pass"

// tours are walks through tests/guest/tour.c, whose values are known: square(i)
// adds up to 285, the sum behind i is squares[i], and the handler adds 10,000.
var tours = []struct {
	name     string
	commands []string
	want     []string
}{
	{
		"tbreak, conditions, finish, next, reverse-next, reverse-step, reverse-finish",
		[]string{
			quiet, "tbreak fill", "reverse-continue", "break square if x == 5", "continue", "p total", "finish", "next", "next", "next",
			"reverse-next", "reverse-next", "echo @\\n", "reverse-step", "reverse-step", "reverse-step", "reverse-finish",
		},
		[]string{
			`Temporary breakpoint 1, fill \(\) at .*LINE:LOOP`, `Breakpoint 2, square \(x=5\) at .*LINE:SQUARE`, `= 30`, `add \(x=5\)`,
			`Value returned is .* = 25`, `^19\b|return total`, `fill \(\) at .*LINE:LOOP`, `square \(x=5\)`, `add \(x=5\) at .*LINE:ADD`,
			`@`, `fill \(\) at .*LINE:STORE`, `// LOOP`, `add \(x=4\)`, `fill \(\) at .*LINE:STORE`,
		},
	},
	{
		"watch with a condition, rwatch, awatch",
		[]string{
			quiet, "break main", "reverse-continue", "delete", "watch total if total > 100", "continue", "delete", "rwatch squares[3]", "continue",
			"delete", "awatch squares[3]", "reverse-continue", "reverse-continue", "reverse-continue",
		},
		[]string{
			`Breakpoint 1, main`, `Old value = 91\nNew value = 140\nadd \(x=7\)`, `read watchpoint 3: squares\[3\]\n\nValue = 14\nlook \(\) at .*LINE:READ`,
			`Value = 14\nlook \(\)`, `Old value = 14\nNew value = 0\n.*fill \(\) at .*LINE:STORE`, `No more reverse-execution history`,
		},
	},
	{
		"watch, both ways, every time",
		[]string{
			quiet, "break fill", "reverse-continue", "delete", "watch squares[2]", "watch total", "continue", "continue", "continue", "continue",
			"reverse-continue", "reverse-continue", "reverse-continue", "reverse-continue",
		},
		[]string{
			`Old value = 0\nNew value = 1\n`, `Old value = 1\nNew value = 5\n`, `squares\[2\]\n\nOld value = 0\nNew value = 5`, `total\n\nOld value = 5\nNew value = 14`,
			`total\n\nOld value = 14\nNew value = 5`, `squares\[2\]\n\nOld value = 5\nNew value = 0`, `total\n\nOld value = 5\nNew value = 1`, `Old value = 1\nNew value = 0`,
		},
	},
	{
		"until and advance, step into and out, and back",
		[]string{
			quiet, "break fill", "reverse-continue", "delete", "until LINENO:AFTER", "p total", "p squares", "reverse-stepi", "stepi", "advance look",
			"step", "reverse-step", "reverse-step", "reverse-finish",
		},
		[]string{
			`Breakpoint 1, fill`, `fill \(\) at .*LINE:AFTER`, `= 285`, `\{0, 1, 5, 14, 30, 55, 91, 140, 204, 285\}`, `main \(\) at .*LINE:LOOK`,
			`look \(\) at .*LINE:READ`, `main \(\) at .*LINE:LOOK`, `fill \(\) at .*`, `main \(\) at .*LINE:CALL`,
		},
	},
	{
		"signals are reported both ways, and handlers stepped into",
		[]string{
			"break main", "reverse-continue", "reverse-continue", "delete", "continue", "break on_signal", "continue", "p s", "p total", "bt", "finish",
			"reverse-continue", "reverse-continue", "continue", "continue", "continue",
		},
		[]string{
			`received signal SIGUSR1`, `Breakpoint 1, main`, `received signal SIGUSR1`, `Breakpoint 2, on_signal \(s=10\)`, `= 10`, `= 285`,
			`on_signal .*\n#1 .*signal handler called.*\n#2 .*raise|on_signal`, `Breakpoint 2, on_signal|Run till exit`, `received signal SIGUSR1|on_signal`,
		},
	},
	{
		"a step back over a signal's delivery reports it, unless it shall pass",
		[]string{
			quiet, "break *on_signal", "reverse-continue", "reverse-stepi", "info symbol $pc", "stepi", "handle SIGUSR1 stop print", "reverse-stepi", "p $_siginfo.si_signo", "stepi",
			"break on_signal", "continue", "reverse-step",
		},
		[]string{
			`Breakpoint 1, .*on_signal`, `libc\.so\.6`, `on_signal`, `received signal SIGUSR1`, `= 10`, `on_signal`, `Breakpoint 2, on_signal`, `Breakpoint 1, .*on_signal`,
		},
	},
	{
		"next over a signal's handler, and back over it",
		[]string{quiet, "break LINENO:RAISE", "reverse-continue", "next", "p total", "reverse-next", "p total", "next", "next"},
		[]string{`Breakpoint 1, main .*LINE:RAISE`, `int n = total`, `= 10285`, `main .*LINE:RAISE`, `= 285`, `int n = total`, `// PRINT`},
	},
	{
		"catch syscall, both ways",
		[]string{quiet, "break LINENO:PRINT", "reverse-continue", "catch syscall write", "continue", "continue", "reverse-continue", "reverse-continue"},
		[]string{`Breakpoint 1, main .*LINE:PRINT`, `call to syscall write`, `returned from syscall write`, `call to syscall write`, `Breakpoint 1, main`},
	},
	{
		"the beginning and the exit",
		[]string{"monitor seek begin", "maintenance flush register-cache", "reverse-stepi", "reverse-continue", quiet, "stepi", "reverse-stepi", "reverse-stepi", "continue", "reverse-stepi", "continue", "continue", "continue", "reverse-stepi", "info registers rip"},
		[]string{
			`0:0`, `No more reverse-execution history`, `No more reverse-execution history`, `No more reverse-execution history`,
			`exits with code 7`, `No more reverse-execution history`, `exits with code 7`, `No more reverse-execution history`,
			`has exited with code 7`, `No more reverse-execution history`, `has exited with code 7`, `No more reverse-execution history`, `^rip `,
		},
	},
	{
		"what the process looks like",
		[]string{"info proc mappings", "info proc all", "info sharedlibrary", "info inferiors", "info threads", "p $_siginfo.si_signo", "info auxv"},
		[]string{`r-xp .*/tour$`, `\[stack\]`, `cmdline = '.*/tour'`, `cwd = '/`, `exe = '.*/tour'`, `State:\s+t`, `Process: \d+`, `libc\.so\.6`, `process \d+`, `\* 1 +Thread`, `AT_ENTRY`},
	},
	{
		"an uncaptured byte is an error with a reason",
		[]string{"p cold[0]", "p cold[700000]", "x/4xb cold + 700000", `eval "monitor why %lu", cold + 700000`, "monitor why 0", `eval "monitor why %lu", &total`,
			"find /b cold, +700000, 77", "find /b cold, +100, 1", "find /b cold, +100, 77"},
		[]string{`= 1`, `Cannot access memory`, `Cannot access memory`, `was not captured: the program did not use`, `nothing is mapped at 0x0`, `is known: 0x`,
			`searched up to 0x\w+000 only: .* was not captured`, `^1 pattern found`, `^Pattern not found`},
	},
}

func TestTours(t *testing.T) {
	t.Parallel()
	g, addr := tour(t)
	for _, c := range tours {
		t.Run(c.name, func(t *testing.T) {
			var commands []string
			for _, s := range append([]string{"monitor seek end", "maintenance flush register-cache"}, c.commands...) {
				if before, mark, found := strings.Cut(s, "LINENO:"); found {
					s = fmt.Sprintf("%s%d", before, g.line(t, mark))
				}
				commands = append(commands, s)
			}
			expect(t, gdb(t, addr, commands...), places(t, g, "tour", c.want)...)
		})
	}
}

// TestReconnect leaves and comes back in every way that gdb has.
func TestReconnect(t *testing.T) {
	t.Parallel()
	_, addr := tour(t)
	expect(t, gdb(t, addr, quiet, "break square if x == 4", "reverse-continue", "monitor when", "p x", "detach"), `Breakpoint 1, square \(x=4\)`, `= 4`, `detached`)
	expect(t, gdb(t, addr, "frame", "p x", "disconnect"), `square \(x=4\)`, `= 4`)
	expect(t, gdb(t, addr, "p x", "kill"), `= 4`, `killed`)
	expect(t, gdb(t, addr, quiet, "p x", "continue", "continue", "reverse-stepi", "bt 1"), `= 4`, `No more reverse-execution history`, `has exited with code 7`, `No more reverse`, `#0 .*_exit`)
	// In the extended protocol the exit ends the process, and not the connection.
	pid := regexp.MustCompile(`process (\d+)`).FindStringSubmatch(gdb(t, addr, "info inferiors"))
	if pid == nil {
		t.Fatal("gdb does not know the process")
	}
	extended := realgdb.Batch(t, "target extended-remote "+addr, "attach "+pid[1], quiet, "continue", "continue", "attach "+pid[1], "break square if x == 2", "reverse-continue")
	expect(t, extended, `No more reverse-execution history`, `exited with code 07`, `Breakpoint 1, square \(x=2\)`)
	gdb(t, addr, quiet, "continue", "continue")
	expect(t, gdb(t, addr, quiet, "bt", "break square if x == 4", "reverse-continue", "p x"), `_exit`, `Breakpoint 1, square \(x=4\)`, `= 4`)
}

// TestCrashAgain comes back to the crash: it is reported each time it is
// reached, and once only.
func TestCrashAgain(t *testing.T) {
	t.Parallel()
	g := compile(t, "divide", "-O0")
	rec := g.record(t)
	out := gdb(t, "| "+vplayd+" serve --stdio --symbols "+g.dir+"/symbols "+rec, "continue", "break shrink", "reverse-continue", "delete", "continue",
		"continue", "reverse-stepi", "stepi", "stepi", "stepi", "p $_siginfo.si_signo")
	expect(t, out, `No more reverse-execution history`, `Breakpoint 1, shrink`, `received signal SIGFPE`, `No more reverse-execution history`,
		`received signal SIGFPE`, `No more reverse-execution history`)
}

// TestReplayVerb starts gdb on a recording.
func TestReplayVerb(t *testing.T) {
	t.Parallel()
	need.Program(t, "gdb")
	g := compile(t, "divide", "-O0")
	rec := g.record(t)
	cmd := exec.CommandContext(limited(t, 60*time.Second), vplayd, "replay", "--symbols", g.dir+"/symbols", rec, "--", "-nx", "-batch", "-ex", "bt")
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("replay: %v", err)
	}
	expect(t, string(out), places(t, g, "divide", []string{`#0 .*main .*LINE:CRASH`})...)
}

// TestInterrupt stops long searches in both directions with Ctrl-C; the
// answer comes at once and a search backwards returns to where it began.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	g := compile(t, "busy", "-O0")
	addr := serve(t, g.record(t, "--slim-time", "0"), "--symbols", g.dir+"/symbols")
	m := realgdb.StartMI(t)
	m.Say("-gdb-set mi-async on", `\^done`)
	m.Say("-target-select remote "+addr, `\*stopped`)
	m.Say(`-break-insert -c "i == -1" beat`, `\^done`)
	for _, dir := range []string{"--reverse", "--reverse", ""} {
		if dir == "" {
			m.Say(`-interpreter-exec console "monitor seek begin"`, `\^done`)
			m.Say(`-interpreter-exec console "maintenance flush register-cache"`, `\^done`)
			m.Say("-break-insert -t main", `\^done`) // gdb stops at each library before, by itself, and drops an interrupt that comes meanwhile
			m.Say("-exec-continue", `\*stopped,.*func="main"`)
		}
		m.Say("-exec-continue "+dir, `\*running`)
		time.Sleep(300 * time.Millisecond)
		start := time.Now()
		m.Say("-exec-interrupt", `\*stopped,.*signal-name="(SIGINT|0)"`)
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("the interrupt took %v", d)
		}
		if dir != "" {
			m.Say("-stack-list-frames", `func="abort".*func="main"`)
		}
	}
	m.Say("-stack-list-frames", `\^done,stack=`)
}
