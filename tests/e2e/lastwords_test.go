package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLastWords: where a program ends itself, info has what it said last, and not what it said
// long before.
func TestLastWords(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"abort": nil, "exit": {"exit"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := compile(t, "lastwords")
			g.args = args
			out, err := exec.Command(vplayd, "info", g.record(t, "--keep", "always")).CombinedOutput()
			if err != nil || strings.Contains(string(out), "starting") {
				t.Errorf("%v\n%s", err, out)
			}
			expect(t, string(out), `^stderr +fatal: no such account$`, `^ +in main$`)
		})
	}
}
