//go:build linux && amd64

package record

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

// Transparency: a program must not find out that it is recorded. python3's
// tests of signals, processes, memory maps and POSIX calls look at everything
// such a program could see; bash exercises job control and traps.

// pythonTests are modules and classes of package test. CI runs a part; with
// -transparency the modules are run whole.
var pythonTests = []struct {
	name string
	ci   bool
	only string // of these tests, as unittest's option -k has them; empty: all
}{
	{"test_mmap", true, ""},
	{"test_posix", true, ""},
	{"test_fork1", true, ""},
	{"test_signal.PosixTests", true, ""},
	{"test_signal.WakeupFDTests", true, ""},
	{"test_signal.PendingSignalsTests", true, ""},
	{"test_signal", false, ""},
	{"test_subprocess.POSIXProcessTestCase", true, "close_fds_after exception kill pass_fds_inheritable pipe_cloexec_real preexec restore_signals " +
		"run_abort send_signal shell_string start_new_session stopped swap_fds wait_when zombie"}, // each starts python3 a few times
	{"test_subprocess", false, ""},
}

var transparencyModes = []struct {
	name string
	opt  recorder.Options
}{
	{"plain", recorder.Options{}},
	{"10ms", recorder.Options{Interval: 10 * time.Millisecond}},
}

// TestPython runs python3's own tests natively and recorded, and verifies every
// interval.
func TestPython(t *testing.T) {
	python := need.Python(t)
	_, err := output(python, "-c", "import test.test_signal")
	need.Installed(t, "python3's own tests (libpython3-testsuite)", err == nil)
	for _, c := range pythonTests {
		if *transparency && strings.Contains(c.name, ".") || !*transparency && !c.ci {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := run{args: []string{python, "-m", "unittest", "-v"}, dir: t.TempDir()}
			for _, name := range strings.Fields(c.only) {
				r.args = append(r.args, "-k", name)
			}
			r.args = append(r.args, "test."+c.name)
			want := r.native(t)
			for _, m := range transparencyModes {
				if m.opt.Interval == 0 && !*transparency {
					continue
				}
				r.opt, r.dir = m.opt, t.TempDir()
				got, res := r.recorded(t)
				compareCases(t, m.name, got, want)
				if !res.Recorded {
					t.Errorf("%s: nothing recorded: %s", m.name, res.Reason)
					continue
				}
				t.Logf("%s: %v %s", m.name, verify(t, res.Path), res.Reason)
			}
		})
	}
}

var (
	// caseLine is a test's line of unittest -v. What a test prints may stand
	// between its name and its result.
	caseLine = regexp.MustCompile(`(?m)^(test\w+ \([\w.]+\)).*? \.\.\. `)
	// lineNumbers is what bash says of a killed child, with its process number.
	lineNumbers = regexp.MustCompile(`(: line \d+): +\d+`)
	verdict     = regexp.MustCompile(`(?m)\b(ok|FAIL|ERROR|skipped '.*'|expected failure)$`)
)

// cases returns each test's result, sorted.
func cases(out string) []string {
	if i := strings.Index(out, "\n======="); i >= 0 {
		out = out[:i]
	}
	var list []string
	at := caseLine.FindAllStringSubmatchIndex(out, -1)
	for i, m := range at {
		end := len(out)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		list = append(list, out[m[2]:m[3]]+" "+verdict.FindString(out[m[1]:end]))
	}
	slices.Sort(list)
	return list
}

func compareCases(t *testing.T, mode string, got, want outcome) {
	t.Helper()
	g, w := cases(got.out), cases(want.out)
	if len(w) == 0 {
		t.Fatalf("no test was run: %s", tail(want.out))
	}
	for _, l := range g {
		if !slices.Contains(w, l) {
			t.Errorf("%s: only recorded: %s", mode, l)
		}
	}
	for _, l := range w {
		if !slices.Contains(g, l) {
			t.Errorf("%s: only native: %s", mode, l)
		}
	}
	if got.code != want.code || got.sig != want.sig {
		t.Errorf("%s: recorded: code %d signal %d, native: code %d signal %d\n%s", mode, got.code, got.sig, want.code, want.sig, tail(got.out))
	}
	t.Logf("%s: %d tests with the same results", mode, len(w))
}

// TestBash runs scripts with jobs and traps.
func TestBash(t *testing.T) {
	bash := need.Program(t, "bash", "ps")
	for _, script := range []string{"jobs.sh", "traps.sh"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			path, err := filepath.Abs(filepath.Join("testdata", script))
			if err != nil {
				t.Fatal(err)
			}
			r := run{args: []string{bash, path}, dir: t.TempDir()}
			want := r.native(t)
			for _, m := range transparencyModes {
				r.opt = m.opt
				got, res := r.recorded(t)
				got.out, want.out = lineNumbers.ReplaceAllString(got.out, "$1: PID"), lineNumbers.ReplaceAllString(want.out, "$1: PID")
				same(t, got, want)
				if !res.Recorded {
					t.Fatalf("nothing recorded: %s", res.Reason)
				}
				t.Logf("%s: %v", m.name, verify(t, res.Path))
			}
		})
	}
}
