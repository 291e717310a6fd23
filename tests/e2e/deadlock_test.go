package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vplay/checkpoint/abi"
)

// hangs reports whether the program is there with n threads, each of which waits for a futex.
func (g *guest) hangs(n int) bool {
	exes, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range exes {
		if path, err := os.Readlink(exe); err != nil || path != g.bin {
			continue
		}
		calls, _ := filepath.Glob(filepath.Dir(exe) + "/task/*/syscall")
		waiting := 0
		for _, call := range calls {
			b, _ := os.ReadFile(call) // it may be gone: then it does not wait
			if strings.HasPrefix(string(b), fmt.Sprint(int64(abi.SYS_FUTEX), " ")) {
				waiting++
			}
		}
		if waiting == n && len(calls) == n { // a shadow of it has one thread
			return true
		}
	}
	return false
}

// TestDeadlock records a program until it hangs, which Ctrl-C ends, as it would without the
// recorder. The script locks says who waits for whom. gdb shows where each thread
// waits, as in a core file, and goes back to who took which lock.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	g := compile(t, "deadlock", "-O0", "-pthread")
	rec := filepath.Join(g.dir, "rec.vplay")
	cmd := exec.CommandContext(limited(t, 2*time.Minute), vplayd, "record", "-q", "--slim", "now", "-o", rec, "--", g.bin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); !g.hangs(3); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatalf("it does not hang\n%s", out.Bytes())
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it dies of SIGINT, as the program does
	if _, err := os.Stat(rec); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	rows := locks(t, rec)
	if len(rows) != 1 || rows[0].Kind != "deadlock" || len(rows[0].Waits) != 2 {
		t.Fatalf("the script locks: %+v", rows)
	}
	for i, w := range rows[0].Waits {
		if w.Holder != rows[0].Waits[1-i].Thread ||
			!strings.HasSuffix(w.Place, fmt.Sprintf("deadlock.c:%d", g.line(t, "SECOND"))) || !strings.HasSuffix(w.HeldPlace, fmt.Sprintf("deadlock.c:%d", g.line(t, "FIRST"))) {
			t.Errorf("%+v", w)
		}
	}
	addr := serve(t, rec, "--symbols", g.dir)
	text := gdb(t, addr, "info threads", "thread apply all bt", "print savings.lock.__data.__owner", "print checking.lock.__data.__owner",
		"watch savings.lock.__data.__owner", "watch checking.lock.__data.__owner", "reverse-continue", "bt", "reverse-continue", "bt", "reverse-continue",
		// Forward again nobody gives a lock back, and the program ends as it did.
		"continue", "continue", "continue", "thread apply all bt")
	waits := func(function string) []string {
		return []string{`#\d+ .*pthread_mutex_lock`, `#\d+ .*transfer \(from=.*\) at .*LINE:SECOND`, `#\d+ .*` + function + ` \(`}
	}
	takes := []string{`hit Hardware watchpoint`, `Old value = \d+`, `New value = 0`, `#\d+ .*pthread_mutex_lock`, `#\d+ .*transfer .*LINE:FIRST`}
	expect(t, text, places(t, g, "deadlock", slices.Concat(
		[]string{`1 +Thread [0-9.]+ "deadlock"`, `2 +Thread [0-9.]+ "spend"`, `3 +Thread [0-9.]+ "save"`},
		[]string{`Thread 3 .*"save"`}, waits("save"), []string{`Thread 2 .*"spend"`}, waits("spend"), []string{`Thread 1 .*"deadlock"`, `#\d+ .*main \(\) at .*LINE:JOIN`},
		[]string{`^\$1 = \d+`, `^\$2 = \d+`}, takes, takes, []string{`No more reverse-execution history`},
		[]string{`New value = \d+`, `New value = \d+`, `received signal SIGINT`}, waits("(spend|save)"), waits("(spend|save)"),
	))...)
	for _, who := range []string{`"spend" hit Hardware watchpoint 1: savings.lock`, `"save" hit Hardware watchpoint 2: checking.lock`} {
		if n := strings.Count(text, who); n != 2 {
			t.Errorf("%d times %s, want one back and one forward:\n%s", n, who, text)
		}
	}
}
