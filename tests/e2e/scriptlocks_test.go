package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"
)

// The script locks: races and lock orders of programs that have them, at their lines, and nothing of programs that do not.

// recordAs records a program with arguments into a file of that name.
func recordAs(t *testing.T, rec string, program ...string) {
	t.Helper()
	cmd := exec.CommandContext(limited(t, 2*time.Minute), vplayd, append([]string{"record", "-q", "--slim", "now", "--keep", "always", "-o", rec, "--"}, program...)...)
	cmd.Dir = filepath.Dir(rec)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // it ends as the program does
	if _, err := os.Stat(rec); err != nil {
		t.Fatalf("nothing was recorded of %v: %v\n%s", program, err, out.Bytes())
	}
}

// lockRow is what the script prints with --json.
type lockRow struct {
	Kind, Text, Name string
	First, Second    struct {
		Store           bool
		Position, Place string
		Thread, Size    int
	}
	Ways []struct {
		HeldPosition  string `json:"held_position"`
		HeldPlace     string `json:"held_place"`
		TakenPosition string `json:"taken_position"`
		TakenPlace    string `json:"taken_place"`
		Thread        int
	}
	Waits []struct {
		Place     string
		HeldPlace string `json:"held_place"`
		Thread    int
		Holder    int
	}
}

// locks runs the script over a recording, and returns what it found.
func locks(t *testing.T, rec string) (rows []lockRow) {
	t.Helper()
	cmd := exec.CommandContext(limited(t, 20*time.Minute), vplayd, "run", "--json", "--memory", "2000", "locks", rec)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%.1f s of processor time", cmd.ProcessState.UserTime().Seconds()+cmd.ProcessState.SystemTime().Seconds())
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		var r lockRow
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if r.Kind != "" {
			rows = append(rows, r)
		}
	}
	return rows
}

// placed is a mark's place as the script prints it.
func (g *guest) placed(t *testing.T, mark string) string {
	return fmt.Sprintf("locks.c:%d", g.line(t, mark))
}

// TestLocksScript has each case of tests/guest/locks.c looked at.
func TestLocksScript(t *testing.T) {
	t.Parallel()
	g := compile(t, "locks", "-O0", "-pthread")
	both := []string{"ORDER first", "ORDER second"}
	for name, c := range map[string]struct {
		name  string   // of the variable, or of the locks
		marks []string // of the two accesses
		ways  int      // of a lock order
	}{
		"global": {name: "counter", marks: []string{"RACE global", "RACE global"}}, "heap": {name: "8 bytes into a block of 16 bytes", marks: []string{"RACE heap", "RACE heap"}},
		"copy": {name: "text", marks: []string{"RACE copy store", "RACE copy load"}}, "rwlock-race": {name: "guarded", marks: []string{"RACE rwlock", "RACE rwlock"}},
		"frame": {marks: []string{"RACE frame store", "RACE frame load"}}, "barrier-race": {name: "guarded", marks: []string{"RACE barrier", "RACE barrier"}},
		"order-two": {marks: both, ways: 2}, "order-three": {marks: both, ways: 3},
		"mutex": {}, "spin": {}, "atomics": {}, "futex": {}, "condition": {}, "rwlock": {}, "barrier": {}, "once": {}, "semaphore": {}, "freed": {}, "pipe": {}, "epoll": {}, "poll": {}, "vfork": {}, "order-gate": {}, "order-try": {}, "order-freed": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := filepath.Join(t.TempDir(), name+".vplay")
			recordAs(t, rec, g.bin, name)
			rows := locks(t, rec)
			if c.marks == nil {
				if len(rows) != 0 {
					t.Errorf("%s", rows[0].Text)
				}
				return
			}
			if len(rows) != 1 {
				t.Fatalf("%d rows: %+v", len(rows), rows)
			}
			r := rows[0]
			if c.ways > 0 {
				if r.Kind != "lock order" || len(r.Ways) != c.ways {
					t.Fatalf("%+v", r)
				}
				for _, w := range r.Ways {
					if !strings.HasSuffix(w.HeldPlace, g.placed(t, c.marks[0])) || !strings.HasSuffix(w.TakenPlace, g.placed(t, c.marks[1])) {
						t.Errorf("%+v", w)
					}
				}
				return
			}
			places, want := []string{r.First.Place, r.Second.Place}, []string{g.placed(t, c.marks[0]), g.placed(t, c.marks[1])}
			sort.Strings(places)
			sort.Strings(want)
			if r.Kind != "race" || !strings.Contains(r.Name, c.name) || !strings.HasSuffix(places[0], want[0]) || !strings.HasSuffix(places[1], want[1]) ||
				r.First.Thread == r.Second.Thread || !r.First.Store && !r.Second.Store {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestLocksScriptKnowsAtomics: atomic variables on the heap are known by the functions that access them, which are inlined. Beside them a race is still one.
func TestLocksScriptKnowsAtomics(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"-Og", "-O2"} {
		g := compile(t, "atomics", level, "-pthread")
		rec := filepath.Join(g.dir, "r.vplay")
		recordAs(t, rec, g.bin)
		rows := locks(t, rec)
		if len(rows) != 1 {
			t.Fatalf("%s: %d rows: %+v", level, len(rows), rows)
		}
		text := rows[0].First.Place + rows[0].Second.Place
		if !strings.Contains(rows[0].Name, "8 bytes into a block of 12 bytes") || !strings.Contains(text, fmt.Sprintf("atomics.cc:%d", g.line(t, "RACE store"))) ||
			!strings.Contains(text, fmt.Sprintf("atomics.cc:%d", g.line(t, "RACE load"))) {
			t.Errorf("%s: %+v", level, rows[0])
		}
	}
}

// TestLocksScriptBegunLate attaches to a program whose threads are in the midst of what they do: they hold locks and wait
// for conditions that the recording does not have the beginning of.
func TestLocksScriptBegunLate(t *testing.T) {
	t.Parallel()
	g := compile(t, "locks", "-O0", "-pthread")
	for _, name := range []string{"condition", "mutex", "barrier"} {
		prog := exec.CommandContext(limited(t, patience), g.bin, name, "2000000000")
		if err := prog.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		rec := filepath.Join(g.dir, name+".vplay")
		cmd, lines := startAttach(t, prog, "--for", "60ms", "--slim", "now", "-o", rec)
		rest, err := io.ReadAll(lines)
		if err := errors.Join(err, cmd.Wait()); err != nil {
			t.Fatalf("%v: %s", err, rest)
		}
		_ = prog.Process.Kill()
		_ = prog.Wait()
		for _, r := range locks(t, rec) {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
}

// TestLocksScriptOverIntervals: a recording of many intervals has the same answer from one worker and from two.
func TestLocksScriptOverIntervals(t *testing.T) {
	t.Parallel()
	g := compile(t, "locks", "-O0", "-pthread")
	rec := filepath.Join(t.TempDir(), "r.vplay")
	cmd := exec.CommandContext(limited(t, 2*time.Minute), vplayd, "record", "-q", "--slim", "now", "--keep", "always", "--interval", "1ms", "-o", rec, "--", g.bin, "global", "10000")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if info := vplaydOutput(t, "info", rec); !regexp.MustCompile(`\nrecording +\d+ intervals`).MatchString(info) {
		t.Fatalf("too few intervals:\n%s", info)
	}
	one, _, _ := runScript(t, "-j", "1", "locks", rec)
	two, _, _ := runScript(t, "-j", "2", "locks", rec)
	if one != two || !strings.Contains(one, "1 races") || !strings.Contains(one, g.placed(t, "RACE global")) {
		t.Errorf("one worker: %s\ntwo: %s", one, two)
	}
}

// TestLocksNameNew: a block of C++'s was allocated by who called operator new, not by operator new.
func TestLocksNameNew(t *testing.T) {
	t.Parallel()
	g := compile(t, "newrace", "-O0", "-pthread")
	rec := filepath.Join(t.TempDir(), "newrace.vplay")
	recordAs(t, rec, g.bin)
	rows := locks(t, rec)
	if want := fmt.Sprintf("newrace.cc:%d", g.line(t, "NEW")); len(rows) != 1 || !strings.Contains(rows[0].Name, "8 bytes into a block of 16 bytes") || !strings.Contains(rows[0].Name, want) {
		t.Errorf("%+v", rows)
	}
}
