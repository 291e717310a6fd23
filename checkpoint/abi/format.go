package abi

import (
	"bytes"
	"strings"
)

// Printing in the manner of strace(1), from the rows of the table. What is
// shown is what the arguments point at in the memory given, so it is right at
// the call's entry. The text is bounded whatever memory holds.

// Bounds of one call's text.
const (
	maxText     = 32   // bytes shown of a buffer
	maxPath     = 4096 // bytes of a path, PATH_MAX
	maxElements = 8    // shown of a vector
)

// Format returns the call as text: the name and its arguments in parentheses,
// such as
//
//	openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC)
//
// Flags are shown by name, paths and the first bytes of buffers that the kernel
// reads in quotes, small structs and vectors by their fields, all other addresses
// in hexadecimal. m may be nil: then addresses are all that is shown of memory.
func Format(m Memory, nr int64, args [6]uint64) string {
	f := formatter{m: m, args: args}
	return f.call(nr)
}

// call writes the name and the arguments.
func (f *formatter) call(nr int64) string {
	s, ok := Lookup(nr)
	f.WriteString(Name(nr))
	f.WriteByte('(')
	n := f.count(s)
	for i := range n {
		if i > 0 {
			f.WriteString(", ")
		}
		if nr == SYS_FCNTL && i == 2 {
			f.WriteString(fcntlArg(f.args[1], f.args[2]))
			continue
		}
		f.arg(s, i)
	}
	if !ok {
		f.trimZeros()
	}
	f.WriteByte(')')
	return f.String()
}

// FormatResult returns a call's result as text: a number as the row says, or
// "-1 ENOENT (No such file or directory)", or "?" with the restart code for a
// call that was interrupted and for one that does not return.
func FormatResult(nr, ret int64) string {
	s, _ := Lookup(nr)
	if RestartKind(ret) != RestartNone {
		e, _ := ErrnoOf(ret)
		return "? " + e.Error()
	}
	if e, ok := ErrnoOf(ret); ok && s.Ret != KindNone {
		return "-1 " + e.Error()
	}
	switch s.Ret {
	case KindNone:
		return "?"
	case KindPtr, KindHex:
		return hex(uint64(ret))
	case KindMode:
		return octal(uint64(ret))
	case KindUint, KindUID:
		return utoa(uint64(uint32(ret)))
	default:
		return itoa(ret)
	}
}

// FormatCall returns a whole call as text, as it is after its end: arguments
// that the kernel has filled are shown by their content, then the result:
//
//	read(3, "root:x:0:0:"..., 4096) = 1187
//
// m is the memory after the call.
func FormatCall(m Memory, nr int64, args [6]uint64, ret int64) string {
	f := formatter{m: m, args: args, ret: ret}
	_, failed := ErrnoOf(ret)
	f.filled = !failed
	return f.call(nr) + " = " + FormatResult(nr, ret)
}

type formatter struct {
	strings.Builder
	m      Memory
	args   [6]uint64
	ret    int64
	filled bool // the call has succeeded: outputs have content
}

// count returns how many arguments are shown: a mode only when open creates, an
// argument of fcntl only when the command has one.
func (f *formatter) count(s *Syscall) int {
	flags := uint64(O_CREAT)
	switch s.NR {
	case SYS_OPEN:
		flags = f.args[1]
	case SYS_OPENAT:
		flags = f.args[2]
	case SYS_FCNTL:
		switch uint32(f.args[1]) {
		case F_GETFD, F_GETFL, F_GETOWN, F_GETSIG, F_GETLEASE, F_GETPIPE_SZ, F_GET_SEALS:
			return 2
		}
	}
	n := len(s.Args)
	if flags&(O_CREAT|O_TMPFILE&^O_DIRECTORY) == 0 {
		n--
	}
	return n
}

// fcntlArg returns the third argument of fcntl as its command reads it.
func fcntlArg(cmd, v uint64) string {
	switch uint32(cmd) {
	case F_DUPFD, F_DUPFD_CLOEXEC, F_SETOWN, F_SETPIPE_SZ, F_SETLEASE:
		return itoa(int64(int32(v)))
	case F_SETFL:
		return setOpen.format(v)
	case F_SETFD:
		return flagSet{{1, "FD_CLOEXEC"}}.format(v)
	case F_SETSIG:
		return Signal(int32(v)).String()
	}
	return hex(v)
}

// trimZeros drops the last arguments of an unknown call that are 0.
func (f *formatter) trimZeros() {
	text := f.String()
	for strings.HasSuffix(text, ", 0") {
		text = text[:len(text)-3]
	}
	f.Reset()
	f.WriteString(text)
}

func (f *formatter) arg(s *Syscall, i int) {
	a, v := &s.Args[i], f.args[i]
	if !a.Kind.IsAddr() {
		f.WriteString(formatValue(a, v))
		return
	}
	if v == 0 {
		f.WriteString("NULL")
		return
	}
	if !f.pointed(s, a, v) {
		f.WriteString(hex(v))
	}
}

// formatValue returns an argument that is no address.
func formatValue(a *Arg, v uint64) string {
	switch a.Kind {
	case KindInt, KindFD, KindPID, KindUID:
		return itoa(int64(int32(v)))
	case KindUint:
		return utoa(uint64(uint32(v)))
	case KindLong, KindOff:
		return itoa(int64(v))
	case KindUlong, KindSize:
		return utoa(v)
	case KindDirFD:
		if int32(v) == AT_FDCWD {
			return "AT_FDCWD"
		}
		return itoa(int64(int32(v)))
	case KindMode:
		return octal(v)
	case KindDev:
		return "makedev(" + utoa(devMajor(v)) + ", " + utoa(devMinor(v)) + ")"
	case KindSigno:
		if int32(v) == 0 {
			return "0"
		}
		return Signal(int32(v)).String()
	case KindFlags, KindEnum:
		if set, ok := sets[a.Set]; ok {
			return set.format(v)
		}
	default: // KindHex, and a set without a table
	}
	if v == 0 {
		return "0"
	}
	return hex(v)
}

// AT_FDCWD stands for the current directory: include/uapi/linux/fcntl.h.
const AT_FDCWD = -100

// The two halves of a device number are interleaved: include/linux/kdev_t.h.
func devMajor(v uint64) uint64 { return v >> 8 & 0xfff }
func devMinor(v uint64) uint64 { return v&0xff | v>>12&0xfff00 }

// pointed writes what is at address v, or reports that only the address can be
// shown.
func (f *formatter) pointed(s *Syscall, a *Arg, v uint64) bool {
	switch a.Kind {
	case KindPath:
		return f.str(v, maxPath)
	case KindStr:
		return f.str(v, 4*maxText)
	case KindStrv:
		return f.strv(v)
	case KindIn, KindInOut:
		return f.sized(s, a, v)
	case KindOut:
		return f.filled && f.sized(s, a, v)
	case KindIovIn:
		return f.iovec(v, f.args[a.Of], 1<<63)
	case KindIovOut:
		return f.filled && f.iovec(v, f.args[a.Of], uint64(f.ret))
	case KindSockOut:
		n, ok := readUint32(f.m, f.args[a.Of])
		return f.filled && ok && f.sockaddr(v, uint64(n))
	case KindSockIn:
		return f.sockaddr(v, uint64(uint32(f.args[a.Of])))
	case KindLenPtr:
		n, ok := readUint32(f.m, v)
		if ok {
			f.WriteString("[" + utoa(uint64(n)) + "]")
		}
		return ok
	default:
		return false
	}
}

// sized writes the elements of a sized argument.
func (f *formatter) sized(s *Syscall, a *Arg, v uint64) bool {
	n := uint64(1)
	switch a.Len {
	case LenOne:
	case LenN:
		n = uint64(a.N)
	case LenArg, LenRet:
		o := outputs{args: f.args}
		n = o.length(s, a.Of)
	}
	if a.Len == LenRet && f.filled {
		n = min(n, uint64(f.ret))
	}
	if a.Struct == "" {
		return a.Kind != KindInOut && f.buffer(v, n)
	}
	show, ok := structFormats[a.Struct]
	if !ok {
		return false
	}
	if a.Len == LenOne {
		return f.element(show, v, a.Size)
	}
	return f.vector(v, n, uint64(a.Size), func(at uint64) bool { return f.element(show, at, a.Size) })
}

// element writes one struct of size bytes at v.
func (f *formatter) element(show func(b []byte) string, v uint64, size uint32) bool {
	b := make([]byte, size)
	if f.m == nil || f.m.ReadAt(v, b) != len(b) {
		return false
	}
	f.WriteString(show(b))
	return true
}

// vector writes n elements in brackets, as far as they are readable and as few
// as maxElements. It reports false, having written nothing, when the first one
// cannot be read.
func (f *formatter) vector(v, n, size uint64, element func(at uint64) bool) bool {
	before := f.String()
	f.WriteByte('[')
	for i := range min(n, maxElements) {
		if i > 0 {
			f.WriteString(", ")
		}
		if element(v + i*size) {
			continue
		}
		if i == 0 {
			f.Reset()
			f.WriteString(before)
			return false
		}
		f.WriteString(hex(v + i*size))
		n = i + 1
		break
	}
	if n > maxElements {
		f.WriteString(", ...")
	}
	f.WriteByte(']')
	return true
}

// buffer writes the first bytes of n at v.
func (f *formatter) buffer(v, n uint64) bool {
	if f.m == nil {
		return false
	}
	b := make([]byte, min(n, maxText))
	got := f.m.ReadAt(v, b)
	if got < len(b) {
		return false
	}
	f.WriteString(Quote(b))
	if n > maxText {
		f.WriteString("...")
	}
	return true
}

// str writes the NUL-terminated string at v, cut at limit bytes.
func (f *formatter) str(v uint64, limit int) bool {
	text, whole, ok := readString(f.m, v, limit)
	if !ok {
		return false
	}
	f.WriteString(Quote(text))
	if !whole {
		f.WriteString("...")
	}
	return true
}

// strv writes a NULL-terminated vector of strings.
func (f *formatter) strv(v uint64) bool {
	n := uint64(0)
	for ; n <= maxElements; n++ {
		p, ok := readUint64(f.m, v+8*n)
		if !ok || p == 0 {
			break
		}
	}
	return f.vector(v, n, 8, func(at uint64) bool {
		p, ok := readUint64(f.m, at)
		return ok && f.str(p, 4*maxText)
	})
}

// readString returns the bytes of the string at addr without its NUL, and
// whether the NUL was found within limit bytes; ok is false when no byte could be
// read.
func readString(m Memory, addr uint64, limit int) (text []byte, whole, ok bool) {
	if m == nil {
		return nil, false, false
	}
	var chunk [256]byte
	for len(text) < limit {
		// Not across a page, so that a string before a hole is read whole.
		n := min(limit-len(text), len(chunk), int(PageSize-addr%PageSize))
		got := m.ReadAt(addr, chunk[:n])
		got = min(max(got, 0), n)
		if i := bytes.IndexByte(chunk[:got], 0); i >= 0 {
			return append(text, chunk[:i]...), true, true
		}
		text = append(text, chunk[:got]...)
		if got < n {
			return text, false, len(text) > 0
		}
		addr += uint64(n)
	}
	return text, false, true
}

// Quote returns b as a C string literal: printable ASCII as it is, the usual
// escapes, all else in octal, as few digits as the next byte allows.
func Quote(b []byte) string {
	var q strings.Builder
	q.WriteByte('"')
	for at, c := range b {
		if i := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c); i >= 0 {
			q.WriteByte('\\')
			q.WriteByte(`abtnvfr"\`[i])
		} else if c >= ' ' && c <= '~' {
			q.WriteByte(c)
		} else {
			digits := []byte{'\\', '0' + c>>6, '0' + c>>3&7, '0' + c&7}
			if at+1 == len(b) || b[at+1] < '0' || b[at+1] > '9' {
				for len(digits) > 2 && digits[1] == '0' {
					digits = append(digits[:1], digits[2:]...)
				}
			}
			q.Write(digits)
		}
	}
	q.WriteByte('"')
	return q.String()
}
