package e2e

import (
	"fmt"
	"testing"
)

// TestWatchRemapped watches memory that changes without a store of the program's: each
// change stops a run, in both directions, and questions about stores know them.
func TestWatchRemapped(t *testing.T) {
	t.Parallel()
	g := compile(t, "remap", "-O0")
	addr := serve(t, g.record(t), "--symbols", g.dir+"/symbols")
	values := []string{"0", "1", "11", "22", "33", "11", "44", "<unreadable>"}
	calls := []string{"main", "mmap", "read", "recv", "madvise", "mremap", "munmap"}
	commands := []string{loadCommands, fmt.Sprintf("tbreak %d", g.line(t, "STORE")), "reverse-continue", "watch -l *seen"}
	want := []string{`Temporary breakpoint 1, main`}
	for i, call := range calls {
		commands = append(commands, "continue")
		want = append(want, fmt.Sprintf(`Old value = %s\nNew value = %s\n.*%s`, values[i], values[i+1], call))
	}
	commands = append(commands, "continue")
	want = append(want, `received signal SIGABRT`)
	for i := len(calls) - 1; i >= 0; i-- {
		commands = append(commands, "reverse-continue")
		want = append(want, fmt.Sprintf(`Old value = %s\nNew value = %s\n.*%s`, values[i+1], values[i], calls[i]))
	}
	commands = append(commands, "vplay seek end", "vplay writes *seen 3", "vplay last-write *seen")
	want = append(want, `mremap .*0xb -> 0x2c\n.*remap\.c.*0x2c \(the same as before\)\n.*munmap .*0x2c -> <unreadable>\n.*munmap .*0x2c -> <unreadable>`)
	expect(t, gdb(t, addr, commands...), want...)
}
