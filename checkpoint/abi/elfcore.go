package abi

// The notes of core files (man 5 core): their types, and the sizes of the structures in them on x86-64. What they
// say of one program is for who reads them.

// Types of notes: include/uapi/linux/elf.h.
const (
	NT_PRSTATUS         = 1
	NT_PRFPREG          = 2 // NT_FPREGSET of elf.h
	NT_PRPSINFO         = 3
	NT_AUXV             = 6
	NT_X86_XSTATE       = 0x202
	NT_X86_XSAVE_LAYOUT = 0x205
	NT_FILE             = 0x46494c45
	NT_SIGINFO          = 0x53494749
)

// Sizes of structures in bytes: include/uapi/linux/elfcore.h, and where in struct elf_prstatus the registers
// begin, which are a struct user_regs_struct: arch/x86/include/asm/user_64.h.
const (
	SizeofPrstatus  = 336
	SizeofPrpsinfo  = 136
	PrstatusRegsOff = 112
)
