//go:build linux && amd64

package record

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

var (
	scriptSeed  = flag.Uint64("scriptseed", 5, "where the random system calls of TestRandomCalls begin")
	scriptCalls = flag.Int("scriptcalls", 1500, "how many TestRandomCalls makes")
)

// TestRandomCalls has a program make the random system calls of checkpoint/abi's
// fuzzer, right ones and wrong ones, and change its memory map at random: the same
// results natively and recorded, and an exact replay.
func TestRandomCalls(t *testing.T) {
	need.Recorder(t)
	need.Machine(t, "root, who may look at a program that has changed its user", os.Geteuid() == 0)
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	write := exec.Command("go", "test", "../../checkpoint/abi", "-count=1", "-run", "TestWriteScript$", "-args",
		"-script", script, "-scriptcalls", fmt.Sprint(*scriptCalls), "-fuzzseed", fmt.Sprint(*scriptSeed))
	if b, err := write.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	_, err := os.Stat(script)
	need.Machine(t, "user namespaces for whoever runs the tests", err == nil)
	program := compile(t, "script", "-fno-stack-protector")
	start := func(opt recorder.Options) *run {
		root, err := os.MkdirTemp("", "vplay-script")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(root) })
		for _, err := range []error{
			os.Chmod(root, 0o755), os.Mkdir(filepath.Join(root, "t"), 0o755), os.Mkdir(filepath.Join(root, "proc"), 0o755),
			os.Chmod(filepath.Join(root, "t"), 0o777),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return &run{args: []string{program, script, root}, opt: opt}
	}
	first, second := start(recorder.Options{}).native(t), start(recorder.Options{}).native(t)
	if first.code != 0 || second.code != 0 {
		t.Fatalf("natively: code %d and %d\n%s", first.code, second.code, tail(first.out))
	}
	for _, every := range []time.Duration{0, 5 * time.Millisecond} {
		t.Run(every.String(), func(t *testing.T) {
			got, res := start(recorder.Options{Interval: every}).recorded(t)
			if got.code != 0 || res.Reason != "" || !res.Recorded {
				t.Fatalf("recorded: code %d, reason %q", got.code, res.Reason)
			}
			sameCalls(t, first.out, second.out, got.out)
			t.Log(verify(t, res.Path))
		})
	}
}

// sameCalls compares the results of calls, and what memory calls left behind,
// where two runs by themselves agree: lines "n: number = result sum look".
func sameCalls(t *testing.T, first, second, recorded string) {
	t.Helper()
	a, b, r := strings.Split(first, "\n"), strings.Split(second, "\n"), strings.Split(recorded, "\n")
	if len(a) != len(r) {
		t.Fatalf("%d lines recorded, %d natively", len(r), len(a))
	}
	agreed, bad := 0, 0
	for i := range a {
		x, y, z := strings.Fields(a[i]), strings.Fields(b[min(i, len(b)-1)]), strings.Fields(r[i])
		if len(x) != 6 || len(y) != 6 || len(z) != 6 {
			continue
		}
		switch x[1] {
		case "100", "111", "159", "201": // times, getpgrp, adjtimex, time: by the clock, and by whoever started it
			continue
		}
		for _, k := range []int{3, 5} { // the result, and what is mapped
			if x[k] != y[k] {
				continue
			}
			if agreed++; x[k] != z[k] {
				if bad++; bad < 5 {
					t.Errorf("recorded %q, natively %q", r[i], a[i])
				}
			}
		}
	}
	t.Logf("%d calls, %d results compared, %d differ", len(a)-1, agreed, bad)
	if agreed < len(a) {
		t.Errorf("only %d results agree natively", agreed)
	}
}
