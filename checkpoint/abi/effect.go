package abi

// The effect class of a call whose arguments are known: where a flag, a command or an option
// makes it another one than its row's. Rows are in syscalls.txt; what a call writes is in outputs.go.

// EffectOf returns the effect class of a call whose arguments are known, and
// for an opaque or refused call the reason. It is the row's class except where a
// command, a flag or an option decides: open with O_TRUNC changes a file, an
// unknown ioctl is opaque, arch_prctl can switch on what is not emulated.
func EffectOf(nr int64, args [6]uint64) (Effect, string) {
	s, _ := Lookup(nr)
	switch nr {
	case SYS_OPEN:
		return truncates(args[1])
	case SYS_OPENAT:
		return truncates(args[2])
	case SYS_OPENAT2: // the flags are in memory: take the worst
		return EffectFileWrite, ""
	case SYS_IOCTL:
		return ioctlEffect(args[1])
	case SYS_FCNTL:
		return ifKnown("fcntl", args[1])
	case SYS_PRCTL:
		return prctlEffect(args)
	case SYS_ARCH_PRCTL:
		return archPrctlEffect(args[0])
	case SYS_PTRACE:
		return ifKnown("ptrace", args[0])
	case SYS_KEYCTL:
		return ifKnown("keyctl", args[0])
	case SYS_SECCOMP:
		return ifKnown("seccomp", args[0])
	case SYS_FUTEX:
		if inheritsPriority[args[1]&127] {
			return EffectRefuse, "the kernel changes the words of futexes with priority inheritance while threads sleep"
		}
		return ifKnown("futexop", args[1]&127)
	case SYS_MODIFY_LDT:
		if f := uint32(args[0]); f == 1 || f == 0x11 {
			return EffectRefuse, "segments of a local descriptor table are not emulated"
		}
	case SYS_GETSOCKOPT:
		if args[1] == SOL_TCP && args[2] == 35 {
			return EffectOpaque, "TCP_ZEROCOPY_RECEIVE maps pages of the network"
		}
	case SYS_SETSOCKOPT:
		return setsockoptEffect(args[1], args[2])
	case SYS_MADVISE:
		return madviseEffect(s, args[2])
	case SYS_PROCESS_MADVISE:
		return madviseEffect(s, args[3])
	case SYS_MMAP:
		if args[3]&mapType == MAP_DROPPABLE {
			return EffectRefuse, "droppable pages may become zero at any time"
		}
	}
	if s.Effect == EffectOpaque && s.Why == "" {
		return EffectOpaque, "its effects on memory cannot be listed"
	}
	return s.Effect, s.Why
}

// mapType has the bits of mmap's flags that say how the mapping is shared:
// include/uapi/linux/mman.h, MAP_TYPE.
const mapType = 0xf

// madviseEffect refuses advice whose effect only the page tables know.
func madviseEffect(s *Syscall, advice uint64) (Effect, string) {
	switch uint32(advice) {
	case MADV_GUARD_INSTALL, MADV_HWPOISON:
		return EffectRefuse, "pages that are mapped and fault all the same are not emulated"
	case MADV_MERGEABLE:
		return EffectRefuse, mergedPages
	}
	return s.Effect, s.Why
}

// mergedPages: the recorder takes pages that the process shares with nobody for
// those written since the last fork, and a merged page is shared.
const mergedPages = "pages that the kernel merges do not look written"

// inheritsPriority has the operations of futex(2) with priority inheritance.
var inheritsPriority = map[uint64]bool{
	FUTEX_LOCK_PI: true, FUTEX_LOCK_PI2: true, FUTEX_UNLOCK_PI: true, FUTEX_TRYLOCK_PI: true,
	FUTEX_WAIT_REQUEUE_PI: true, FUTEX_CMP_REQUEUE_PI: true,
}

// DenyErrno returns the errno with which a recorder may answer a call that
// EffectOf refuses: what a kernel without the feature says, so that programs
// take their fallback.
func DenyErrno(nr int64) Errno {
	s, _ := Lookup(nr)
	switch {
	case s.Deny != 0:
		return s.Deny
	case nr == SYS_MODIFY_LDT, nr == SYS_FUTEX:
		return ENOSYS
	case nr == SYS_SETSOCKOPT:
		return ENOPROTOOPT
	case nr == SYS_IOCTL:
		return ENOTTY
	}
	return EINVAL // mmap, madvise, prctl, arch_prctl: an unknown flag or option
}

func truncates(flags uint64) (Effect, string) {
	if flags&O_TRUNC != 0 {
		return EffectFileWrite, ""
	}
	return EffectPlain, ""
}

// ifKnown is plain for a command that the named set has, else opaque.
func ifKnown(set string, cmd uint64) (Effect, string) {
	if _, ok := sets[set].name(uint64(uint32(cmd))); ok {
		return EffectPlain, ""
	}
	return EffectOpaque, "unknown command " + hex(cmd)
}

// setsockoptEffect: the ring options of packet and XDP sockets (linux/if_packet.h,
// linux/if_xdp.h) share memory with the kernel.
func setsockoptEffect(level, option uint64) (Effect, string) {
	const packetRxRing, packetTxRing, xdpMmapOffsets = 5, 13, 1
	switch l, o := uint32(level), uint32(option); {
	case l == SOL_PACKET && (o == packetRxRing || o == packetTxRing), l == SOL_XDP && o > xdpMmapOffsets:
		return EffectRefuse, "its rings are written by the kernel at any time"
	}
	return EffectPlain, ""
}

func prctlEffect(args [6]uint64) (Effect, string) {
	switch uint32(args[0]) {
	case PR_SET_MM:
		switch args[1] {
		case prSetMMStartBrk, prSetMMBrk, prSetMMMap:
			return EffectRefuse, "the break would move without a call of brk"
		}
	case PR_SET_MEMORY_MERGE:
		if args[1] != 0 {
			return EffectRefuse, mergedPages
		}
	case PR_SET_SHADOW_STACK_STATUS:
		return EffectRefuse, "shadow stacks are not emulated"
	case PR_SET_SYSCALL_USER_DISPATCH:
		if args[1] != 0 {
			return EffectRefuse, "system calls would be dispatched by a byte in memory"
		}
	}
	return ifKnown("prctl", args[0])
}

func archPrctlEffect(code uint64) (Effect, string) {
	switch uint32(code) {
	case ARCH_SHSTK_ENABLE:
		return EffectRefuse, "shadow stacks are not emulated"
	case ARCH_REQ_XCOMP_PERM, ARCH_REQ_XCOMP_GUEST_PERM:
		return EffectRefuse, "AMX state is not emulated"
	case ARCH_ENABLE_TAGGED_ADDR:
		return EffectRefuse, "tagged addresses are not emulated"
	case ARCH_MAP_VDSO_X32, ARCH_MAP_VDSO_32, ARCH_MAP_VDSO_64:
		return EffectMem, ""
	}
	return ifKnown("arch_prctl", code)
}
