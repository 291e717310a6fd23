package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCaughtFault: where a program catches a fault and ends itself in its handler, info names
// the fault, and the slice of the crash begins at it. A fault that was repaired, or left by a
// longjmp, has not ended the program.
func TestCaughtFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   int
		caught bool
	}{
		"abort":   {0, true},
		"again":   {1, true},
		"inside":  {2, true},
		"exit":    {3, true},
		"repair":  {4, false},
		"longjmp": {5, false},
		"another": {6, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := compile(t, "caught", "-O0")
			g.args = make([]string, c.args)
			rec := g.record(t, "--keep", "always")
			symbols := filepath.Join(g.dir, "symbols")
			info, err := exec.Command(vplayd, "info", "--symbols", symbols, rec).CombinedOutput()
			if err != nil {
				t.Fatalf("info: %v\n%s", err, info)
			}
			slice, err := exec.Command(vplayd, "slice", "--symbols", symbols, rec).CombinedOutput()
			if !c.caught {
				if strings.Contains(string(info), "\nbecause of") || !strings.Contains(string(slice), "say what to explain") {
					t.Errorf("a fault that did not end the program is named:\n%s\n%s", info, slice)
				}
				return
			}
			expect(t, string(info), `^because of +SIGSEGV \{si_code=SEGV_ACCERR, si_addr=0x\w+005\}, which the program caught \(event \d+\)`)
			if err != nil {
				t.Fatalf("slice: %v\n%s", err, slice)
			}
			expect(t, string(slice), places(t, g, "caught", []string{`^the fault that the program caught: \$rax`, `LINE:FAULT`, `LINE:PAGE`})...)
		})
	}
}
