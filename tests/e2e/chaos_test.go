package e2e

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestChaos hunts for a lost update that neither native runs nor the fair schedule show. It
// goes from the crash, of a pointer that is none or a node that is freed twice, back to the
// store of the other thread, which has put freed nodes into the list; vplayd schedule tells
// who ran around it.
func TestChaos(t *testing.T) {
	t.Parallel()
	g := compile(t, "record/races", "-O0", "-pthread")
	g.args = []string{"list"}
	rec := g.record(t, "--chaos-seed", "1", "--tries", "600")
	addr := serve(t, rec, "--symbols", g.dir+"/symbols")
	store := g.line(t, "STORE")
	out := gdb(t, addr, "info threads", fmt.Sprint("tbreak ", store), "reverse-continue", "p n->next == head", "bt 2")
	expect(t, out, places(t, g, "races", []string{
		`\* \d +Thread [0-9.]+ "reader" `, `Thread \d "writer" hit Temporary breakpoint 1, add \(value=\d\) at .*LINE:STORE`, `= \d`, `#1 .* writer `,
	})...)
	b, err := exec.Command(vplayd, "schedule", "--replay", rec).Output()
	if err != nil {
		t.Fatal(err)
	}
	expect(t, string(b), `^process \d+ .*/races`, ` waits in `, ` reader +killed by SIG(SEGV|ABRT)`, `^  thread `)
	if n := len(regexp.MustCompile(`(?m)^  \d+:\S+ .* writer `).FindAllString(string(b), -1)); n < 2 {
		t.Errorf("the writer has run %d times\n%s", n, strings.TrimSpace(string(b)))
	}
}
