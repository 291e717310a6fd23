package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	realgdb "vplay/tests/gdb"
	"vplay/tests/need"
)

// Recordings of Go programs: vplayd goroutines, and Delve, which debugs them by "dlv
// replay" and whose list of goroutines is what ours is compared with.

// dlv is Delve, and what it needs to start vplayd as rr.
type dlv struct {
	bin  string
	path string // PATH with vplayd under rr's name
	dir  string
}

// newDlv builds dlv from the module that go.mod names.
func newDlv(t *testing.T) *dlv {
	t.Helper()
	d := &dlv{dir: t.TempDir()}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/go-delve/delve").Output()
	need.Installed(t, "the source of dlv", err == nil)
	d.bin = filepath.Join(d.dir, "dlv")
	out, err := exec.Command("go", "build", "-C", strings.TrimSpace(string(module)), "-o", d.bin, "./cmd/dlv").CombinedOutput()
	if err != nil {
		t.Logf("go build: %v\n%s", err, out)
	}
	need.Machine(t, "the modules that dlv is made of", err == nil)
	bin := filepath.Join(d.dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(vplayd, filepath.Join(bin, "rr")); err != nil {
		t.Fatal(err)
	}
	d.path = bin + string(os.PathListSeparator) + os.Getenv("PATH")
	return d
}

// paranoid is what dlv looks at before it starts rr, which needs performance counters
// where vplay needs none.
const paranoid = "/proc/sys/kernel/perf_event_paranoid"

var separator = regexp.MustCompile(`(?m)^.*script:\d+: command not available\n`)

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// run runs dlv's commands on a recording, or on what else the arguments say. It returns
// what dlv prints between the commands: one text for each.
func (d *dlv) run(t *testing.T, args, commands []string) []string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "script")
	var b strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&b, "%s\nseparator\n", c) // no command of dlv's
	}
	if err := os.WriteFile(script, []byte(b.String()+"exit\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{d.bin, args[0], "--init", script, "--allow-non-terminal-interactive=true", "--check-go-version=false"}, args[1:]...)
	if v, err := os.ReadFile(paranoid); err == nil && strings.TrimSpace(string(v)) > "1" {
		one := filepath.Join(d.dir, "one")
		if err := os.WriteFile(one, []byte("1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		need.Program(t, "mount")
		args = append([]string{need.Program(t, "unshare"), "-rm", "sh", "-c", `mount --bind "$0" ` + paranoid + ` && exec "$@"`, one}, args...)
	}
	cmd := exec.CommandContext(limited(t, 90*time.Second), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+d.dir, "TMPDIR="+d.dir, "PATH="+d.path)
	cmd.Dir, cmd.WaitDelay = d.dir, 5*time.Second
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "unshare failed") || strings.Contains(string(out), "mount: ") {
		need.Machine(t, paranoid+" of at most 1, or a mount namespace", false)
	}
	if err != nil {
		t.Fatalf("dlv: %v\n%s", err, out)
	}
	parts := separator.Split(colours.ReplaceAllString(string(out), ""), -1)
	if len(parts) != len(commands)+1 {
		t.Fatalf("dlv has answered %d of %d commands:\n%s", len(parts)-1, len(commands), out)
	}
	return parts[:len(commands)]
}

// goGuest compiles the Go program of testdata/goroutines, which ends by what its argument says.
func goGuest(t *testing.T, gcflags, end string) *guest {
	t.Helper()
	need.Recorder(t)
	src := filepath.Join("testdata", "goroutines", "main.go")
	text, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{name: "goroutines", dir: t.TempDir(), source: strings.Split(string(text), "\n"), args: []string{end}}
	g.bin = filepath.Join(g.dir, g.name)
	if out, err := exec.Command("go", "build", "-gcflags", gcflags, "-o", g.bin, src).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return g
}

// goFlags are the ways in which the program is compiled.
var goFlags = map[string]string{"optimized": "", "plain": "all=-N -l"}

// goroutine is one as both tell of it.
type goroutine struct {
	id      uint64
	thread  string
	reason  string
	user    string
	created string
	labels  string
	stack   []string // function file:line
}

// ourGoroutines is what vplayd goroutines says at a position.
func ourGoroutines(t *testing.T, rec, symbols, at string) map[uint64]goroutine {
	t.Helper()
	type place struct {
		Function, File string
		Line           int
	}
	out := map[uint64]goroutine{}
	text := func(p place) string { return fmt.Sprintf("%s %s:%d", p.Function, filepath.Base(p.File), p.Line) }
	for d := json.NewDecoder(strings.NewReader(vplaydOutput(t, "goroutines", "--json", "-t", "--at", at, "--symbols", symbols, rec))); d.More(); {
		var in struct {
			ID            uint64
			Thread        int
			WaitReason    string `json:"wait_reason"`
			Status        string
			User, Created place
			Stack         []place
			Labels        []struct{ Key, Value string }
			Problem       string
		}
		if err := d.Decode(&in); err != nil {
			t.Fatal(err)
		}
		if in.Problem != "" {
			t.Errorf("goroutine %d: %s", in.ID, in.Problem)
		}
		g := goroutine{id: in.ID, reason: in.WaitReason, user: text(in.User), created: text(in.Created)}
		if in.Thread != 0 {
			g.thread = strconv.Itoa(in.Thread)
		}
		var labels []string
		for _, l := range in.Labels {
			labels = append(labels, fmt.Sprintf("%q:%q", l.Key, l.Value))
		}
		g.labels = strings.Join(labels, ", ")
		for _, p := range in.Stack {
			g.stack = append(g.stack, text(p))
		}
		out[g.id] = g
	}
	return out
}

func vplaydOutput(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(limited(t, 60*time.Second), vplayd, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("vplayd %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out)
}

// goroutineCommands are what dlv is asked for a list: the places of the go statements, and
// the user's with labels and stacks.
var goroutineCommands = []string{"goroutines -g", "goroutines -u -l -t 64"}

var (
	delveGoroutine = regexp.MustCompile(`^[* ] Goroutine (\d+) - \w+: (.*?) \(0x[0-9a-f]+\)(?: \(thread (\d+)\))?(?: \[(.*)\])?$`)
	delveFrame     = regexp.MustCompile(`^\t\d+  0x[0-9a-f]+ in (.*)$`)
	delvePlace     = regexp.MustCompile(`^\t +at (.*)$`)
)

// delveGoroutines reads what dlv answers to goroutineCommands.
func delveGoroutines(t *testing.T, answers []string) map[uint64]goroutine {
	t.Helper()
	out := map[uint64]goroutine{}
	place := func(s string) string { // FILE:LINE FUNCTION
		file, function, _ := strings.Cut(s, " ")
		return function + " " + filepath.Base(file)
	}
	for i, answer := range answers {
		var last uint64
		for line := range strings.Lines(answer) {
			line = strings.TrimRight(line, "\n")
			if m := delveGoroutine.FindStringSubmatch(line); m != nil {
				last, _ = strconv.ParseUint(m[1], 10, 64)
				g := out[last]
				g.id, g.thread = last, m[3]
				if g.reason, _, _ = strings.Cut(m[4], "]"); g.reason != "" {
					g.reason = regexp.MustCompile(` \d+$`).ReplaceAllString(g.reason, "") // how long
				}
				if i == 0 {
					g.created = place(m[2])
				} else {
					g.user = place(m[2])
				}
				out[last] = g
				continue
			}
			g := out[last]
			if m := delveFrame.FindStringSubmatch(line); m != nil {
				g.stack = append(g.stack, m[1])
			} else if m := delvePlace.FindStringSubmatch(line); m != nil && len(g.stack) > 0 {
				g.stack[len(g.stack)-1] += " " + filepath.Base(m[1])
			} else if _, labels, ok := strings.Cut(line, "Labels: "); ok {
				g.labels = labels
			}
			out[last] = g
		}
	}
	delete(out, 0)
	return out
}

// TestGoroutinesAgainstDelve compares vplayd goroutines with what dlv says of the same
// moments: at a breakpoint, at the program's end, and in between.
func TestGoroutinesAgainstDelve(t *testing.T) {
	d := newDlv(t)
	for name, gcflags := range goFlags {
		for _, end := range []string{"panic", "nil", "deadlock"} {
			t.Run(name+" "+end, func(t *testing.T) {
				g := goGuest(t, gcflags, end)
				rec := g.record(t, "--keep", "always")
				symbols := filepath.Join(g.dir, "symbols")
				t.Setenv("DELVE_RR_REPLAY_FLAGS", "--symbols "+symbols)
				commands := []string{"continue"}
				commands = append(commands, goroutineCommands...)
				if end != "deadlock" {
					commands = append([]string{"break main.ready", "continue"}, append(slices.Clone(goroutineCommands), commands...)...)
				}
				answers := d.run(t, []string{"replay", rec}, commands)
				for i := range commands {
					if commands[i] != "continue" {
						continue
					}
					at := delveEvent.FindStringSubmatch(answers[i])
					if at == nil {
						t.Fatalf("dlv has not stopped:\n%s", strings.Join(answers, "\n"))
					}
					compareGoroutines(t, at[1], gcflags != "", ourGoroutines(t, rec, symbols, at[1]), delveGoroutines(t, answers[i+1:i+3]))
				}
			})
		}
	}
}

var delveEvent = regexp.MustCompile(`Current event: (\d+:\d+\.\d+)`)

// compareGoroutines compares two lists. Where a function is inlined, dlv names the one
// that it is inlined into as the user's place; stacks have both.
func compareGoroutines(t *testing.T, at string, plain bool, ours, theirs map[uint64]goroutine) {
	t.Helper()
	if len(theirs) < 15 || len(ours) != len(theirs) {
		t.Errorf("%s: %d goroutines, dlv has %d", at, len(ours), len(theirs))
	}
	for id, want := range theirs {
		got, ok := ours[id]
		if !plain {
			got.user = want.user
		}
		if !ok || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n%+v\ndlv has\n%+v", at, got, want)
		}
	}
}

// delveStep is a command for dlv, and what its answer must have.
type delveStep struct{ command, want string }

// TestDelveReplay debugs recordings with dlv as its user does: forwards and backwards,
// with breakpoints, watchpoints, checkpoints and calls.
func TestDelveReplay(t *testing.T) {
	d := newDlv(t)
	for name, gcflags := range goFlags {
		t.Run(name, func(t *testing.T) {
			g := goGuest(t, gcflags, "panic")
			rec := g.record(t, "--keep", "always")
			t.Setenv("DELVE_RR_REPLAY_FLAGS", "--symbols "+filepath.Join(g.dir, "symbols"))
			add, store := g.line(t, "ADD"), g.line(t, "STORE")
			steps := []delveStep{
				{"break main.add", `Breakpoint 1 set at .* for main\.add\(\)`},
				{"continue", `\[Breakpoint 1\] main\.add\(\) .*total:1\)`},
				{"print n", `^0\n`},
				{"checkpoint first", `Checkpoint c1 created`},
				{"continue", `total:2\)`},
				{"print n", `^1\n`},
				{"stack", `(?s)main\.add.*main\.worker.*runtime\.goexit`},
				{"print main.total", `^0\n`},
				{fmt.Sprintf("break main.go:%d", add), `Breakpoint 2 set`},
				{"continue", fmt.Sprintf(`\[Breakpoint 2\] main\.add\(\) \S*main\.go:%d`, add)},
				{"print main.total", `^0\n`},
				{"next", fmt.Sprintf(`main\.add\(\) \S*main\.go:(%d|%d)`, add+1, add+2)},
				{"print main.total", `^1\n`},
				{"rev continue", fmt.Sprintf(`\[Breakpoint 2\] main\.add\(\) \S*main\.go:%d`, add)},
				{"print main.total", `^0\n`},
				{"rev step-instruction", `PC: `},
				{"step-instruction", fmt.Sprintf(`main\.add\(\) \S*main\.go:%d`, add)},
				{"clear 2", `Breakpoint 2 cleared`},
				{"checkpoints", `(?s)ID.*c1 .*first`},
				{"restart c1", `main\.add`},
				{"print n", `^0\n`},
				{"rev continue", `_rt0_amd64_linux`},
				{"continue", `\[Breakpoint 1\] main\.add`},
				{"print n", `^0\n`},
				{"clear 1", `Breakpoint 1 cleared`},
				{"continue", `(?s)\[unrecovered-panic\] runtime\.fatalpanic.*assignment to entry in nil map`},
				{"stack", fmt.Sprintf(`(?s)runtime\.gopanic.*main\.store\n +at \S*main\.go:%d.*main\.main`, store)},
				{"frame 3 print *p", `(?s)main\.item \{.*n: 0,.*name: "",`},
				{"print main.total", `^191\n`},
				{"watch -w main.total", `Watchpoint main\.total set`},
				{"rev continue", `watchpoint on \[main\.total\] main\.ready`},
				{"print main.total", `^190\n`},
				{"rev continue", fmt.Sprintf(`watchpoint on \[main\.total\] main\.add\(\) \S*main\.go:%d`, add)},
				{"print main.total", `^171\n`},
				{"clear-checkpoint c1", ``},
				{"restart c1", `no checkpoint 1`},
				{"continue", `watchpoint on \[main\.total\]`},
				{"print main.total", `^190\n`},
				{"clearall", `Watchpoint.* cleared`},
				{"continue", `unrecovered-panic`},
				{"continue", `has exited`},
				{"rewind", `unrecovered-panic`},
				{"rewind", `_rt0_amd64_linux`},
				{"restart", `_rt0_amd64_linux`},
			}
			if gcflags != "" { // dlv calls no optimized functions, and knows no inlined calls backwards
				steps = append(steps,
					delveStep{"break main.ready", `Breakpoint`}, delveStep{"continue", `main\.ready`},
					delveStep{"call main.twice(21)", `(?s)main\.ready.*~r0: 42`}, delveStep{"print main.total", `^190\n`},
					delveStep{"next", `main\.main`}, delveStep{"print main.total", `^191\n`},
					delveStep{"rev step", `main\.ready`}, delveStep{"rev stepout", `main\.main\(\) \S*main\.go`})
			}
			commands := make([]string, len(steps))
			for i := range steps {
				commands[i] = steps[i].command
			}
			answers := d.run(t, []string{"replay", rec}, commands)
			if i := slices.Index(commands, "call main.twice(21)"); i > 0 { // a call does not move the recording
				before, after := delveEvent.FindString(answers[i-1]), delveEvent.FindString(answers[i])
				if before == "" || before != after {
					t.Errorf("a call has moved from %q to %q", before, after)
				}
			}
			for i, answer := range answers {
				if want := regexp.MustCompile("(?m)" + steps[i].want); !want.MatchString(answer) {
					t.Errorf("%d: %s: no %s in\n%s", i, commands[i], want, answer)
				}
			}
		})
	}
}

// TestDelveRecords has dlv record a program itself, which it does by "rr record".
func TestDelveRecords(t *testing.T) {
	d := newDlv(t)
	g := goGuest(t, "all=-N -l", "panic")
	answers := d.run(t, []string{"exec", "--backend=rr", g.bin, "--", "panic"}, []string{"break main.store", "continue", "print total", "rev stepout"})
	for i, want := range []string{`Breakpoint 1 set`, `\[Breakpoint 1\] main\.store`, `191`, `main\.main\(\)`} {
		if !regexp.MustCompile(want).MatchString(answers[i]) {
			t.Errorf("no %s in\n%s", want, answers[i])
		}
	}
	if left, err := filepath.Glob(filepath.Join(d.dir, "vplay-*")); err != nil || len(left) > 0 {
		t.Errorf("dlv has left %v, %v", left, err)
	}
}

// TestReplayStartsDelve has vplayd start dlv, as root and as another user, without any
// preparation of the machine.
func TestReplayStartsDelve(t *testing.T) {
	d := newDlv(t)
	g := goGuest(t, "all=-N -l", "panic")
	rec := g.record(t, "--keep", "always")
	self := filepath.Join(g.dir, "vplayd") // where another user can execute it
	b, err := os.ReadFile(vplayd)
	if err == nil {
		err = os.WriteFile(self, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(g.dir, "script")
	if err := os.WriteFile(script, []byte("break main.store\ncontinue\nprint main.total\nrev stepout\nexit\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{rec: 0o644, filepath.Dir(d.dir): 0o755} { // the latter is that of g.dir, too
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	users := map[string][]string{"this user": nil}
	if os.Geteuid() == 0 {
		users["another user"] = []string{need.Program(t, "setpriv"), "--reuid", "65534", "--regid", "65534", "--clear-groups"}
	}
	for name, prefix := range users {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			for path, mode := range map[string]os.FileMode{home: 0o777, filepath.Dir(home): 0o755} {
				if err := os.Chmod(path, mode); err != nil {
					t.Fatal(err)
				}
			}
			args := append(slices.Clone(prefix), self, "replay", "-d", d.bin, "--symbols", filepath.Join(g.dir, "symbols"), rec,
				"--", "--init", script, "--allow-non-terminal-interactive=true", "--check-go-version=false")
			cmd := exec.CommandContext(limited(t, 60*time.Second), args[0], args[1:]...)
			cmd.Dir, cmd.WaitDelay = home, 5*time.Second
			cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home, "XDG_CONFIG_HOME="+home)
			out, err := cmd.CombinedOutput()
			if strings.Contains(string(out), "perf_event_paranoid to be 1") {
				need.Machine(t, paranoid+" of at most 1, or a mount namespace", false)
			}
			answer := colours.ReplaceAllString(string(out), "")
			if want := regexp.MustCompile(`(?s)\[Breakpoint 1\] main\.store.*\n191\n.*main\.main\(\)`); err != nil || !want.MatchString(answer) {
				t.Errorf("%v: no %s in\n%s", err, want, answer)
			}
			if left, err := filepath.Glob(filepath.Join(home, "vplay-*")); err != nil || len(left) > 0 {
				t.Errorf("what is left: %v, %v", left, err)
			}
		})
	}
}

// TestGoroutinesInGDB asks for them in gdb, at the end and where there are none yet.
func TestGoroutinesInGDB(t *testing.T) {
	need.Program(t, "gdb")
	g := goGuest(t, "", "panic")
	rec := g.record(t, "--keep", "always")
	addr := serve(t, rec, "--symbols", filepath.Join(g.dir, "symbols"))
	out := realgdb.Batch(t, "target remote "+addr, "python exec(gdb.execute('monitor python', to_string=True))",
		"vplay goroutines", "vplay goroutines 1", "monitor goroutines 123456", "vplay seek begin", "echo none\\n", "vplay goroutines")
	for _, want := range []string{
		`(?m)^\d+  \[waiting \(sync\.Mutex\.Lock\)\]  sync\.\(\*Mutex\)\.Lock at .*created by main\.main at .*main\.go:\d+ in goroutine 1$`,
		`labels "item":"tea" "shop":"north"`,
		`(?ms)^1  \[running on thread \d+\]  main\.store.*^ +#\d+ +main\.main at `,
		`there is no such goroutine`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if _, begin, ok := strings.Cut(out, "none\n"); !ok || strings.Contains(begin, "[running") {
		t.Errorf("at the beginning:\n%s", out)
	}
}
