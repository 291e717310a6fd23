package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// heapcheck is the example of a script on a recording.
func heapcheck(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../replay/debug/gdb/heapcheck.py")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHeapCheck runs the example script on a heap overflow that glibc noticed
// long after it had happened.
func TestHeapCheck(t *testing.T) {
	t.Parallel()
	g := compile(t, "heap", "-O0")
	addr := serve(t, g.record(t), "--symbols", g.dir+"/symbols")
	expect(t, gdb(t, addr, loadCommands, "source "+heapcheck(t), "p i", "p to[24]"), places(t, g, "heap", []string{
		`the first write behind a block is at \d+:\d+\.\d+:\n0x\w+ copy\+0x\w+ in heap .*0x20d51 -> 0x20d78`, `#0 .* copy .*LINE:CULPRIT`, `#1 .* main `, `seen \d+ stops`, `= 24`, `= 81 'Q'`,
	})...)
	tour, addr := tour(t)
	_ = tour
	expect(t, gdb(t, addr, loadCommands, "source "+heapcheck(t)), `nothing wrote behind the last \d+ blocks`)
}

// TestHeapCheckInLibrary finds the overflows that functions of the C library made.
func TestHeapCheckInLibrary(t *testing.T) {
	t.Parallel()
	for how, name := range []string{"STRCPY", "MEMCPY", "MEMSET", "SPRINTF"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := compile(t, "overflow", "-O0", "-fno-builtin", fmt.Sprintf("-DHOW=%d", how+1))
			addr := serve(t, g.record(t), "--symbols", g.dir+"/symbols")
			expect(t, gdb(t, addr, loadCommands, "source "+heapcheck(t), "frame function fill", "p to == blocks[3]"), places(t, g, "overflow", []string{
				`the first write behind a block is at \d+:\d+\.\d+:\n0x\w+ .* in libc\.so\.6 .* 0x31 -> 0x`, `#\d+ .* fill .*LINE:` + name, `#\d+ .* main `, `seen \d+ stops`, `= 1`,
			})...)
		})
	}
}

// TestPythonAPI uses what scripts use of gdb's Python API.
func TestPythonAPI(t *testing.T) {
	t.Parallel()
	_, addr := tour(t)
	expect(t, gdb(t, addr, quiet, loadCommands,
		"python events = []; gdb.events.stop.connect(lambda e: events.append(type(e).__name__ + ' ' + str(gdb.selected_frame().name())))",
		"python gdb.Breakpoint('square', gdb.BP_BREAKPOINT).condition = 'x == 7'", "python gdb.execute('reverse-continue')",
		"python print('x is', gdb.selected_frame().read_var('x'), 'called by', gdb.selected_frame().older().name(), gdb.selected_frame().find_sal().line)",
		"python w = gdb.Breakpoint('total', gdb.BP_WATCHPOINT, gdb.WP_WRITE)", "python gdb.execute('continue')", "python print('total is', int(gdb.parse_and_eval('total')))",
		"python gdb.execute('reverse-continue')", "python print('total was', int(gdb.parse_and_eval('total')))", "python w.delete()",
		"python i = gdb.selected_inferior(); a = int(gdb.parse_and_eval('&squares').cast(gdb.lookup_type('long')))",
		"python print('squares', [int.from_bytes(i.read_memory(a + 4 * k, 4), 'little') for k in range(10)])", "python print('found', i.search_memory(a, 40, b'\\x5b\\x00\\x00\\x00') - a)",
		"python i.read_memory(int(gdb.parse_and_eval('&cold').cast(gdb.lookup_type('long'))) + 700000, 4)", "python print('thread', gdb.selected_thread().ptid[0] == i.pid, gdb.selected_thread().is_stopped())",
		"python print('place', gdb.decode_line('tour.c:14')[1][0].symtab.filename[-6:], gdb.solib_name(int(gdb.parse_and_eval('(long)&raise'))))",
		"python print('pairs', [text.split('  ')[0] for position, text in vplay('calls square 2')])", "python print(events)",
	),
		`Breakpoint 1, square \(x=7\)`, `x is 7 called by add 14`, `Hardware watchpoint 2: total`, `Old value = 91\nNew value = 140`, `total is 140`, `Old value = 140\nNew value = 91`, `total was 91`,
		`squares \[0, 1, 5, 14, 30, 55, 91, 0, 0, 0\]`, `found 24`, `Cannot access memory at address 0x`, `thread True T[r]ue`, `place tour.c .*libc\.so\.6`,
		`pairs \['square\(6, .*', 'square\(7, `, `BreakpointEvent square.*BreakpointEvent add.*BreakpointEvent`)
}

// TestStackLines: gdb reads stacks in larger lines, unless the user has chosen a size.
func TestStackLines(t *testing.T) {
	t.Parallel()
	path, err := filepath.Abs("../../replay/debug/gdb/vplay.py")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, gdb(t, "| true", "source "+path, "show dcache line-size"), `line size is 1024\.`)
	expect(t, gdb(t, "| true", "set dcache line-size 128", "source "+path, "show dcache line-size"), `line size is 128\.`)
}

// TestProgressOnTerminal: how far a question is goes to a terminal alone.
func TestProgressOnTerminal(t *testing.T) {
	t.Parallel()
	path, err := filepath.Abs("../../replay/debug/gdb/vplay.py")
	if err != nil {
		t.Fatal(err)
	}
	out := gdb(t, "| true", "source "+path, `python pieces = ["running 40 percent\n", "running 80 percent\n", "done\nan answer\n"]`,
		"python _monitor = lambda line: pieces.pop(0)", "python print('asked:', _ask('something'))")
	expect(t, out, `^asked: an answer`)
	if strings.Contains(out, "percent") || strings.Contains(out, "\r") {
		t.Errorf("progress where there is no terminal:\n%q", out)
	}
}
