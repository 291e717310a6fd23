package e2e

import (
	"strings"
	"testing"

	"vplay/checkpoint"
)

// TestExec follows a process through execve, which makes another program of it twice:
// gdb is told, both ways, and moves its breakpoints to where they belong; seek goes
// from one program to the other.
func TestExec(t *testing.T) {
	t.Parallel()
	g := compile(t, "become", "-O0")
	rec := g.record(t, "--keep", "always")
	addr := serve(t, rec, "--symbols", g.dir+"/symbols")
	out := gdb(t, addr, loadCommands, "vplay seek 0:0", "info sharedlibrary", "break step", "continue", "continue", "info proc", "delete",
		"catch exec", "continue", "continue", "reverse-continue", "bt 3", "reverse-continue", "bt 3", "reverse-continue", "delete", "echo @\\n",
		"tbreak step", "reverse-continue", "p n", "vplay seek crash", "bt", "tbreak step", "reverse-continue", "p n")
	expect(t, out, places(t, g, "become", []string{
		`executing new program: .*/become`, `Program stopped`, `ld-linux`, `Breakpoint 1.*, step \(n=1\) at .*LINE:STEP`,
		`executing new program: .*/become`, `Breakpoint 1.*, step \(n=2\) at .*LINE:STEP`, `exe = '.*/become'`,
		`Catchpoint 2 \(exec'd .*sh\)`, `Catchpoint 2 \(exec'd .*/become\)`,
		`back before the execve of .*/become`, `Catchpoint 2 \(exec'd .*sh\)`, `#0 .*execve`, `back before the execve of .*sh`,
		`Catchpoint 2 \(exec'd .*/become\)`, `#0 .*execve.*\n#1 .*\n#2 .*main .*LINE:SECOND`, `back before the execve of .*/become`, `^@`,
		`step \(n=1\) at .*LINE:STEP`, `= 1`, `executing new program`, `#\d .*main .*LINE:END`, `step \(n=10\) at .*LINE:STEP`, `= 10`,
	})...)
	// What cannot be told of an execve stays in the last program.
	out = gdb(t, addr, "set remote exec-event-feature-packet off", "disconnect", "target remote "+addr, "delete", "reverse-continue", "monitor seek 0:0", "info proc")
	expect(t, out, `No more reverse-execution history`, `executes another program on the way`, `become a b'|become`)
	if strings.Contains(out, "executing new program") {
		t.Errorf("gdb is told of an execve that it does not want to know of:\n%s", out)
	}
	// Each program is listed once.
	r, err := checkpoint.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := len(r.Images()); n != 4 {
		t.Errorf("%d images, want 4", n)
	}
}
