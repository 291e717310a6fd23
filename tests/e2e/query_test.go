package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	realgdb "vplay/tests/gdb"
)

// loadCommands loads vplay's commands into gdb over the connection.
const loadCommands = "python exec(gdb.execute('monitor python', to_string=True))"

// queries are questions to a recording of tests/guest/tour.c, in gdb's commands;
// # is what comes before a position.
var queries = []struct {
	name     string
	commands []string
	want     []string
}{
	{
		"writes and reads",
		[]string{"vplay last-write total", "vplay writes total 3", "vplay writes squares[3] 5", "vplay last-write *(int *)&cold[700000]", "vplay reads squares[3]"},
		[]string{
			`^#  0x\w+ on_signal\+0x\w+ in tour .*LINE:HANDLER  mov .*0x11d -> 0x282d$`,
			`add\+.*LINE:ADD .*0x8c -> 0xcc\n#.*LINE:ADD .*0xcc -> 0x11d\n#.*0x11d -> 0x282d$`, `fill.* in tour .*LINE:STORE .* 0x0 -> 0xe\n`,
			`the 4 bytes at 0x\w+: not written`, `look\+.*LINE:READ .* 0xe$`,
		},
	},
	{
		"calls, with arguments",
		[]string{"vplay calls square 2", "vplay calls look", "vplay calls raise 1", "vplay calls nonsense", "vplay first-exec look", "vplay first-exec LINENO:AFTER", "vplay first-exec *0"},
		[]string{
			`^#  square\(8\)  from 0x\w+ add\+0x\w+ in tour .*LINE:ADD\n#  square\(9\)  from .*add`, `^#  look\(\)  from .* main.*LINE:LOOK`, `^#  .*raise\(10, \w+, \w+\)  from .*main`,
			`Function "nonsense" not defined`, `^#  0x\w+ look in tour .*from .*LINE:LOOK`, `^#  0x\w+ fill\+.*LINE:AFTER`, `0x0 is not executed`,
		},
	},
	{
		"seek: gdb sees a stop",
		[]string{
			"python gdb.events.stop.connect(lambda e: print('a stop at', gdb.selected_frame().name()))", "break fill", "reverse-continue", "vplay when", "vplay seek end", "vplay seek begin",
			"vplay when", "vplay seek 100%", "vplay seek 0.9", "vplay seek event 1", "vplay events 2", "vplay seek interval 0", "vplay when", "vplay seek nonsense", "vplay seek 7:1",
			"set exec-direction reverse", "vplay seek end", "info symbol $pc",
		},
		[]string{
			`a stop at fill`, `^#`, `a stop at .*exit`, `a stop at None`, `^0:0\.0`, `a stop at .*exit`, `a stop`, `a stop`, `^#0 +#`, `a stop`, `^0:0\.0`,
			`bad position "nonsense"`, `interval 7 is not in the recording`, `exit`,
		},
	},
	{
		"from one answer to the next",
		[]string{
			"python import re", "python seek = lambda q: gdb.execute('vplay seek ' + re.findall(r'\\d+:\\d+\\.\\d+', gdb.execute(q, to_string=True))[-1])",
			"python seek('vplay last-write squares[3]')", "p squares[3]", "stepi", "p squares[3]", "python seek('vplay calls add')", "p $rdi", "python seek('vplay calls square')", "p $rdi", "bt",
		},
		[]string{`LINE:STORE`, `= 0`, `= 14`, `add`, `= 3`, `square`, `= 2`, `square.*\n#1 .* add .*\n#2 .* fill .*\n#3 .* main`},
	},
	{
		"checkpoints",
		[]string{
			"info checkpoints", "break square if x == 4", "reverse-continue", "checkpoint", "delete", "vplay seek end", "checkpoint", "info checkpoints", "restart 1", "p x", "delete checkpoint 1",
			"restart 1", "vplay checkpoints", "vplay restart 2", "delete checkpoint 2",
		},
		[]string{
			`No checkpoints`, `Breakpoint 1, square \(x=4\)`, `Checkpoint 1 at #  0x\w+ square.*LINE:SQUARE`, `Checkpoint 2 at #`, `1  #.*square.*\n2  #.*exit`,
			`square \(x=4\)`, `= 4`, `^there is no checkpoint 1`, `^2  #`, `_exit`,
		},
	},
	{
		"what was captured, and where things are",
		[]string{"vplay why cold[700000]", "vplay why total", "vplay why 0", "vplay why", "vplay writes quiet", "break square", "reverse-continue", "vplay last-write r", "vplay seek end", "vplay pages total", "vplay pages", "vplay modules", "vplay events 3", "vplay events 25"},
		[]string{
			`was not captured: .*\n.*: not captured$`, `is known: 0x`, `written in this interval`, `nothing is mapped at 0x0`, `help vplay why`, `No symbol "quiet"`, `Breakpoint 1`, `square.*-> 0x40`, `written in this interval`,
			`rw-p .* pages: .*not captured  .*/tour$`, `r-xp .* pages: .* captured.*libc\.so\.6`, `/tour build-id \w{40}\n +add-symbol-file`, `^#\d+  #  write\(1, .*\n#\d+  #   +6\n#\d+  #  exit_group\(7\)$`,
			`^#\d+  #  --- SIGUSR1 \{si_code=SI_TKILL, si_pid=\d+, si_uid=\d+\} ---$`,
		},
	},
	{
		"help and completion",
		[]string{"help vplay", "help vplay last-write", "complete vplay seek e", "complete vplay last-write squ", "complete vplay calls squ", "complete vplay ch"},
		[]string{`vplay calls -- `, `vplay writes -- `, `EXPR is a variable`, `^vplay seek end\nvplay seek event`, `vplay last-write square\nvplay last-write squares`, `vplay calls square$`, `vplay checkpoint\nvplay checkpoints`},
	},
	{
		"the same by monitor, for debuggers without Python",
		[]string{
			"monitor last-write total 4", "monitor writes total 4 2", "monitor calls square 1", "monitor calls nonsense", "monitor first-exec look", "monitor seek 50%", "monitor when", "monitor seek crash",
			"monitor checkpoint", "monitor seek begin", "monitor checkpoints", "monitor restart 3", "monitor restart 9", "monitor delete-checkpoint 3", "monitor checkpoints", "monitor pages total",
			"monitor writes total 0", "monitor writes total 4 0", "monitor seek", "monitor seek 150%", "monitor seek event x", "monitor help seek", "monitor help",
		},
		[]string{
			`^#  .*0x11d -> 0x282d`, `^#.*\n#.*0x282d`, `^#  square\(9, `, `error: no such symbol: nonsense`, `^#  .*look`, `^#`, `^#`, `^#`, `Checkpoint 3 at #`, `^0:0`, `3  #`, `^#`,
			`there is no checkpoint 9`, `No checkpoints`, `written in this interval`, `bad length "0"`, `bad number "0"`, `say where`, `bad share "150%"`, `bad number "x"`, `POSITION, begin`, `monitor writes WHERE`,
		},
	},
}

func TestQueries(t *testing.T) {
	t.Parallel()
	g, addr := tour(t)
	for _, c := range queries {
		t.Run(c.name, func(t *testing.T) {
			var commands []string
			for _, s := range append([]string{loadCommands, quiet, "vplay seek end"}, c.commands...) {
				commands = append(commands, g.numbered(t, s))
			}
			var want []string
			for _, s := range c.want {
				want = append(want, position.Replace(g.numbered(t, s)))
			}
			expect(t, gdb(t, addr, commands...), want...)
		})
	}
}

// marked is the line of a mark in the source.
var marked = regexp.MustCompile(`LINE(NO)?:[A-Z]+`)

// numbered puts line numbers in the place of marks.
func (g *guest) numbered(t testing.TB, s string) string {
	return marked.ReplaceAllStringFunc(s, func(mark string) string {
		_, name, _ := strings.Cut(mark, ":")
		return strconv.Itoa(g.line(t, name))
	})
}

// position makes # a pattern for a position, but for those of an event's number
// and a frame's.
var position = strings.NewReplacer(`^#  `, `^\d+:\d+\.\d+  `, `\n#  `, `\n\d+:\d+\.\d+  `, `^#0 +#`, `^#0  \d+:\d+\.\d+`, `^#\d`, `^#\d`, `\n#\d+  #`, `\n#\d+  \d+:\d+\.\d+`,
	`\n#1 `, `\n#1 `, `\n#2 `, `\n#2 `, `\n#3 `, `\n#3 `, `  #`, `  \d+:\d+\.\d+`, `#`, `\d+:\d+\.\d+`)

// TestQueryInterrupted presses Ctrl-C while a question is searched for, as a
// terminal does: the answer is there within a second, the session goes on, and
// nothing comes late.
func TestQueryInterrupted(t *testing.T) {
	t.Parallel()
	g := compile(t, "early", "-O0")
	addr := serve(t, g.record(t, "--slim-time", "0"), "--symbols", g.dir+"/symbols")
	m := realgdb.StartMI(t)
	m.Say("-target-select remote "+addr, `\*stopped`)
	m.Say(fmt.Sprintf("-interpreter-exec console %q", loadCommands), `\^done`)
	for range 3 {
		m.Send(`-interpreter-exec console "vplay first-exec *1"`)
		time.Sleep(700 * time.Millisecond)
		start := time.Now()
		m.Signal(syscall.SIGINT)
		m.Say("", `\^(error|done)`)
		m.Say("-data-evaluate-expression 40+2", `value="42"`)
		m.Say("-data-list-register-values x 16", `number="16",value="0x[0-9a-f]+"`)
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("the interrupt took %v", d)
		}
	}
	m.Say(`-interpreter-exec console "vplay last-write early"`, `main\+0x\w+ in early .*0x0 -> 0x5`)
}

// TestQueriesFromTheStart asks before anything was replayed, while what debuggers
// see is the final image, and out of a diversion.
func TestQueriesFromTheStart(t *testing.T) {
	t.Parallel()
	g := compile(t, "tour", "-O0")
	rec := g.record(t, "--keep", "always")
	addr := serve(t, rec, "--symbols", g.dir+"/symbols")
	expect(t, gdb(t, addr, loadCommands, "vplay last-write total", "vplay when", "vplay calls raise 1", "vplay calls printf 1", "vplay first-exec main", "monitor pages"),
		`0x11d -> 0x282d`, `^\d+:\d+\.\d+$`, `raise\(10`, `printf\(`, `main in tour`, `captured`)
	addr = serve(t, rec, "--symbols", g.dir+"/symbols")
	expect(t, gdb(t, addr, loadCommands, quiet, "print total = 7", "print square(9)", "vplay last-write total", "vplay when", "print total", "vplay seek 0:0", "print total", "vplay seek end", "print total"),
		`= 7`, `= 81`, `0x11d -> 0x282d`, `^\d+:\d+\.\d+$`, `= 7`, `= 0`, `= 10285`)
	expect(t, gdb(t, addr, "print total = 8", "monitor seek 50%", "maintenance flush register-cache", "maintenance flush dcache", "monitor seek end", "maintenance flush register-cache", "maintenance flush dcache", "print total"),
		`= 8`, `^\d+:\d+`, `= 10285`)
}

// TestSeekLibraries moves to before the libraries were loaded and back: gdb must have
// those that are there, without being told to look, and its breakpoints in them.
func TestSeekLibraries(t *testing.T) {
	t.Parallel()
	g, addr := tour(t)
	raised := g.numbered(t, "break LINENO:RAISE")
	out := gdb(t, addr, loadCommands, quiet, "python gdb.events.stop.connect(lambda e: print('a stop at', gdb.selected_frame().name()))",
		"set breakpoint pending on", "vplay seek begin", "info sharedlibrary", "checkpoint", "break raise", "vplay seek end", "bt 3", "restart 1", "info sharedlibrary", "continue", "bt 2",
		"delete", raised, "restart 1", "echo @\\n", "set stop-on-solib-events 1", "vplay seek 99%", "continue", "bt 2", "set stop-on-solib-events 0",
		"monitor seek begin", "maintenance flush register-cache", "monitor resume-at 99%", "set exec-direction reverse", "stepi", "info sharedlibrary")
	expect(t, out,
		`a stop at None`, `ld-linux`, `Checkpoint 1`, `Breakpoint 1 at`, `a stop at .*exit`, `#0 .* _exit .*libc\.so\.6`, `a stop at None`, `ld-linux`,
		`Breakpoint 1, .*raise`, `a stop at .*raise`, `#0 .*raise.*\n#1 .* main`, `@`, `Stopped due to shared library event`, `a stop at`, `#0 `, `libc\.so\.6`)
	if n := strings.Count(out, "a stop at"); n != 8 {
		t.Errorf("%d stops:\n%s", n, out)
	}
}

// TestHandledFault lists the events of a fault that the program handles: what made it
// is told once.
func TestHandledFault(t *testing.T) {
	t.Parallel()
	g := compile(t, "handled", "-O0")
	addr := serve(t, g.record(t, "--keep", "always"), "--symbols", g.dir+"/symbols")
	expect(t, gdb(t, addr, loadCommands, "vplay events 60", "break on_fault", "reverse-continue", "handle SIGSEGV stop print", "reverse-step"),
		`#\d+  \d+:\d+\.\d+  rdtsc = 0x\w+\n`, `  rt_sigaction\(SIGSEGV, \{sa_handler=0x\w+, `, `#\d+  \d+:\d+\.\d+  --- SIGSEGV \{si_code=SEGV_MAPERR, si_addr=0x40\} ---\n#\d+  \d+:\d+\.\d+ +its handler runs`,
		`Breakpoint 1, on_fault`, `received signal SIGSEGV`)
}

// TestCommandsFile loads the commands from the verb's output and from the
// recording's own files, and by vplayd replay.
func TestCommandsFile(t *testing.T) {
	t.Parallel()
	g := compile(t, "divide", "-O0")
	rec := g.record(t)
	text, err := exec.Command(vplayd, "gdb-commands").Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(g.dir, "vplay.py")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	addr := serve(t, rec, "--symbols", g.dir+"/symbols")
	other := filepath.Join(g.dir, "got.py")
	expect(t, gdb(t, addr, "source "+file, "vplay when", "remote get /vplay/vplay.py "+other, "source "+other, "vplay when"), `^\d+:\d+`, `^\d+:\d+`)
	expect(t, realgdb.Batch(t, "source "+file, "vplay when"), `not supported|no recording|remote|Cannot`)
	cmd := exec.CommandContext(limited(t, 60*time.Second), vplayd, "replay", "--symbols", g.dir+"/symbols", rec, "--", "-nx", "-batch", "-ex", "vplay when")
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("replay: %v", err)
	}
	expect(t, string(out), `^\d+:\d+`)
}
