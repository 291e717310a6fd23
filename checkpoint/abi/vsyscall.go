package abi

// The vsyscall page: its address and which system call each of its entries stands for
// (arch/x86/include/uapi/asm/vsyscall.h).

// VsyscallPage is where the vsyscall page is mapped in every process, if at all
// (uapi/asm/vsyscall.h).
const VsyscallPage = 0xffffffffff600000

// Vsyscall returns the number of the system call that the kernel does for a
// call to an address in the vsyscall page.
func Vsyscall(addr uint64) (nr int64, ok bool) {
	switch addr {
	case VsyscallPage:
		return SYS_GETTIMEOFDAY, true
	case VsyscallPage + 0x400:
		return SYS_TIME, true
	case VsyscallPage + 0x800:
		return SYS_GETCPU, true
	}
	return 0, false
}
