package e2e

import (
	"testing"

	realgdb "vplay/tests/gdb"
)

// TestIFuncs breaks on functions that the C library chose for the CPU, and lists
// their calls: they stand where the resolver's result was put, in shared libraries,
// in static programs, with the library's file at hand and without.
func TestIFuncs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, library string
		flags         []string
	}{
		{"shared", "", []string{"-O0"}},
		{"eager", "", []string{"-O0", "-Wl,-z,now"}},
		{"with the library's file", "/usr/lib/x86_64-linux-gnu", []string{"-O0"}},
		{"static", "", []string{"-O0", "-static"}},
		{"static-pie", "", []string{"-O0", "-static-pie"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := compile(t, "ifunc", append(c.flags, "-fno-builtin")...)
			flags := []string{"--symbols", g.dir + "/symbols"}
			if c.library != "" {
				flags = append(flags, "--symbols", c.library)
			}
			addr := serve(t, g.record(t), flags...)
			out := gdb(t, addr, "break strcpy", "reverse-continue", "x/s $rsi", "bt 2", "reverse-continue", "bt 2", "delete",
				"break chosen", "continue", "delete", loadCommands, "vplay seek end", "vplay calls strcpy", "monitor calls strcpy", "monitor calls chosen")
			expect(t, out, places(t, g, "ifunc", []string{
				`Breakpoint 1, .*strcpy`, `"second"`, `#1 .*main .*LINE:SECOND`, `Breakpoint 1, .*strcpy`, `#1 .*main .*LINE:FIRST`,
				`Breakpoint 2, plain.*LINE:PLAIN`,
				`strcpy\w*\(0x.*main.*LINE:FIRST`, `strcpy\w*\(0x.*main.*LINE:SECOND`, `strcpy\w*\(0x.*LINE:FIRST`, `strcpy\w*\(0x.*LINE:SECOND`,
				`plain\(1, .*from .*main.*LINE:CHOSEN`,
			})...)
		})
	}
}

// TestIFuncsWithDebugFile: gdb has a debug file of its own, in which the symbol is that
// of the resolver. It breaks at both, and a stop at the resolver would end gdb with an internal error.
func TestIFuncsWithDebugFile(t *testing.T) {
	t.Parallel()
	g := compile(t, "ifunc", "-O0", "-fno-builtin", "-rdynamic")
	rec := g.recordStripped(t)
	flags := []string{"-iex", "set debug-file-directory " + g.symbolFiles(t)["build-id"]}
	out := realgdb.BatchWith(t, flags, "target remote "+serve(t, rec), "break chosen", "reverse-continue", "bt 2", "reverse-continue", "break *choose", "delete 1", "continue", "reverse-continue")
	expect(t, out, places(t, g, "ifunc", []string{`Breakpoint 1.*, plain.*LINE:PLAIN`, `#1 .*main .*LINE:CHOSEN`, `No more reverse-execution history`, `Breakpoint 2.*choose`})...)
}
