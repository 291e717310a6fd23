package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Where a bad run went wrong, on programs whose fault is known: tests/guest/deviate. Each has two good inputs and
// a bad one, and a line marked with the function of the fault.

// allPrograms has the tests of analyses take all of their programs.
var allPrograms = flag.Bool("analyses", false, "take all programs of the tests of deviate and of the scripts heap, locks and uninit, for minutes")

// deviating are the programs. The first ones are taken without -analyses, and their fault is found in each.
var deviating = []string{"timers", "shapes", "calc", "image", "ini", "macros", "options", "orders", "packets", "request"}

// chosen returns the programs that are taken, and in how many of them the fault must be found, of all in so many.
func chosen(ofAll int) (names []string, least int) {
	if *allPrograms {
		return deviating, ofAll
	}
	return deviating[:2], 2
}

var faultMark = regexp.MustCompile(`// fault: (\w+)`)

// pair is a program of the folder, compiled, and its runs.
type pair struct {
	name, dir, fault string
	good             []string
	bad              string
}

// recordPair compiles and records a program; change, when not nil, makes another version of its source.
func recordPair(t *testing.T, name string, change func(string) string, inputs ...string) *pair {
	t.Helper()
	g := compile(t, "deviate/"+name)
	p := &pair{name: name, dir: g.dir}
	m := faultMark.FindStringSubmatch(strings.Join(g.source, "\n"))
	if m == nil {
		t.Fatalf("%s has no fault", name)
	}
	p.fault = m[1]
	if change != nil {
		src := filepath.Join(g.dir, name+".c")
		if err := os.WriteFile(src, []byte(change(strings.Join(g.source, "\n"))), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("gcc", "-g", "-w", "-I", filepath.Join("..", "guest", "deviate"), "-o", g.bin, src).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, in := range inputs {
		text, err := os.ReadFile(filepath.Join("..", "guest", "deviate", name+"."+in))
		if err != nil {
			t.Fatal(err)
		}
		input := name + "." + in // a relative name: the program prints it
		if err := os.WriteFile(filepath.Join(g.dir, input), text, 0o644); err != nil {
			t.Fatal(err)
		}
		rec := filepath.Join(g.dir, in+".vplay")
		cmd := exec.Command(vplayd, "record", "-q", "--keep", "always", "--slim", "never", "-o", rec, "--", g.bin, input)
		cmd.Dir = g.dir
		out, err := cmd.CombinedOutput()
		if (err == nil) != strings.HasPrefix(in, "good") {
			t.Fatalf("%s with the input %s: %v\n%s", name, in, err, out)
		}
		if in == "bad" {
			p.bad = rec
		} else {
			p.good = append(p.good, rec)
		}
	}
	return p
}

// deviation is what vplayd deviate --json prints of one.
type deviation struct {
	Kind      string
	Bad, Good struct {
		Position, Decided string
		At, To            struct{ Function, File string }
		Values            []struct{ Name, Value, Origin string }
	}
	Window uint64
}

// deviate runs vplayd deviate, with symbols from some folders alone unless that is nil, and returns the deviations, and the function of the first difference of all.
func deviate(t *testing.T, symbols []string, args ...string) (list []deviation, first string) {
	t.Helper()
	all := []string{"deviate", "--json"}
	if symbols != nil { // else the files of this machine
		all = append(all, "--no-local-files")
	}
	for _, s := range symbols {
		all = append(all, "--symbols", s)
	}
	out, err := exec.CommandContext(t.Context(), vplayd, append(all, args...)...).Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	var r struct {
		Deviations []deviation
		First      struct{ At struct{ Function string } }
	}
	if err := json.Unmarshal(out, &r); err != nil || len(r.Deviations) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	return r.Deviations, r.First.At.Function
}

// TestDeviateAbort: where a library has ended the program, what goes wrong in its functions that no good run has called is not told,
// also where the library's lines are known.
func TestDeviateAbort(t *testing.T) {
	t.Parallel()
	p := recordPair(t, "stock", nil, "good", "bad")
	list, _ := deviate(t, nil, "-n", "100", p.good[0], p.bad)
	for _, d := range list {
		if f := d.Bad.At.Function; d.Kind == "fault" {
			continue // the signal itself is in one
		} else if strings.HasPrefix(f, "__pthread_kill") || f == "abort" || f == "__libc_message" || f == "raise" {
			t.Errorf("there is a %s in %s", d.Kind, f)
		}
	}
}

// TestDeviateFindsTheFault: the first deviation is in the function of the fault, of one build.
func TestDeviateFindsTheFault(t *testing.T) {
	t.Parallel()
	found, simple := 0, 0
	names, least := chosen(8)
	for _, name := range names {
		p := recordPair(t, name, nil, "good", "good2", "bad")
		list, first := deviate(t, []string{p.dir}, append(p.good, p.bad)...)
		d := list[0]
		t.Logf("%s: %s in %s, want %s; the first difference is in %s", name, d.Kind, d.Bad.At.Function, p.fault, first)
		if first == p.fault {
			simple++
		}
		if d.Bad.At.Function == p.fault {
			found++
		}
		if d.Good.Position == "" || len(d.Bad.Values) == 0 && d.Kind != "depth" || d.Window == 0 {
			t.Errorf("%s: it is not told what was where: %+v", name, d)
		}
	}
	if found < least {
		t.Errorf("the fault was found in %d programs of %d", found, len(names))
	}
	if simple > 2 {
		t.Errorf("the first difference is the fault in %d programs: they prove nothing", simple)
	}
}

// otherVersion adds lines and functions to a program, and a statement to main.
func otherVersion(src string) string {
	var out []string
	n := 0
	for l := range strings.SplitSeq(src, "\n") {
		if out = append(out, l); l != "}" {
			continue
		}
		n++
		for range n%3 + 1 {
			out = append(out, "", "// This version has more to say.")
		}
		out = append(out, fmt.Sprintf("static int extra%d(int n) {", n), "\treturn n + 1;", "}")
	}
	const begin = "\tchar *rest = load(argc, argv)"
	return strings.Replace(strings.Join(out, "\n"), begin, "\tprintf(\"version %d\\n\", extra1(argc));\n"+begin, 1)
}

// TestDeviateAcrossBuilds: good runs of another version of the source, whose lines have moved.
func TestDeviateAcrossBuilds(t *testing.T) {
	t.Parallel()
	found := 0
	names, least := chosen(6)
	for _, name := range names {
		old := recordPair(t, name, otherVersion, "good", "good2")
		p := recordPair(t, name, nil, "bad")
		list, _ := deviate(t, []string{old.dir, p.dir}, append(old.good, p.bad)...)
		d := list[0]
		t.Logf("%s: %s in %s, want %s", name, d.Kind, d.Bad.At.Function, p.fault)
		if d.Bad.At.Function == p.fault {
			found++
		}
	}
	if found < least {
		t.Errorf("the fault was found in %d programs of %d", found, len(names))
	}
}

// TestDeviateRefuses: what cannot be compared is an error with a hint, and the forms of the answer agree.
func TestDeviateRefuses(t *testing.T) {
	t.Parallel()
	p := recordPair(t, "timers", nil, "good", "good2", "bad")
	for _, k := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{p.good[0], p.good[1]}, 2, "the bad run did not crash"},
		{[]string{p.bad}, 2, "requires at least 2"},
		{[]string{p.good[0], p.bad, "-n", "0"}, 2, "1 to"},
		{[]string{p.good[0], p.bad, "--at", "9:1"}, 2, "--at takes a position"},
		{[]string{p.good[0], p.bad, "--expr", "nosuch"}, 1, "nosuch"},
		{[]string{p.good[0], p.dir}, 4, "not a vplay recording"},
	} {
		cmd := exec.CommandContext(t.Context(), vplayd, append([]string{"deviate", "--no-local-files", "--symbols", p.dir}, k.args...)...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != k.code || !strings.Contains(string(out), k.want) || !strings.Contains(string(out), "vplayd: hint: ") {
			t.Errorf("%v: exit code %d, want %d\n%s", k.args, code, k.code, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), vplayd, "deviate", "--no-local-files", "--symbols", p.dir, p.good[0], p.good[1], p.bad).CombinedOutput()
	for _, want := range []string{`^scale, timers\.c:\d+: a branch went where no good run went\n`, `\n  bad   0:\d+\.\d+ .*\(.*bad\.vplay\)\n`, `\n  good  0:\d+\.\d+ `, ` = .* from #\d+`, `difference over time  \|.{60}\|`, `instructions from there to the fault`} {
		if err != nil || !regexp.MustCompile(want).Match(out) {
			t.Errorf("%v: there is no %s in\n%s", err, want, out)
		}
	}
}
