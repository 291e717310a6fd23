package abi

// What the calls about processes write: those with a command number, such as prctl and ptrace,
// and those that create tasks. These are rows of the table that need a function; the commands'
// numbers are in prctl.go and sched.go.

var procRows = rowFuncs{
	SYS_PRCTL:             (*outputs).prctl,
	SYS_ARCH_PRCTL:        (*outputs).archPrctl,
	SYS_CLONE:             (*outputs).clone,
	SYS_CLONE3:            (*outputs).clone3,
	SYS_PTRACE:            (*outputs).ptrace,
	SYS_SECCOMP:           (*outputs).seccomp,
	SYS_KEYCTL:            (*outputs).keyctl,
	SYS_LSM_GET_SELF_ATTR: func(o *outputs) { o.lsm(o.args[1], o.args[2]) },
	SYS_LSM_LIST_MODULES:  func(o *outputs) { o.lsm(o.args[0], o.args[1]) },
	SYS_RESTART_SYSCALL:   (*outputs).restartSyscall,
	SYS_WAITID:            (*outputs).waitid,
}

// prctlOutputs has the options that write to an argument: which, and how many bytes.
var prctlOutputs = map[uint64]struct{ arg, size uint64 }{
	PR_GET_PDEATHSIG:       {1, 4},
	PR_GET_UNALIGN:         {1, 4},
	PR_GET_FPEMU:           {1, 4},
	PR_GET_FPEXC:           {1, 4},
	PR_GET_NAME:            {1, 16},
	PR_GET_ENDIAN:          {1, 4},
	PR_GET_TSC:             {1, 4},
	PR_GET_CHILD_SUBREAPER: {1, 4},
	PR_GET_TID_ADDRESS:     {1, 8},

	PR_GET_SHADOW_STACK_STATUS: {1, 8},
}

func (o *outputs) prctl() {
	option := uint64(uint32(o.args[0]))
	if out, ok := prctlOutputs[option]; ok {
		o.arg(int(out.arg), out.size)
		return
	}
	switch option {
	case PR_GET_AUXV: // at most 22 pairs of words today; the result is the full size
		if o.errno == 0 {
			o.arg(1, min(o.args[2], uint64(o.ret)))
		} else {
			o.arg(1, min(o.args[2], PageSize))
		}
	case PR_SCHED_CORE: // PR_SCHED_CORE_GET writes a cookie
		o.arg(4, 8)
	case PR_SET_MM: // PR_SET_MM_MAP_SIZE writes the size of struct prctl_mm_map
		if o.args[1] == prSetMMMapSize {
			o.arg(2, 4)
		}
	case PR_FUTEX_HASH, PR_SET_VMA: // nothing
	default:
		if _, ok := setName("prctl", option); !ok && o.errno == 0 {
			o.opaque = true
		}
	}
}

func (o *outputs) archPrctl() { o.archCode(o.args[0], o.args[1]) }

// archCode lists what a code of arch_prctl writes to its argument.
func (o *outputs) archCode(code, arg uint64) {
	switch code = uint64(uint32(code)); code {
	case ARCH_GET_FS, ARCH_GET_GS, ARCH_GET_XCOMP_SUPP, ARCH_GET_XCOMP_PERM, ARCH_GET_XCOMP_GUEST_PERM,
		ARCH_GET_UNTAG_MASK, ARCH_GET_MAX_TAG_BITS, ARCH_SHSTK_STATUS:
		o.add(arg, 8)
	case ARCH_MAP_VDSO_X32, ARCH_MAP_VDSO_32, ARCH_MAP_VDSO_64:
		o.opaque = o.errno == 0
	default:
		if _, ok := setName("arch_prctl", code); !ok && o.errno == 0 {
			o.opaque = true
		}
	}
}

// waitid writes its siginfo whatever it found: zeros with an error, EBADF too
// (kernel/exit.c).
func (o *outputs) waitid() {
	o.arg(2, 128)
	o.arg(4, 144)
}

// clone: CLONE_PARENT_SETTID and CLONE_PIDFD write to parent_tid,
// CLONE_CHILD_SETTID to child_tid, which is this memory too with CLONE_VM.
func (o *outputs) clone() {
	o.arg(2, 4)
	o.arg(3, 4)
}

// clone3: the same through struct clone_args: u64 flags, pidfd, child_tid,
// parent_tid.
func (o *outputs) clone3() {
	for off := uint64(8); off <= 24; off += 8 {
		if p, ok := readUint64(o.m, o.args[0]+off); ok {
			o.add(p, 4)
		}
	}
}

// restartSyscall continues an interrupted call that the number no longer tells,
// but the argument registers are still its own. Calls with a restart block are
// poll, nanosleep, clock_nanosleep and futex (kernel users of
// set_restart_fn): all that any of them writes is listed.
func (o *outputs) restartSyscall() {
	const maxFiles = 1 << 20 // fs.nr_open: more descriptors no poll can have
	if nfds := o.args[1]; nfds <= maxFiles {
		o.addArray(o.args[0], nfds, 8) // poll
	}
	o.arg(1, 16) // nanosleep
	o.arg(3, 16) // clock_nanosleep
}

// ptrace lists what a tracer's requests write into its own memory. What they
// write into the tracee is another process's.
func (o *outputs) ptrace() {
	addr, data := o.args[2], o.args[3]
	switch req := o.args[0]; req {
	case PTRACE_PEEKTEXT, PTRACE_PEEKDATA, PTRACE_PEEKUSER, PTRACE_GETEVENTMSG:
		o.add(data, 8)
	case PTRACE_GETREGS:
		o.add(data, 27*8) // struct user_regs_struct
	case PTRACE_GETFPREGS, PTRACE_GETFPXREGS:
		o.add(data, 512)
	case PTRACE_GETSIGINFO:
		o.add(data, 128)
	case PTRACE_GETREGSET: // data is an iovec, its length is written back
		o.add(data, 16)
		base, ok1 := readUint64(o.m, data)
		n, ok2 := readUint64(o.m, data+8)
		if ok1 && ok2 {
			o.add(base, n)
		}
	case PTRACE_GET_SYSCALL_INFO, PTRACE_GETSIGMASK, PTRACE_GET_RSEQ_CONFIGURATION, PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG:
		o.add(data, addr)
	case PTRACE_PEEKSIGINFO: // addr: {u64 off; u32 flags; s32 nr}
		if n, ok := readUint32(o.m, addr+12); ok && int32(n) > 0 {
			o.addArray(data, uint64(n), 128)
		}
	case PTRACE_SECCOMP_GET_FILTER: // struct sock_filter each; 4096 at most
		n := uint64(4096)
		if o.errno == 0 {
			n = min(n, uint64(o.ret))
		}
		o.addArray(data, n, 8)
	case PTRACE_SECCOMP_GET_METADATA:
		o.add(data, min(addr, 16))
	case PTRACE_GET_THREAD_AREA:
		o.add(data, 16)
	case PTRACE_ARCH_PRCTL: // The code is in data, and its argument is this process's.
		o.archCode(data, addr)
	default:
		if _, ok := setName("ptrace", req); !ok && o.errno == 0 {
			o.opaque = true
		}
	}
}

// seccomp: operation 3, SECCOMP_GET_NOTIF_SIZES, writes three 16-bit sizes.
func (o *outputs) seccomp() {
	switch uint32(o.args[0]) {
	case 0, 1, 2:
	case 3:
		o.arg(2, 6)
	default:
		o.opaque = o.errno == 0
	}
}

// keyctl: linux/keyctl.h. Reading operations give the full length as result
// and copy at most the room.
func (o *outputs) keyctl() {
	switch op := uint32(o.args[0]); op {
	case 6, 11, 17: // DESCRIBE, READ, GET_SECURITY
		o.received(o.args[2], o.args[3])
	case 23: // DH_COMPUTE
		o.received(o.args[2], o.args[3])
	case 24: // PKEY_QUERY: struct keyctl_pkey_query
		o.arg(4, 56)
	case 25, 26, 27: // PKEY_ENCRYPT, DECRYPT, SIGN: out_len is the third word of the parameters
		if n, ok := readUint32(o.m, o.args[1]+8); ok {
			o.arg(4, uint64(n))
		}
	case 31: // CAPABILITIES
		o.arg(1, o.args[2])
	default:
		if _, ok := setName("keyctl", uint64(op)); !ok && o.errno == 0 {
			o.opaque = true
		}
	}
}

// lsm lists a block whose size word holds, after the call, the size written or
// the size that would be needed.
func (o *outputs) lsm(block, sizePtr uint64) {
	o.add(sizePtr, 4)
	if n, ok := readUint32(o.m, sizePtr); ok {
		o.add(block, uint64(n))
	}
}
