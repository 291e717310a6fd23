package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"vplay/tests/need"
)

var setCorePattern = flag.Bool("core-pattern", false, "have the kernel of this machine start core-handler for a moment (as root)")

// TestCorePattern has the kernel start core-handler for a program with threads whose file is deleted while it
// runs. It changes a setting of the whole machine and puts it back, so it runs only when it is asked for.
func TestCorePattern(t *testing.T) {
	need.Machine(t, "the flag -core-pattern, and root", *setCorePattern && os.Geteuid() == 0)
	g := compile(t, "core/four", "-pthread")
	dir, err := os.MkdirTemp("", "c") // a core_pattern has 127 characters at most
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	setting := func(flags ...string) {
		if out, err := exec.Command(vplayd, append([]string{"core-handler"}, flags...)...).CombinedOutput(); err != nil {
			t.Fatalf("core-handler %s: %v\n%s", flags, err, out)
		}
	}
	pattern := func() string {
		b, err := os.ReadFile("/proc/sys/kernel/core_pattern")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := pattern()
	setting("--install", "--dir", dir, "--log-file", dir+"/l")
	defer func() {
		setting("--uninstall")
		if got := pattern(); got != before {
			t.Errorf("core_pattern is %q, and was %q", got, before)
		}
	}()
	cmd := exec.CommandContext(limited(t, patience), g.bin)
	cmd.Dir = g.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(g.bin); err != nil { // it dies 0.3 s later
		t.Fatal(err)
	}
	_ = cmd.Wait() // of a signal
	var found []string
	for range 100 {
		if found, _ = filepath.Glob(dir + "/four-*.vplay"); len(found) > 0 { // a good pattern
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	log, _ := os.ReadFile(dir + "/l") // nothing was said
	if len(found) != 1 {
		t.Fatalf("recordings: %q; the log:\n%s", found, log)
	}
	t.Logf("%s", log)
	out := gdb(t, serve(t, found[0]), "info threads", "bt", "p/x $ymm3.v4_int64")
	expect(t, out, `"four"`, fmt.Sprintf(`#0 .*divides \(arg=0x2\) at .*four\.c:%d`, g.line(t, "DIVIDE")), `= \{0x`)
}
