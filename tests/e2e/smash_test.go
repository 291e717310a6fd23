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

// TestInfoAbort: where the C library aborts because it has found damage, info says what
// it said, what is damaged, and what did it.
func TestInfoAbort(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		guest string
		args  []string
		flags []string
		want  []string
	}{
		"guard, -O0": {"smash", nil, []string{"-O0"}, []string{`^message .*stack smashing`, `^overwritten +stack guard of fill: 0x`, `^written +at \d+:\d+\.\d+ by 0x\w+ .* in libc`, `called from fill\+.*LINE:CULPRIT`, `called from main`}},
		"guard, -O2": {"smash", nil, []string{"-O2", "-fno-inline"}, []string{`^message .*stack smashing`, `^overwritten +stack guard of fill: 0x`, `^written +at `, `called from fill\+.*LINE:CULPRIT`}},
		"header":     {"heapabort", []string{"1"}, []string{"-O0"}, []string{`^message +\S`, `^overwritten +size of the block at 0x\w+, if it is one: 0x\w+ \(the text "an twent"\)`, `^written .* in libc`, `called from spoil\+.*LINE:CULPRIT`, `called from main`}},
		"next":       {"heapabort", []string{"1", "2"}, []string{"-O0"}, []string{`^message +\S`, `^overwritten +size of the block behind the one at 0x\w+: 0x`, `^written .* in libc`, `called from spoil\+.*LINE:CULPRIT`, `called from main`}},
		"twice":      {"heapabort", []string{"1", "2", "3"}, []string{"-O0"}, []string{`^message +free\(\): double free`, `^freed twice +the block at 0x`, `^before +at \d+:\d+\.\d+ by \w*free in libc`, `called from release\+.*LINE:FREE`, `called from main.*LINE:FIRST`}},
		"wrong":      {"heapabort", nil, []string{"-O0"}, []string{`^message +(free|munmap_chunk)\(\): invalid pointer`, `^overwritten +size of the block at 0x\w+, if it is one: 0x`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := compile(t, c.guest, append(c.flags, "-fstack-protector-strong", "-D_FORTIFY_SOURCE=0")...)
			g.args = c.args
			out, err := exec.Command(vplayd, "info", "--symbols", filepath.Join(g.dir, "symbols"), g.record(t)).CombinedOutput()
			if err != nil {
				t.Fatalf("info: %v\n%s", err, out)
			}
			expect(t, string(out), places(t, g, c.guest, c.want)...)
		})
	}
}
