package taint

import (
	"math/bits"

	"vplay/checkpoint/abi"
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// Uses of marked values: where they decide what the program does, and not only what it
// computes.

// tell tells of one.
func (t *Engine) tell(u *Use) (isDone bool) { return t.o.Use != nil && t.o.Use(u) }

// check tells what the instruction uses. isAddress says that an address is made of something
// that is still marked, by tag.
func (t *Engine) check(c *x86.CPU, in *x86.Inst, k *instruction) (tag Tag, isAddress bool) {
	g := &t.cur.regs
	if k.isJump {
		t.checkJump(c, in, k)
		return 0, false
	}
	address := k.Address
	if k.Indirect {
		if t.checkTarget(c, in, k) {
			return 0, false
		}
	}
	if tag, has := g.any(&address); has {
		if !t.tell(&Use{Kind: Address, PC: c.RIP, Tag: tag}) {
			return tag, true
		}
		g.clearSet(&address)
	}
	return 0, false
}

// checkJump is check for conditional jumps.
func (t *Engine) checkJump(c *x86.CPU, in *x86.Inst, k *instruction) {
	g := &t.cur.regs
	switch {
	case k.mnemonic[0] == 'J' && k.mnemonic[1] != 'R' && k.mnemonic != "JECXZ":
		if g.flag != 0 && isOpen(in.Opc&15, c.Flags(), g.flag) && !t.decidesNothing(c, in) && t.tell(&Use{Kind: Branch, PC: c.RIP, Tag: g.flagTag}) {
			g.setFlags(^uint64(0), 0, 0)
		}
	default: // LOOP and JRCXZ: the count, and ZF
		zf := k.mnemonic == "LOOPE" || k.mnemonic == "LOOPNE"
		if g.r[x86.RCX] != 0 || zf && g.flag&x86.FlagZF != 0 {
			tag := g.rTag[x86.RCX]
			if g.r[x86.RCX] == 0 {
				tag = g.flagTag
			}
			if t.tell(&Use{Kind: Branch, PC: c.RIP, Tag: tag}) {
				g.setGeneral(x86.RCX, ^uint64(0), 0, 0)
				g.setFlags(x86.FlagZF, 0, 0)
			}
		}
	}
}

// checkTarget is check for where an indirect jump or call goes.
func (t *Engine) checkTarget(c *x86.CPU, in *x86.Inst, k *instruction) (isDone bool) {
	g := &t.cur.regs
	if in.Flags&x86.InstMem == 0 {
		if g.r[in.RM&15] == 0 {
			return false
		}
		if isDone = t.tell(&Use{Kind: Target, PC: c.RIP, Tag: g.rTag[in.RM&15]}); isDone {
			g.setGeneral(in.RM&15, ^uint64(0), 0, 0)
		}
		return isDone
	}
	var base dataflow.RegSet
	for _, r := range []uint8{in.Base, in.Index} {
		if r < x86.NoReg && r != x86.RSP {
			base.Add(dataflow.BytesOf(r, 0, 8))
		}
	}
	if dataflow.UsesFrame(c, in) {
		base.Remove(dataflow.BytesOf(x86.RBP, 0, 8))
	}
	if tag, has := g.any(&base); has && t.tell(&Use{Kind: Address, PC: c.RIP, Tag: tag}) {
		g.clearSet(&base)
	}
	var b [8]byte
	a := t.key(c.Address(in))
	if tag := t.Mem.Load(a, b[:]); tag != 0 && t.tell(&Use{Kind: Target, PC: c.RIP, Tag: tag}) {
		t.Mem.Clear(a, 8)
	}
	return true
}

// isTaken says whether a jump of condition code cc (SDM vol. 2, appendix B.1.4.7) is taken.
func isTaken(cc uint8, f uint64) (taken bool) {
	has := func(b uint64) bool { return f&b != 0 }
	switch cc >> 1 {
	case 0:
		taken = has(x86.FlagOF)
	case 1:
		taken = has(x86.FlagCF)
	case 2:
		taken = has(x86.FlagZF)
	case 3:
		taken = has(x86.FlagCF) || has(x86.FlagZF)
	case 4:
		taken = has(x86.FlagSF)
	case 5:
		taken = has(x86.FlagPF)
	case 6:
		taken = has(x86.FlagSF) != has(x86.FlagOF)
	default:
		taken = has(x86.FlagZF) || has(x86.FlagSF) != has(x86.FlagOF)
	}
	return taken != (cc&1 != 0)
}

// isOpen reports whether it depends on marked flags if a condition holds.
func isOpen(cc uint8, f, marked uint64) bool {
	marked &= x86.FlagOF | x86.FlagCF | x86.FlagZF | x86.FlagSF | x86.FlagPF
	if marked == 0 {
		return false
	}
	want := isTaken(cc, f)
	for some := marked; ; some = (some - 1) & marked { // each subset
		if isTaken(cc, f&^marked|some) != want {
			return true
		}
		if some == 0 {
			return false
		}
	}
}

// argumentRegs are the registers of a system call's arguments (man 2 syscall).
var argumentRegs = [6]uint8{x86.RDI, x86.RSI, x86.RDX, x86.R10, x86.R8, x86.R9}

// maxBuffer is how many bytes of one buffer of a system call are looked at.
const maxBuffer = 64 << 20

// checkCall tells what a system call that begins uses.
func (t *Engine) checkCall(nr int64, args *[6]uint64) {
	g := &t.cur.regs
	call, ok := abi.Lookup(nr)
	if !ok || t.o.Use == nil || g.sum == 0 && len(t.Mem.pages) == 0 {
		return
	}
	u := Use{PC: t.m.CPU.RIP - 2, NR: nr, Args: *args} // SYSCALL has two bytes
	read := readArguments(nr, args)
	for i := range min(len(call.Args), read) {
		a := &call.Args[i]
		marks := g.r[argumentRegs[i]]
		switch a.Kind {
		case abi.KindInt, abi.KindUint, abi.KindFD, abi.KindDirFD, abi.KindMode, abi.KindPID, abi.KindUID, abi.KindSigno, abi.KindEnum, abi.KindFlags:
			marks &= 0xffffffff
		default:
		}
		if marks != 0 {
			u.Kind, u.Arg, u.Tag, u.From, u.To = Argument, i, g.rTag[argumentRegs[i]], 0, 0
			if t.tell(&u) {
				g.setGeneral(argumentRegs[i], ^uint64(0), 0, 0)
			}
		}
		u.Arg = i
		switch a.Kind {
		case abi.KindIn, abi.KindInOut:
			if padded[a.Struct] {
				continue
			}
			if n, ok := bufferSize(a, args); ok {
				t.checkBuffer(u, args[i], n)
			}
		case abi.KindIovIn:
			t.checkVector(u, args[i], args[a.Of])
		case abi.KindPath, abi.KindStr:
			if args[i] != 0 {
				t.checkBuffer(u, args[i], t.stringSize(args[i], 1, maxBuffer))
			}
		case abi.KindSockIn:
			t.checkBuffer(u, args[i], t.socketAddress(args[i], args[a.Of]))
		default:
		}
	}
}

// someArguments are calls that read only so many arguments for sure (section 2 of the manual): the
// others depend on what the first ones say.
var someArguments = map[int64]int{
	abi.SYS_FCNTL: 2, abi.SYS_IOCTL: 2, abi.SYS_PRCTL: 1, abi.SYS_FUTEX: 2, abi.SYS_MREMAP: 4, abi.SYS_CLONE: 2,
	abi.SYS_SEMCTL: 3, abi.SYS_PTRACE: 3, abi.SYS_KEYCTL: 1, abi.SYS_ARCH_PRCTL: 2, abi.SYS_SHMCTL: 2, abi.SYS_MSGCTL: 2,
}

// readArguments is how many arguments a call reads: a mode only where a file is created.
func readArguments(nr int64, args *[6]uint64) int {
	const create = 0x40 | 0x400000 // O_CREAT, and the bit of O_TMPFILE that O_DIRECTORY has not
	switch n, ok := someArguments[nr]; {
	case ok:
		return n
	case nr == abi.SYS_OPEN && args[1]&create == 0:
		return 2
	case nr == abi.SYS_OPENAT && args[2]&create == 0:
		return 3
	}
	return 6
}

// padded are structures that have bytes which nobody reads, or members of which the call reads
// one.
var padded = map[string]bool{"msghdr": true, "mmsghdr": true, "sigevent": true, "epoll_event": true, "siginfo": true, "stack_t": true, "pollfd": true, "user_desc": true}

// bufferSize is how many bytes a call reads there.
func bufferSize(a *abi.Arg, args *[6]uint64) (n uint64, ok bool) {
	switch a.Len {
	case abi.LenArg:
		n = args[a.Of]
	case abi.LenN:
		n = uint64(a.N)
	case abi.LenOne:
		n = 1
	default:
		return 0, false
	}
	hi, lo := bits.Mul64(n, uint64(max(a.Size, 1)))
	return lo, hi == 0
}

// checkBuffer tells of the first run of marked bytes among those that a call reads.
func (t *Engine) checkBuffer(u Use, a, n uint64) {
	u.Kind = Buffer
	var b [1]byte
	for off := uint64(0); off < min(n, maxBuffer); off++ {
		at := a + off
		if base := at &^ (pageSize - 1); t.Mem.page(t.key(base)) == nil {
			off += pageSize - at%pageSize - 1
			continue
		}
		tag := t.Mem.Load(t.key(at), b[:])
		if b[0] == 0 {
			continue
		}
		u.Tag, u.From = tag, off
		for ; off < min(n, maxBuffer); off++ {
			if t.Mem.Load(t.key(a+off), b[:]); b[0] == 0 {
				break
			}
		}
		u.To = off
		t.tell(&u)
		return
	}
}

// maxVectors is how many buffers one call has at most (UIO_MAXIOV).
const maxVectors = 1024

// socketAddress is how many of n bytes of a socket address a call looks at (man 7 unix, ip, ipv6).
func (t *Engine) socketAddress(a, n uint64) uint64 {
	const local, inet, inet6 = 1, 2, 10 // AF_UNIX, AF_INET, AF_INET6
	switch t.word(a) & 0xffff {
	case local:
		if n <= 2 {
			return n
		}
		return 2 + max(1, t.stringSize(a+2, 1, min(n-2, 108)))
	case inet:
		return min(n, 8)
	case inet6:
		return min(n, 28)
	}
	return min(n, 128)
}

// checkVector is checkBuffer for the buffers of writev(2) and its like.
func (t *Engine) checkVector(u Use, a, n uint64) {
	t.checkBuffer(u, a, 16*min(n, maxVectors))
	for i := range min(n, maxVectors) {
		t.checkBuffer(u, t.word(a+16*i), t.word(a+16*i+8))
	}
}

// stringSize is how long a string of characters of size bytes is, with the zero behind it.
func (t *Engine) stringSize(a uint64, size int, most uint64) (n uint64) {
	var b [64]byte
	for n < most {
		got, _ := t.m.Mem.Peek(a+n, b[:])
		got -= got % size
		for i := 0; i < got; i += size {
			if !anyOf(b[i : i+size]) {
				return min(n+uint64(i+size), most)
			}
		}
		n += uint64(got)
		if got < len(b)-len(b)%size {
			break
		}
	}
	return min(n, most)
}

// word reads eight bytes of memory; what is not known reads as zero.
func (t *Engine) word(a uint64) uint64 {
	var b [8]byte
	t.m.Mem.Peek(a, b[:])
	v := vectorOf(b[:])
	return v[0]
}
