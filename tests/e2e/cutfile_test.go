package e2e

import (
	"os/exec"
	"testing"
)

// TestCutFile: at a SIGBUS a page cannot be read for the reason that the kernel had, and not because nobody used it: the
// program wrote to it when the file was longer. The way back leads to who cut the file.
func TestCutFile(t *testing.T) {
	t.Parallel()
	g := compile(t, "cutfile", "-O0")
	rec := g.record(t)
	out, err := exec.Command(vplayd, "info", rec).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	expect(t, string(out), `the kernel could not give the page at byte 0x1000 of \S+`)
	addr := serve(t, rec, "--symbols", g.dir+"/symbols")
	expect(t, gdb(t, addr, loadCommands, "print i", "vplay why map[i]", "catch syscall ftruncate", "reverse-continue", "backtrace", "vplay seek crash", "reverse-stepi", "vplay why map[i]"), places(t, g, "cutfile", []string{
		`main .*LINE:CRASH`, `= 4096`, `0x\w+ is mapped, but the kernel could not give its page, which is why SIGBUS comes`,
		`returned from syscall ftruncate`, `#1 .* cut .*LINE:CULPRIT`, `#2 .* main`, `received signal SIGBUS`, `the kernel could not give its page`,
	})...)
}
