package e2e

import (
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

// Front ends of gdb that people use in a terminal, each as its package has it: gdb's own
// full screen, cgdb and Vim's termdebug in tmux, and Emacs' gdb-mi without a screen. Each
// goes to the crash, to a breakpoint, back over it, and looks at a variable.

// terminal is a program in a terminal of its own.
type terminal struct {
	t      *testing.T
	socket string
}

// newTerminal starts a command in tmux. Its home is a folder of the test's.
func newTerminal(t *testing.T, command ...string) *terminal {
	t.Helper()
	need.Program(t, "tmux")
	home := t.TempDir()
	dir, err := os.MkdirTemp("", "vplay") // a socket's path is short (unix(7))
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t, filepath.Join(dir, "s")}
	quoted := make([]string, len(command))
	for i, c := range command {
		quoted[i] = "'" + strings.ReplaceAll(c, "'", `'\''`) + "'"
	}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", term.socket, "kill-server").Run() // it may have ended
		_ = os.RemoveAll(dir)
	})
	term.tmux("new-session", "-d", "-x", "110", "-y", "60", "env HOME="+home+" LC_ALL=C.UTF-8 TERM=screen "+strings.Join(quoted, " "))
	return term
}

func (x *terminal) tmux(args ...string) string {
	x.t.Helper()
	out, err := exec.CommandContext(limited(x.t, 20*time.Second), "tmux", append([]string{"-S", x.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// types sends a line.
func (x *terminal) types(line string) {
	x.t.Helper()
	x.tmux("send-keys", "-l", line)
	x.tmux("send-keys", "Enter")
}

// shows waits until the screen has something.
func (x *terminal) shows(pattern string) {
	x.t.Helper()
	if !x.showsWithin(90*time.Second, pattern) {
		x.t.Fatalf("the screen does not show %s but\n%s", pattern, x.tmux("capture-pane", "-p"))
	}
}

// showsWithin reports whether the screen has something before d is over.
func (x *terminal) showsWithin(d time.Duration, pattern string) bool {
	x.t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if re.MatchString(x.tmux("capture-pane", "-p")) {
			return true
		}
	}
	return false
}

// version logs the first line of what a program says of its version.
func version(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	t.Logf("%s: %s", name, line)
}

// gdbWords are what every one of these gets on gdb's command line.
var gdbWords = []string{"-q", "-nx", "-iex", "set debuginfod enabled off", "-ex", "set confirm off", "-ex", "set pagination off", "-ex", "set style enabled off"}

// walk goes to a breakpoint, back over it, and looks; arrow is how the front end marks a
// line of the source.
func (x *terminal) walk(g *guest, arrow func(line int) string) {
	x.t.Helper()
	x.shows(`in sum \(a=0x`)
	x.shows(arrow(g.line(x.t, "CRASH")))
	x.types("break deposit")
	x.shows(`Breakpoint 1 at 0x`)
	x.types("reverse-continue")
	x.shows(`Breakpoint 1, deposit \(a=0x\w+ <accounts\+24>, amount=49\)`)
	x.shows(arrow(g.line(x.t, "DEPOSIT")))
	x.types("reverse-continue")
	x.shows(`Breakpoint 1, deposit \(a=0x\w+ <accounts>, amount=48\)`)
	x.types("next")
	x.shows(arrow(g.line(x.t, "BALANCE")))
	x.types("reverse-step")
	x.shows(arrow(g.line(x.t, "DEPOSIT")))
	x.types("print amount")
	x.shows(`\$1 = 48`)
}

// ledgerServer records the ledger and serves it to gdb.
func ledgerServer(t *testing.T) (g *guest, addr string) {
	t.Helper()
	need.Program(t, "gdb")
	g = compile(t, "ledger", "-O0")
	rec := g.record(t)
	return g, serve(t, rec, "--symbols", g.dir+"/symbols")
}

func TestGDBFullScreen(t *testing.T) {
	g, addr := ledgerServer(t)
	version(t, "gdb", "--version")
	x := newTerminal(t, append(append([]string{"gdb", "-tui"}, gdbWords...), "-ex", "target remote "+addr)...)
	x.walk(g, func(line int) string { return fmt.Sprintf(`│\S* *> +%d\s`, line) })
	x.types("layout regs")
	x.types("next") // gdb shows no registers before it stops again
	x.shows(`rax +0x`)
	x.types("layout asm")
	x.types("stepi") // nor where it is in the assembly
	x.shows(`> *0x\w+ <deposit\+\d+>`)
}

func TestCGDB(t *testing.T) {
	need.Program(t, "cgdb")
	g, addr := ledgerServer(t)
	version(t, "dpkg-query", "-W", "cgdb")
	x := newTerminal(t, append(append([]string{"cgdb", "-d", "gdb", "--"}, gdbWords...), "-ex", "target remote "+addr)...)
	x.walk(g, func(line int) string { return fmt.Sprintf(`(?m)^ *%d(├─*>|->)`, line) })
}

func TestTermdebug(t *testing.T) {
	need.Program(t, "vim")
	g, addr := ledgerServer(t)
	version(t, "vim", "--version")
	words := `"gdb"`
	for _, w := range gdbWords {
		words += `,"` + w + `"`
	}
	source, err := filepath.Abs(filepath.Join("..", "guest", "ledger.c"))
	if err != nil {
		t.Fatal(err)
	}
	x := newTerminal(t, "vim", "-Nu", "NONE", "-n", "-c", "packadd termdebug", "-c", "let g:termdebugger=["+words+"]", "-c", "set statusline=AT:%l", "-c", "hi clear", "-c", "edit "+source, "-c", "Termdebug")
	x.shows(`New UI allocated`)
	x.types("target remote " + addr)
	x.walk(g, func(line int) string { return fmt.Sprintf(`AT:%d\b`, line) })
	for range 9 { // on a busy machine it forgets one that comes while it is at the line still
		x.tmux("send-keys", "C-w")
		x.types(":Evaluate amount")
		if x.showsWithin(10*time.Second, `"amount": 48`) {
			return
		}
	}
	x.shows(`"amount": 48`)
}

// emacsScript walks like the others, and prints what Emacs knows then.
const emacsScript = `
(require 'gdb-mi)
(setq gdb-show-main nil gdb-many-windows nil)
(defun said () (with-current-buffer gud-comint-buffer (buffer-substring-no-properties (point-min) (point-max))))
(defun until (seen)
  (let ((end (+ (float-time) 90)))
    (while (not (funcall seen))
      (accept-process-output nil 0.05)
      (when (> (float-time) end) (princ (format "not seen: %S\n%s" seen (said))) (kill-emacs 1)))))
(defun wait (re) (until (lambda () (string-match-p re (said)))))
(defun ask (line re) (gud-basic-call line) (wait re))
(defvar checked nil) ; Emacs asks for non-stop mode, and takes that back when gdb has no asynchronous target, by commands of its own
(advice-add 'gdb-check-target-async :after (lambda (&rest _) (setq checked t)))
(gdb "gdb -i=mi WORDS")
(wait "(gdb) ")
(until (lambda () checked))
(ask "echo settled\\n" "settled")
(ask "target remote ADDRESS" "in sum (a=0x")
(ask "break deposit" "Breakpoint 1 at")
(ask "reverse-continue" "Breakpoint 1, deposit (.*amount=49)")
(ask "reverse-continue" "Breakpoint 1, deposit (.*amount=48)")
(ask "print amount" "\\$1 = 48")
(until (lambda () (and gdb-breakpoints-list (equal (cdr gud-last-last-frame) LINE)))) ; it asks gdb for both by itself
(princ (format "emacs %s at %s:%s, %d breakpoint\n" emacs-version (file-name-nondirectory (car gud-last-last-frame)) (cdr gud-last-last-frame) (length gdb-breakpoints-list)))
(kill-emacs 0)
`

func TestEmacs(t *testing.T) {
	need.Program(t, "emacs")
	g, addr := ledgerServer(t)
	words := strings.Join([]string{"-q", "-nx", "-iex", `\"set debuginfod enabled off\"`, "-ex", `\"set style enabled off\"`}, " ")
	script := filepath.Join(t.TempDir(), "walk.el")
	text := strings.NewReplacer("WORDS", words, "ADDRESS", addr, "LINE", strconv.Itoa(g.line(t, "DEPOSIT"))).Replace(emacsScript)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(limited(t, 5*time.Minute), "emacs", "-Q", "--batch", "-l", script)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("emacs: %v\n%s", err, out)
	}
	want := fmt.Sprintf(` at ledger\.c:%d, 1 breakpoint`, g.line(t, "DEPOSIT"))
	m := regexp.MustCompile(`(?m)^emacs .*$`).FindString(string(out))
	if t.Log(m); !regexp.MustCompile(want).MatchString(m) {
		t.Errorf("emacs ends with %q, want %s\n%s", m, want, out)
	}
}
