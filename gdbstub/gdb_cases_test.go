package gdbstub

// gdbCases are short sessions of real gdb on the fake target: commands, and
// patterns that must occur in the output in this order.
var gdbCases = []struct {
	name     string
	commands []string
	want     []string
}{
	{
		"connects to the crash without any file",
		[]string{"info registers rip rcx eflags fs_base orig_rax", "x/i $pc", "p $_siginfo.si_signo", "info threads", "p $ymm1.v4_int64", "p $mxcsr"},
		[]string{
			`SIGSEGV|_start`, `rip +0x401010 +0x401010 <_start\+16>`, `rcx +0x0`, `eflags +0x246 +\[ PF ZF IF \]`,
			`fs_base +0x7000`, `orig_rax +0xffffffffffffffff`, `=> 0x401010 <_start\+16>:\s+mov +%eax,\(%rax\)`,
			`= 11`, `\* 1 .*prog`, `= \{1, 2, 3, 4\}`, `= \[ IM DM ZM OM UM PM \]`,
		},
	},
	{
		"breakpoints backwards and forwards",
		[]string{"break bump", "reverse-continue", "p *(int*)&counter", "reverse-continue", "p *(int*)&counter", "p $rcx", "continue", "p *(int*)&counter", "delete", "continue", "continue", "info symbol $pc"},
		[]string{
			`Breakpoint 1 at 0x401024`, `Breakpoint 1, .*bump`, `= 4`, `Breakpoint 1, .*bump`, `= 3`, `= 2`, `Breakpoint 1`, `= 4`,
			`SIGSEGV`, `No more reverse-execution history`, `_start \+ 16`,
		},
	},
	{
		"hardware and temporary breakpoints and conditions",
		[]string{"hbreak *0x401024 if $rcx == 3", "reverse-continue", "p $rcx", "p *(int*)0x402000", "delete", "tbreak *0x401020", "continue", "p $rcx", "break *0x401024 if *(int*)0x402000 == 1 && $rsp != 0", "reverse-continue", "p $rcx"},
		[]string{`Hardware assisted breakpoint 1`, `Breakpoint 1`, `= 3`, `= 2`, `Temporary breakpoint 2`, `= 2`, `Breakpoint 3`, `= 4`},
	},
	{
		"single steps are inverse",
		[]string{"reverse-stepi", "reverse-stepi", "reverse-stepi", "p $pc", "stepi", "p $pc", "stepi", "p $pc", "reverse-stepi 7", "p $pc", "stepi 7", "p $pc"},
		[]string{`= .*0x40100a`, `= .*0x40100c`, `= .*0x40100e`, `= .*0x401020`, `= .*0x40100e`},
	},
	{
		"watchpoints backwards and forwards",
		[]string{"watch *(int*)0x402000", "reverse-continue", "reverse-continue", "p $pc", "continue", "continue", "delete", "rwatch *(int*)0x402000", "reverse-continue", "p $pc", "delete", "awatch *(int*)0x402000", "reverse-continue", "p $pc"},
		[]string{
			`Hardware watchpoint 1`, `Old value = 5`, `New value = 4`, `Old value = 4`, `New value = 3`, `= .*0x401024`,
			`Old value = 3`, `New value = 4`, `Old value = 4`, `New value = 5`,
			`Hardware read watchpoint`, `Value = `, `= .*0x401024`, `Hardware access`, `= .*0x401024`,
		},
	},
	{
		"the ends of history",
		[]string{"reverse-continue", "p $pc", "reverse-stepi", "stepi", "p $pc"},
		[]string{`No more reverse-execution history`, `= .*0x401000`, `No more reverse-execution history`, `= .*0x401005`},
	},
	{
		"what was not captured is an error",
		[]string{"x/x 0x500000", "x/2x 0x402ffc", "set var *(int*)0x402000 = 7", "p *(int*)0x402000", "set $rax = 5", "p $rax"},
		[]string{`Cannot access memory at address 0x500000`, `Cannot access memory at address 0x403000`, `Cannot access memory`, `= 5`, `replay is read-only`, `= 0`},
	},
	{
		"files, monitor, search, checks",
		[]string{"info proc mappings", "info auxv", "monitor when", "monitor nonsense", "find /b 0x401000, 0x40102c, 0xff, 0x04, 0x25", "find /b 0x401000, 0x40102c, 0x77", "info sharedlibrary", "compare-sections .text", "info line bump", "catch syscall write", "handle SIGUSR1 nostop"},
		[]string{`0x401000 .*0x402000.*/replay/prog`, `AT_ENTRY.*0x401000`, `0:44\.0|0:\d+\.0`, `error: no such command: nonsense`, `0x401024`, `Pattern not found`, `\.text.*matched`, `Catchpoint`},
	},
	{
		"source lines backwards",
		[]string{
			"break bump", "reverse-continue", "bt", "delete", "reverse-finish", "p counter", "next", "next", "reverse-step", "reverse-next",
			"reverse-step", "p counter", "reverse-step", "tbreak prog.c:2 if counter == 1", "reverse-continue", "p counter", "up",
			"watch counter", "reverse-continue", "delete", "set exec-direction reverse", "next", "p counter",
		},
		[]string{
			`Breakpoint 1 at 0x401024: file prog.c, line 2`, `Breakpoint 1, bump \(\) at prog.c:2`, `#1 .* _start \(\) at prog.c:6`,
			`_start \(\) at prog.c:6`, `= 4`, `^7\s`, `^8\s`, `^7\s`, `^6\s`,
			`^7\s`, `= 4`, `bump \(\) at prog.c:3`, `Temporary breakpoint 2, bump`, `= 1`, `#1 .* at prog.c:6`,
			`Old value = 1`, `New value = 0`, `^6\s`, `= 0`,
		},
	},
	{
		"source lines forwards",
		[]string{
			"set listsize 1", "break bump if counter == 2", "reverse-continue", "p counter", "next", "p counter", "step", "step", "advance 2",
			"p counter", "tbreak 8", "continue", "next", "next",
		},
		[]string{
			`Breakpoint 1, bump \(\) at prog.c:2`, `= 2`, `^3\s`, `= 3`, `_start \(\) at prog.c:7`, `^6\s`,
			`bump \(\) at prog.c:2`, `= 3`, `Temporary breakpoint 2, _start \(\) at prog.c:8`,
			`SIGSEGV`, `No more reverse-execution history`,
		},
	},
	{
		"what a replay refuses leaves the session usable",
		[]string{
			"break bump", "reverse-continue", "print (int)bump()", "call bump()", "return", "jump *0x401000", "set $pc = 0x401000", "print counter = 9",
			"checkpoint", "p counter", "p $pc", "stepi", "p counter",
		},
		[]string{`Breakpoint 1`, `[Cc]annot|[Cc]ould not`, `replay is read-only`, `= 4`, `= .*0x401024`, `= 5`},
	},
	{
		"python",
		[]string{
			"python import gdb",
			"python print(bytes(gdb.selected_inferior().read_memory(0x402000, 4)))",
			"python gdb.events.stop.connect(lambda e: print('stopped', type(e).__name__))",
			"python gdb.Breakpoint('*0x401024', gdb.BP_BREAKPOINT, 0, True)",
			"python gdb.execute('reverse-continue')",
			"python print(gdb.selected_thread().ptid, gdb.selected_frame().name())",
			"python print(gdb.selected_inferior().search_memory(0x401000, 0x2d, b'\\xff\\x04'))",
			"python gdb.selected_inferior().write_memory(0x402000, b'x')",
			"python print('still', gdb.selected_inferior().pid)",
		},
		[]string{`x05.x00.x00.x00`, `stopped BreakpointEvent`, `4660, 4660, 0.* bump`, `4198436`, `Cannot access memory`, `still 4660`},
	},
	{
		"finish and reverse-finish",
		[]string{"break *0x401024", "reverse-continue", "bt", "delete", "finish", "p $pc", "reverse-stepi", "reverse-finish", "p $pc"},
		[]string{`#0 +bump`, `#1 +0x0*40100a in _start`, `_start \(\) at prog.c:7`, `= .*0x40100a`, `0x0*40102c in bump`, `= .*0x401005`},
	},
}
