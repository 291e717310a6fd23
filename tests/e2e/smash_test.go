package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInfoOverwrite: info names the bad return address, and the write that put it
// there, before the return and after it.
func TestInfoOverwrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flag, value string
	}{
		"at the return": {"-DFILL='A'", "0x4141414141414141"},
		"behind it":     {"-DFILL=0", "0x0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := compile(t, "wildreturn", "-O0", "-fno-stack-protector", c.flag)
			rec := g.record(t)
			out, err := exec.Command(vplayd, "info", "--symbols", filepath.Join(g.dir, "symbols"), rec).CombinedOutput()
			if err != nil {
				t.Fatalf("info: %v\n%s", err, out)
			}
			expect(t, string(out), places(t, g, "wildreturn", []string{
				`^returns to +` + c.value + `, from 0x7ff\w+ on the stack`, `^written +at \d+:\d+\.\d+ by 0x\w+ .* in libc`, `called from fill\+.*LINE:CULPRIT`, `called from main`,
			})...)
		})
	}
	g := compile(t, "nullptr", "-O0")
	if out, err := exec.Command(vplayd, "info", g.record(t)).CombinedOutput(); err != nil || len(out) == 0 || strings.Contains(string(out), "\nreturns to") {
		t.Errorf("a return where there is none: %v\n%s", err, out)
	}
}
