package differential

import "vplay/replay/x86"

// Which rows of the instruction table are not compared with the CPU, and why. A row that
// is added here needs a reason, and another test.

// notRun names the mnemonics, or mnemonic and encoding, that cannot be compared with the CPU, each with
// its reason and the test that covers it instead. TestEveryRowHasCases fails
// for any other row without cases.
var notRun = map[string]string{
	"SYSCALL":     "leaves to the kernel; replay/x86 unit tests, and every recorded program",
	"SYSENTER":    "leaves to the kernel; replay/x86 unit tests",
	"INT":         "INT 80h is a system call; INT3 and INT n other than 80h are in testdata/regress_*.txt",
	"RDTSC":       "result is time; an exit, replay/x86 unit tests",
	"RDTSCP":      "result is time; an exit, replay/x86 unit tests",
	"CPUID":       "result is the host's; an exit, replay/x86 unit tests",
	"RDRAND":      "result is random",
	"RDSEED":      "result is random",
	"RDPID":       "result is the core it runs on; tests/guest/record/system.c",
	"RDPMC":       "depends on CR4.PCE of the host",
	"RDPRU":       "result is time",
	"SGDT":        "the kernel emulates it under UMIP; tests/guest/record/system.c",
	"SIDT":        "the kernel emulates it under UMIP; tests/guest/record/system.c",
	"SMSW":        "the kernel emulates it under UMIP; tests/guest/record/system.c",
	"SLDT":        "the kernel emulates it under UMIP; tests/guest/record/system.c",
	"STR":         "the kernel emulates it under UMIP; tests/guest/record/system.c",
	"UD 0F 01 C1": "VMCALL: the hypervisor decides",
	"XSETBV":      "privileged, but hypervisors differ",
	"PTWRITE":     "hypervisors deny CPUID leaf 14H to CPUs that execute it",
	"MONITORX":    "timing only",
	"MWAITX":      "timing only",
}

// WhyNotRun returns the reason why a row is not compared with the CPU, "" if it is.
func WhyNotRun(row *x86.Row) string {
	if row.Mnemonic == "UD" && row.Encoding.Opcode == 0x8f {
		return "XOP space: AMD decodes it further before it says #UD, and may fault otherwise"
	}
	if row.Attr("refuse") {
		return "outside the emulated set: replay ends there, TestRefusedRows"
	}
	if why := notRun[row.Mnemonic]; why != "" {
		return why
	}
	return notRun[row.Mnemonic+" "+row.Encoding.Text]
}
