package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestCalls stops at the returns of calls that the log has no exit of, in both
// directions.
func TestCalls(t *testing.T) {
	t.Parallel()
	g := compile(t, "calls", "-O0")
	addr := serve(t, g.record(t, "--keep", "always"), "--symbols", g.dir+"/symbols", "--at", "begin")
	expect(t, gdb(t, addr, "break main", "continue", "catch syscall vfork 123456 getppid",
		"continue", "continue", "continue", "continue", "continue", "continue", "p $rax", "continue",
		"reverse-continue", "reverse-continue", "reverse-continue", "reverse-continue", "reverse-continue", "reverse-continue", "reverse-continue", "continue"),
		`Breakpoint 1, main`, `Catchpoint 2`,
		`call to syscall vfork`, `returned from syscall vfork`, `call to syscall 123456`, `returned from syscall 123456`,
		`call to syscall getppid`, `returned from syscall getppid`, `= \d`, `exits with code 0`,
		`returned from syscall getppid`, `call to syscall getppid`, `returned from syscall 123456`, `call to syscall 123456`,
		`returned from syscall vfork`, `call to syscall vfork`, `Breakpoint 1, main`, `call to syscall vfork`)
}

// TestBeginning stands at the program's entry, where no library is loaded, and
// goes on: the debugger follows the loader, and knows the libraries' functions.
func TestBeginning(t *testing.T) {
	t.Parallel()
	g := compile(t, "calls", "-O0")
	addr := serve(t, g.record(t, "--keep", "always"), "--symbols", g.dir+"/symbols", "--at", "begin")
	out := gdb(t, addr, "break main", "continue", "break getppid", "continue", "bt")
	if strings.Contains(out, "Unable to find dynamic linker") {
		t.Errorf("the loader is not followed:\n%s", out)
	}
	expect(t, out, `Breakpoint 1, main`, `Breakpoint 2, .*getppid`, `main .*calls.c:12`)
}

// TestCallsOfAssembler: of a function in assembler the registers are shown, and not that it takes no argument.
func TestCallsOfAssembler(t *testing.T) {
	t.Parallel()
	g := compile(t, "asmcall", "-O0", filepath.Join("..", "guest", "asmcall.S"))
	out := gdb(t, serve(t, g.record(t), "--symbols", filepath.Join(g.dir, "symbols")), loadCommands, "vplay calls add_three", "vplay calls main 1")
	expect(t, out, `add_three\((0xb|11), (0x16|22), (0x21|33)\)  from `, `main\(\)  from `)
}
