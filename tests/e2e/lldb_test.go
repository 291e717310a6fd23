package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vplay/tests/need"
)

// lldb has no use for the files that the server has: without a file it takes the
// libraries of the machine it runs on for the recorded ones. So it gets what
// export-elf writes.

// lldbCases are walks through tests/guest/tour.c with lldb's commands.
var lldbCases = []struct {
	name     string
	commands []string
	want     []string
}{
	{
		"backtrace at the end",
		[]string{"process status", "bt", "frame select 1", "thread list", "image list"},
		[]string{
			`Process \d+ stopped`, `frame #0: 0x\w+ libc\.so\.6.*_exit`, `frame #\d+: 0x\w+ libc\.so\.6.*__libc_start_main`, `tour\.elf.*_start`, `frame #1`,
			`\* thread #1`, `/tour\.elf`, `sysroot/.*/libc\.so\.6`,
		},
	},
	{
		"breakpoints, step, finish",
		[]string{
			"process handle SIGUSR1 -s false -p true -n false", "process plugin packet monitor resume-at begin", "thread step-inst", "breakpoint set -n square -i 5", "continue", "bt", "frame variable", "finish",
			"next", "next", "breakpoint delete -f", "breakpoint set -f tour.c -l LINENO:AFTER", "continue", "expression -- total", "step", "thread step-inst",
		},
		[]string{
			`SIGUSR1 +true +false +false`, `Breakpoint 1: where = tour\.elf.square`, `stop reason = breakpoint 1\.1`, `square\(x=5\) at tour\.c:LINE:SQUARE`, `frame #1: .*add\(x=5\)`, `frame #2: .*fill`,
			`\(int\) x = 5`, `stop reason = step out`, `add\(x=5\)`, `stop reason = step over`, `stop reason = breakpoint 2\.1`, `fill.* at tour\.c:LINE:AFTER`, `= 285`, `stop reason = step in`, `stop reason = instruction step into`,
		},
	},
	{
		"registers and memory",
		[]string{
			"register read rip rsp rbp", "register read --all", "memory read -s 4 -f d -c 10 &squares", "memory read -c 8 0", "memory region $sp", "memory find -s done -- &text &text+1",
			"register write rip 0x1000", "x/2i $pc",
		},
		[]string{
			`rip = 0x\w+ +libc\.so\.6.*_exit`, `rsp = 0x`, `rbp = 0x`, `eflags = 0x`, `(ymm15|xmm15) = `, `: 0\n.*: 1\n.*: 5\n.*: 14`, `error:.*0x0`, `\[0x\w+-0x\w+\) rw-.*stack`, `data found at location: 0x`, `error`, `0x\w+`,
		},
	},
	{
		"watchpoints",
		[]string{
			"process handle SIGUSR1 -s false -p true -n false", "process plugin packet monitor resume-at begin", "thread step-inst", "breakpoint set -n fill", "continue", "breakpoint delete -f", "watchpoint set variable squares[2]", "continue", "watchpoint list",
			"watchpoint delete -f", "watchpoint set expression -w read -s 4 -- &squares[3]", "continue",
		},
		[]string{`stop reason = breakpoint`, `Watchpoint created`, `Watchpoint 1 hit:`, `old value: 0`, `new value: 5`, `stop reason = watchpoint 1`, `Watchpoint created`, `stop reason = watchpoint 2`, `look.*tour\.c:LINE:READ`},
	},
	{
		"disassembly, source, monitor, detach",
		[]string{
			"disassemble -n look -c 4", "source list -n look", "image lookup -a `(void*)look`", "process plugin packet monitor last-write total 4", "process plugin packet monitor calls square 1",
			"process plugin packet monitor when", "process detach",
		},
		[]string{`tour\.elf.look:`, `pushq +%rbp`, `movq +%rsp, %rbp`, `reads \+= squares\[3\]`, `Summary: tour\.elf.look at tour\.c`, `\d+:\d+\.\d+ .*on_signal.*0x11d -> 0x282d`, `square\(9`, `^\d+:\d+\.\d+$`, `Process \d+ detached`},
	},
}

func TestLLDB(t *testing.T) {
	t.Parallel()
	lldb := need.Program(t, "lldb")
	g := compile(t, "tour", "-O0")
	version(t, lldb, "--version")
	rec := g.record(t, "--keep", "always")
	symbols := filepath.Join(g.dir, "symbols")
	elf, sysroot := filepath.Join(g.dir, "tour.elf"), filepath.Join(g.dir, "sysroot")
	for _, args := range [][]string{{"-o", elf}, {"--all", sysroot}} {
		args = append(append([]string{"export-elf", "--symbols", symbols}, args...), rec)
		if out, err := exec.Command(vplayd, args...).CombinedOutput(); err != nil {
			t.Fatalf("export-elf: %v\n%s", err, out)
		}
	}
	setup := []string{
		"settings set use-color false", "settings set symbols.enable-external-lookup false", "settings set target.process.stop-on-exec false", "target create " + elf,
		"target modules search-paths add /lib " + sysroot + "/lib /lib64 " + sysroot + "/lib64 /usr " + sysroot + "/usr",
	}
	for _, c := range lldbCases {
		t.Run(c.name, func(t *testing.T) {
			commands := append(append([]string{}, setup...), "gdb-remote "+serve(t, rec, "--symbols", symbols))
			for _, s := range c.commands {
				commands = append(commands, g.numbered(t, s))
			}
			script := filepath.Join(t.TempDir(), "script")
			if err := os.WriteFile(script, []byte(strings.Join(commands, "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(limited(t, 60*time.Second), lldb, "--no-lldbinit", "--batch", "-O", "settings set interpreter.stop-command-source-on-error false", "--source", script)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "LC_ALL=C")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Logf("lldb: %v", err)
			}
			var want []string
			for _, s := range c.want {
				want = append(want, g.numbered(t, s))
			}
			expect(t, string(out), want...)
		})
	}
}
