package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	realgdb "vplay/tests/gdb"
)

// Scripts inside a session: vplay run and monitor run in gdb, and run in an editor's console.

const countScript = `
seen = []
def on_both(m):
    seen.append(m.position)
    print("both", m.position, args)
def finish(m):
    row(calls=len(seen), text="%d calls" % len(seen))
on_call("both", on_both)
on_end(finish)
`

// TestRunInGDB runs scripts of vplayd and of a file, goes to a position that one has printed, and makes mistakes.
func TestRunInGDB(t *testing.T) {
	t.Parallel()
	g := compile(t, "locks", "-O0", "-pthread")
	g.args = []string{"order-two"}
	addr := serve(t, g.record(t, "--keep", "always"), "--symbols", g.dir+"/symbols")
	file := scriptFile(t, countScript)
	out := gdb(t, addr, loadCommands, "vplay seek 50%", "vplay when", "vplay run locks", "vplay run "+file+" x y", "vplay run --json "+file, "vplay when", "monitor run locks",
		"vplay run "+scriptFile(t, "print('first')\nfail('no good')"), "vplay run nothing", "vplay run /nothing.star", "monitor run --text !", "monitor run",
		"python answer = gdb.execute('vplay run locks', to_string=True)", `python gdb.execute('vplay seek ' + re.search(r'and takes \w+ at (\S+)', answer).group(1))`, "frame function both", "info line")
	expect(t, out, places(t, g, "locks", []string{
		`^lock order: 2 locks`, `holds two since \d+:\d+\.\d+  both\+0x\w+ in locks`, `^0 races, 1 lock orders`,
		`^both \d+:\d+\.\d+ \["x", "y"\]`, `^both \d+:\d+\.\d+ \["x", "y"\]`, `^2 calls`, `^{"recording":".*","calls":2,"text":"2 calls"}`,
		`^lock order: 2 locks`, `^0 races, 1 lock orders`, `^first`, `test\.star:2:5: no good`, `there is no script nothing; vplayd has .*locks`, `No such file.*nothing\.star`,
		`error: a piece of a script is in base64`, `error: say which script`,
	})...)
	when := regexp.MustCompile(`(?m)^\d+:\d+\.\d+$`).FindAllString(out, -1)
	if len(when) != 2 || when[0] != when[1] {
		t.Errorf("a script has moved the session: %v", when)
	}
	if want := g.placed(t, "ORDER second"); !strings.Contains(out, `"`) || !regexp.MustCompile(`Line `+strings.TrimPrefix(want, "locks.c:")+` of ".*locks\.c"`).MatchString(out) {
		t.Errorf("a position of the script is not at %s:\n%s", want, out)
	}
}

// TestRunInterrupted ends a script that never ends by Ctrl-C, what it has printed being shown before, and the session goes on.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	_, addr := tour(t)
	m := realgdb.StartMI(t)
	m.Say("-target-select remote "+addr, `\*stopped`)
	m.Say(fmt.Sprintf("-interpreter-exec console %q", loadCommands), `\^done`)
	m.Send(fmt.Sprintf("-interpreter-exec console %q", "vplay run "+scriptFile(t, "print('begun')\nwhile True:\n    pass\n")))
	m.Say("", `begun`)
	start := time.Now()
	m.Signal(syscall.SIGINT)
	m.Say("", `\^(error|done)`)
	m.Say("-data-evaluate-expression 40+2", `value="42"`)
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("the interrupt took %v", d)
	}
	m.Say(`-interpreter-exec console "vplay when"`, `\d+:\d+\.\d+`)
}

// TestRunInConsole: an editor's console runs the scripts of vplayd, and opens no files.
func TestRunInConsole(t *testing.T) {
	_, c := startDAP(t, "-O0")
	c.wants("the crash", c.connect(), "exception ")
	if got := c.repl(0, "run strace openat"); !strings.Contains(got, "openat(") {
		t.Errorf("strace printed %s", got)
	}
	if got := c.repl(0, "run "+scriptFile(t, countScript)); !strings.HasPrefix(got, "error: there is no script") {
		t.Errorf("a file: %s", got)
	}
}
