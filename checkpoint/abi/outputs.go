package abi

import "errors"

// Which memory a system call may have written, from its row, its arguments and its
// result. Here is what holds for all calls, and how a row's argument kinds are followed.
// The calls whose row does not say it all are in the sys_*.go files, by area.

// ErrOpaque says that the memory a call has written cannot be listed.
var ErrOpaque = errors.New("abi: the effects on memory cannot be listed")

// Bounds of one answer. A call that may have written more than MaxOutput bytes
// is opaque. MaxIov is the kernel's own limit, UIO_MAXIOV (linux/uio.h): it
// refuses longer vectors before it writes.
const (
	MaxOutput = 1 << 30
	MaxIov    = 1024
)

// probeAbove is the length of an unfinished argument range from which on its
// end is looked for in memory instead of trusted: programs pass SSIZE_MAX.
const probeAbove = 1 << 20

// Outputs appends to dst the memory ranges that the kernel may have written for
// call nr with the given arguments (rdi, rsi, rdx, r10, r8, r9) that has
// returned ret, and returns the extended slice. m is the memory after the
// call; when it also implements [Hints] the answer is tighter.
//
// The list is a superset of what was written: whole argument ranges after a
// short count or an error that the kernel may find half way. Ranges may overlap
// and may reach into absent memory, where nothing was written. Pointers that are
// NULL are not listed. Writes that are not by this call's arguments are not
// either: the clear_child_tid word at a thread's exit, robust futexes, pages
// that change because a mapped file changed (EffectFileWrite) or because the
// map changed (EffectMem), and the signal frame.
//
// The error is ErrOpaque, with dst unchanged, when the ranges cannot be listed:
// an unknown number or command, or more than MaxOutput bytes. Calls of class
// EffectOpaque are always so, except where the error shows that nothing happened.
func Outputs(dst []Range, m Memory, nr int64, args [6]uint64, ret int64) ([]Range, error) {
	return OutputsBy(dst, m, m, nr, args, ret)
}

// OutputsBy is Outputs for a call that may have written over the vectors and headers of
// messages in which it found its buffers: blocks is memory with what those were at its entry.
func OutputsBy(dst []Range, m, blocks Memory, nr int64, args [6]uint64, ret int64) ([]Range, error) {
	s, known := Lookup(nr)
	e, _ := ErrnoOf(ret)
	if e == ENOSYS && !s.Irregular || known && s.Absent {
		return dst, nil // the kernel has not looked at the arguments
	}
	o := outputs{m: m, blocks: blocks, nr: nr, args: args, ret: ret, errno: e, ranges: dst}
	o.hints, _ = m.(Hints)
	switch f := irregular[nr]; {
	case !known:
		o.opaque = e != ENOSYS
	case f != nil:
		f(&o)
	case s.Effect == EffectOpaque:
		o.opaque = true
	default:
		o.regular(s)
	}
	if o.opaque {
		return dst, ErrOpaque
	}
	return o.ranges, nil
}

// outputs collects the ranges of one call.
type outputs struct {
	m      Memory
	blocks Memory // in which vectors and the pointers of messages are
	hints  Hints  // nil when m has none
	nr     int64
	args   [6]uint64
	ret    int64
	errno  Errno // 0 when the call succeeded
	ranges []Range
	total  uint64
	opaque bool
}

// irregular has the functions of the irregular rows, by number. It is filled by
// the sys_*.go files through irregularRows.
var irregular = irregularRows(fileRows, netRows, pollRows, ipcRows, procRows, memRows, futexRows)

type rowFuncs map[int64]func(*outputs)

func irregularRows(areas ...rowFuncs) rowFuncs {
	all := rowFuncs{}
	for _, area := range areas {
		for nr, f := range area {
			all[nr] = f
		}
	}
	return all
}

// add lists [addr, addr+n), cut at the end of user memory. The NULL pointer
// means that the program does not want this output.
func (o *outputs) add(addr, n uint64) {
	if addr == 0 || n == 0 || addr >= TaskSize || o.opaque {
		return
	}
	n = min(n, TaskSize-addr)
	if n > probeAbove {
		n = accessible(o.m, addr, min(n, MaxOutput+1))
	}
	if n == 0 {
		return
	}
	if o.total += n; o.total > MaxOutput {
		o.opaque = true
		return
	}
	o.ranges = append(o.ranges, Range{addr, n})
}

// arg lists n bytes at argument i.
func (o *outputs) arg(i int, n uint64) { o.add(o.args[i], n) }

// addArray lists count elements of size bytes.
func (o *outputs) addArray(addr, count, size uint64) {
	if size != 0 && count > (1<<63)/size {
		count = (1 << 63) / size // cut again by add
	}
	o.add(addr, count*size)
}

// clean reports whether the call failed with an error that the kernel finds
// before it writes to any argument.
func (o *outputs) clean() bool {
	switch o.errno {
	case EBADF, ENOENT, ENOTDIR, ENOTSOCK, ENOSYS, EISDIR, ESPIPE:
		return true
	case EINVAL: // what is no link
		return o.nr == SYS_READLINK || o.nr == SYS_READLINKAT
	case ENODATA, EOPNOTSUPP, ERANGE: // the kernel has an attribute in memory of its own first (linux fs/xattr.c)
		return o.nr >= SYS_GETXATTR && o.nr <= SYS_FLISTXATTR
	default:
		return false
	}
}

// blocked reports whether the call ended before there was anything to give:
// no data without waiting, or a signal first.
func (o *outputs) blocked() bool {
	switch o.errno {
	case EAGAIN, EINTR, ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK:
		return true
	default:
		return false
	}
}

// filled lists a buffer of room bytes at addr into which a successful call says
// to have put got bytes. A short count may hide bytes that were copied before
// a fault; when the buffer cannot have faulted the count is exact.
func (o *outputs) filled(addr, got, room uint64) {
	if o.writable(addr, room) {
		room = min(got, room)
	}
	o.add(addr, room)
}

// writable reports whether a buffer of room bytes at addr cannot have faulted.
func (o *outputs) writable(addr, room uint64) bool {
	return room == 0 || o.hints != nil && addr < TaskSize && room <= TaskSize-addr && o.hints.Writable(addr, room)
}

// received lists a buffer of room bytes at addr by the call's result, a byte
// count or an error.
func (o *outputs) received(addr, room uint64) {
	switch {
	case o.errno == 0:
		o.filled(addr, uint64(o.ret), room)
	case !o.clean():
		o.add(addr, room)
	}
}

// untouched reports whether a receiving call on descriptor args[0] was blocked
// without having written: always, except on a datagram socket, where the kernel
// copies a packet before it checks its sum, and waits for the next if it is
// wrong (net/ipv4/udp.c, udp_recvmsg). assume stands in for a missing hint.
func (o *outputs) untouched(assume bool) bool {
	if o.hints != nil {
		assume = o.hints.Datagram(int32(o.args[0]))
	}
	return o.blocked() && !assume
}

// regular lists the outputs of a row by its argument kinds.
func (o *outputs) regular(s *Syscall) {
	if o.clean() {
		return
	}
	for i := range s.Args {
		a := &s.Args[i]
		switch a.Kind {
		case KindOut, KindInOut:
			o.sized(s, i)
		case KindSockOut:
			o.sockaddr(i, int(a.Of))
		case KindIovOut:
			o.iovec(o.args[i], o.args[a.Of])
		default: // not written
		}
	}
}

// length returns the value of the argument that gives a length, as wide as the
// kernel reads it; a negative one is none.
func (o *outputs) length(s *Syscall, i uint8) uint64 {
	switch v := o.args[i]; s.Args[i].Kind {
	case KindInt:
		return uint64(max(int32(v), 0))
	case KindUint:
		return uint64(uint32(v))
	case KindLong:
		return uint64(max(int64(v), 0))
	default:
		return v
	}
}

// sized lists a KindOut or KindInOut argument.
func (o *outputs) sized(s *Syscall, i int) {
	a := &s.Args[i]
	size := uint64(a.Size)
	switch a.Len {
	case LenOne:
		o.arg(i, size)
	case LenN:
		o.addArray(o.args[i], uint64(a.N), size)
	case LenArg:
		o.addArray(o.args[i], o.length(s, a.Of), size)
	case LenRet:
		room := min(o.length(s, a.Of), TaskSize/size)
		if o.errno == 0 {
			o.filled(o.args[i], uint64(o.ret)*size, room*size)
		} else if !o.blocked() {
			o.arg(i, room*size)
		}
	}
}

// sockaddr lists a socket address and its length word, which is written without
// an address too. After the call the word holds the address's full length, which
// is at least what was written.
func (o *outputs) sockaddr(addr, lenPtr int) {
	if o.blocked() {
		return
	}
	o.add(o.args[lenPtr], 4)
	n, ok := readUint32(o.m, o.args[lenPtr])
	if !ok || n > sizeofSockaddrStorage {
		n = sizeofSockaddrStorage
	}
	o.arg(addr, uint64(n))
}

// iovec lists the buffers of a vector of count struct iovec at addr, by the
// call's result: all of a vector that got a full count, the filled front part of
// a short one. Where one of its buffers may have faulted that part is not known: a
// stream socket copies packet by packet, does not count the one that meets the fault, and
// has by then filled the buffers before it (net/unix/af_unix.c,
// unix_stream_read_generic).
func (o *outputs) iovec(addr, count uint64) {
	count = uint64(uint32(count)) // import_iovec takes an unsigned int
	if o.clean() || count > MaxIov {
		return
	}
	var vector []Range
	exact := o.errno == 0
	for i := range count {
		base, ok1 := readUint64(o.blocks, addr+i*16)
		n, ok2 := readUint64(o.blocks, addr+i*16+8)
		if !ok1 || !ok2 {
			break // the kernel has copied the whole vector before it wrote anything
		}
		vector = append(vector, Range{base, n})
		exact = exact && o.writable(base, n)
	}
	left := uint64(max(o.ret, 0))
	for _, b := range vector {
		if o.opaque {
			return
		}
		if exact {
			b.Len = min(b.Len, left)
			left -= b.Len
		}
		o.add(b.Addr, b.Len)
	}
}

const sizeofSockaddrStorage = 128 // struct __kernel_sockaddr_storage, linux/socket.h
