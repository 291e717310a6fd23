package gdbstub

// GDB numbers signals its own way, the same on every system (gdb's
// include/gdb/signals.def). Linux numbers are those of
// arch/x86/include/uapi/asm/signal.h. lldb uses Linux numbers.

// gdbSignalUnknown is GDB_SIGNAL_UNKNOWN.
const gdbSignalUnknown = 143

// gdbSignals maps Linux signals 0 to 31 to GDB's numbers.
var gdbSignals = [32]int{
	0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 8: 8, 9: 9, 11: 11, 13: 13, 14: 14, 15: 15,
	7:  10, // SIGBUS
	10: 30, // SIGUSR1
	12: 31, // SIGUSR2
	16: gdbSignalUnknown,
	17: 20, // SIGCHLD
	18: 19, // SIGCONT
	19: 17, // SIGSTOP
	20: 18, // SIGTSTP
	21: 21, // SIGTTIN
	22: 22, // SIGTTOU
	23: 16, // SIGURG
	24: 24, // SIGXCPU
	25: 25, // SIGXFSZ
	26: 26, // SIGVTALRM
	27: 27, // SIGPROF
	28: 28, // SIGWINCH
	29: 23, // SIGIO
	30: 32, // SIGPWR
	31: 12, // SIGSYS
}

// gdbSignal translates a Linux signal number to GDB's.
func gdbSignal(linux int) int {
	switch {
	case linux >= 0 && linux < len(gdbSignals):
		return gdbSignals[linux]
	case linux == 32:
		return 77
	case linux >= 33 && linux <= 63:
		return linux - 33 + 45
	case linux == 64:
		return 78
	}
	return gdbSignalUnknown
}

// linuxSignal translates GDB's signal number to Linux's; 0 if there is none.
func linuxSignal(gdb int) int {
	switch {
	case gdb == 77:
		return 32
	case gdb >= 45 && gdb <= 75:
		return gdb - 45 + 33
	case gdb == 78:
		return 64
	case gdb <= 0 || gdb >= gdbSignalUnknown:
		return 0
	}
	for l, g := range gdbSignals {
		if g == gdb {
			return l
		}
	}
	return 0
}
