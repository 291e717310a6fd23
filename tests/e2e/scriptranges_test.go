package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestScriptRanges has a script keep the blocks that a program has freed in a set, and look at accesses to what is in it at that moment.
func TestScriptRanges(t *testing.T) {
	t.Parallel()
	g := compile(t, "heapmisuse", "-O1", "-fno-builtin")
	g.args = []string{"after-write"}
	rec := g.record(t, "--keep", "always")
	path := scriptFile(t, `
gone = ranges()
sizes = {}
def allocated(m):
    gone.remove(m.result, m.result + m.arg(0))
    sizes[m.result] = m.arg(0)
def freed(m):
    a = m.arg(0)
    if a in sizes:
        gone.add(a, a + sizes[a], "of %d" % sizes.pop(a))
def used(m):
    if m.module.endswith("heapmisuse"):
        print(m.kind, m.size, m.store, m.new_value, gone.find(m.address)[2], gone.find(m.address)[0] == m.address - 20, gone.find(1), m.source.split("/")[-1])
on_return("malloc", allocated)
on_call("free", freed)
on_access(gone, used)
`)
	out, errs, code := runScript(t, "--symbols", filepath.Join(g.dir, "symbols"), path, rec)
	want := `access 4 True 7 of 40 True None heapmisuse.cc:`
	if code != 0 || strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, want) {
		t.Errorf("exit code %d, %s%s, want %s", code, out, errs, want)
	}
	for text, want := range map[string]string{
		"ranges()\nranges()\n":                                        "a script has one ranges()",
		"ranges()\non_heap(print)\n":                                  "a script has one ranges()",
		"r = ranges()\nr.add(2, 1)\n":                                 "START not above END",
		"r = ranges()\nr.find(-1)\n":                                  "is no address",
		"r = ranges()\non_access(r, print, kind=\"x\")\n":             "kind is",
		"h = on_heap(print)\non_end(lambda m: print(h.summary(1)))\n": "it takes the moment",
		"def f(m):\n    on_heap(print)\non_end(f)\n":                  "a script has one ranges()",
		"r = ranges()\ndef f(m):\n    r.remove(-1, 1)\non_end(f)\n":   "START not above END",
		"r = ranges()\ndef f(m):\n    r.add(0, 1 << 64)\non_end(f)\n": "START not above END",
	} {
		if out, errs, code := runScript(t, scriptFile(t, text), rec); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%q: exit code %d, %s%s, want %s", text, code, out, errs, want)
		}
	}
}
