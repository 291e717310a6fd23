package abi

import (
	"bytes"
	"encoding/binary"
	"net/netip"
)

// How structs in memory are printed: one function for each struct that is shown by its
// fields, for vectors, socket addresses and wait statuses. Their layouts are those of
// the kernel's headers on x86-64. Calls and plain arguments are printed in format.go,
// flags in flagset.go, and signal information in siginfo.go.

// structFormats has the structs that are shown by their fields. Each function
// gets as many bytes as syscalls.txt says that the struct has.
var structFormats = map[string]func(b []byte) string{
	"int":    func(b []byte) string { return itoa(int64(int32(binary.LittleEndian.Uint32(b)))) },
	"long":   func(b []byte) string { return itoa(int64(binary.LittleEndian.Uint64(b))) },
	"off":    func(b []byte) string { return itoa(int64(binary.LittleEndian.Uint64(b))) },
	"sigset": func(b []byte) string { return Sigset(binary.LittleEndian.Uint64(b)).String() },
	"timespec": func(b []byte) string {
		return "{tv_sec=" + signed(b, 0) + ", tv_nsec=" + signed(b, 8) + "}"
	},
	"timeval": func(b []byte) string {
		return "{tv_sec=" + signed(b, 0) + ", tv_usec=" + signed(b, 8) + "}"
	},
	"itimerspec": func(b []byte) string {
		return "{it_interval={tv_sec=" + signed(b, 0) + ", tv_nsec=" + signed(b, 8) +
			"}, it_value={tv_sec=" + signed(b, 16) + ", tv_nsec=" + signed(b, 24) + "}}"
	},
	"itimerval": func(b []byte) string {
		return "{it_interval={tv_sec=" + signed(b, 0) + ", tv_usec=" + signed(b, 8) +
			"}, it_value={tv_sec=" + signed(b, 16) + ", tv_usec=" + signed(b, 24) + "}}"
	},
	"rlimit": func(b []byte) string {
		return "{rlim_cur=" + limit(b, 0) + ", rlim_max=" + limit(b, 8) + "}"
	},
	"pollfd":      formatPollfd,
	"epoll_event": formatEpollEvent,
	"sigaction":   formatSigaction,
	"stack_t": func(b []byte) string {
		return "{ss_sp=" + hex(binary.LittleEndian.Uint64(b)) + ", ss_flags=" + stackFlags.format(uint64(binary.LittleEndian.Uint32(b[8:]))) +
			", ss_size=" + utoa(binary.LittleEndian.Uint64(b[16:])) + "}"
	},
	"siginfo": func(b []byte) string { return Siginfo(b).String() },
	"open_how": func(b []byte) string {
		return "{flags=" + setOpen.format(binary.LittleEndian.Uint64(b)) + ", mode=" + octal(binary.LittleEndian.Uint64(b[8:])) +
			", resolve=" + hex(binary.LittleEndian.Uint64(b[16:])) + "}"
	},
	"stat":    formatStat,
	"wstatus": func(b []byte) string { return "[" + FormatWaitStatus(binary.LittleEndian.Uint32(b)) + "]" },
	"utsname": formatUtsname,
	"utimbuf": func(b []byte) string { return "{actime=" + signed(b, 0) + ", modtime=" + signed(b, 8) + "}" },
}

var stackFlags = flagSet{{SS_ONSTACK, "SS_ONSTACK"}, {SS_DISABLE, "SS_DISABLE"}, {SS_AUTODISARM, "SS_AUTODISARM"}}

func signed(b []byte, off int) string { return itoa(int64(binary.LittleEndian.Uint64(b[off:]))) }

func limit(b []byte, off int) string {
	v := binary.LittleEndian.Uint64(b[off:])
	if v == 1<<64-1 {
		return "RLIM64_INFINITY"
	}
	return utoa(v)
}

// fileKinds has the names of the top four bits of a mode: linux/stat.h.
var fileKinds = [16]string{
	1: "S_IFIFO", 2: "S_IFCHR", 4: "S_IFDIR", 6: "S_IFBLK", 8: "S_IFREG", 10: "S_IFLNK", 12: "S_IFSOCK",
}

// formatStat shows of struct stat what people look for: st_dev and st_ino are 8
// bytes at 0 and 8, st_mode 4 at 24, st_rdev at 40, st_size at 48.
func formatStat(b []byte) string {
	mode := uint64(binary.LittleEndian.Uint32(b[24:]))
	text := "{st_mode=" + octal(mode)
	if k := fileKinds[mode>>12&15]; k != "" {
		text = "{st_mode=" + k + "|" + octal(mode&0o7777)
	}
	if t := mode >> 12; t == 2 || t == 6 {
		rdev := binary.LittleEndian.Uint64(b[40:])
		return text + ", st_rdev=makedev(" + utoa(devMajor(rdev)) + ", " + utoa(devMinor(rdev)) + "), ...}"
	}
	return text + ", st_size=" + signed(b, 48) + ", ...}"
}

// formatUtsname: six strings of 65 bytes; system, node, release.
func formatUtsname(b []byte) string {
	field := func(i int) string {
		s := b[i*65 : (i+1)*65]
		if n := bytes.IndexByte(s, 0); n >= 0 {
			s = s[:n]
		}
		return Quote(s)
	}
	return "{sysname=" + field(0) + ", nodename=" + field(1) + ", release=" + field(2) + ", ...}"
}

// pollBits: asm-generic/poll.h.
var pollBits = flagSet{
	{0x1, "POLLIN"},
	{0x2, "POLLPRI"},
	{0x4, "POLLOUT"},
	{0x8, "POLLERR"},
	{0x10, "POLLHUP"},
	{0x20, "POLLNVAL"},
	{0x40, "POLLRDNORM"},
	{0x80, "POLLRDBAND"},
	{0x100, "POLLWRNORM"},
	{0x200, "POLLWRBAND"},
	{0x400, "POLLMSG"},
	{0x2000, "POLLRDHUP"},
}

func formatPollfd(b []byte) string {
	return "{fd=" + itoa(int64(int32(binary.LittleEndian.Uint32(b)))) +
		", events=" + pollBits.format(uint64(binary.LittleEndian.Uint16(b[4:]))) + "}"
}

// epollBits: linux/eventpoll.h.
var epollBits = flagSet{
	{0x1, "EPOLLIN"},
	{0x2, "EPOLLPRI"},
	{0x4, "EPOLLOUT"},
	{0x8, "EPOLLERR"},
	{0x10, "EPOLLHUP"},
	{0x40, "EPOLLRDNORM"},
	{0x100, "EPOLLWRNORM"},
	{0x2000, "EPOLLRDHUP"},
	{1 << 28, "EPOLLEXCLUSIVE"},
	{1 << 29, "EPOLLWAKEUP"},
	{1 << 30, "EPOLLONESHOT"},
	{1 << 31, "EPOLLET"},
}

func formatEpollEvent(b []byte) string {
	return "{events=" + epollBits.format(uint64(binary.LittleEndian.Uint32(b))) +
		", data=" + hex(binary.LittleEndian.Uint64(b[4:])) + "}"
}

// formatSigaction: handler, flags, restorer, mask; each of 8 bytes.
func formatSigaction(b []byte) string {
	handler := binary.LittleEndian.Uint64(b)
	text := hex(handler)
	switch handler {
	case SIG_DFL:
		text = "SIG_DFL"
	case SIG_IGN:
		text = "SIG_IGN"
	}
	flags := binary.LittleEndian.Uint64(b[8:])
	text = "{sa_handler=" + text + ", sa_mask=" + Sigset(binary.LittleEndian.Uint64(b[24:])).String() + ", sa_flags=" + setSigaction.format(flags)
	if flags&SA_RESTORER != 0 {
		text += ", sa_restorer=" + hex(binary.LittleEndian.Uint64(b[16:]))
	}
	return text + "}"
}

// FormatWaitStatus returns a status of the wait calls as text: "exit 1", "killed
// by SIGSEGV", "dumped by SIGABRT", "stopped by SIGSTOP", "continued".
func FormatWaitStatus(status uint32) string {
	sig := Signal(status & 0x7f)
	switch {
	case status == 0xffff:
		return "continued"
	case sig == 0:
		return "exit " + utoa(uint64(status>>8&0xff))
	case sig == 0x7f:
		return "stopped by " + Signal(status>>8&0xff).String()
	case status&0x80 != 0:
		return "dumped by " + sig.String()
	}
	return "killed by " + sig.String()
}

// iovec writes a vector of n buffers of which the first total bytes have content.
func (f *formatter) iovec(v, n, total uint64) bool {
	return f.vector(v, min(n, MaxIov), 16, func(at uint64) bool {
		base, ok1 := readUint64(f.m, at)
		size, ok2 := readUint64(f.m, at+8)
		if !ok1 || !ok2 {
			return false
		}
		f.WriteString("{iov_base=")
		got := min(size, total)
		total -= got
		if !f.buffer(base, got) {
			f.WriteString(hex(base))
		}
		f.WriteString(", iov_len=" + utoa(size) + "}")
		return true
	})
}

// sockaddr writes a socket address of n bytes. Ports and addresses are in
// network byte order.
func (f *formatter) sockaddr(v, n uint64) bool {
	b := make([]byte, min(n, sizeofSockaddrStorage))
	if f.m == nil || len(b) < 2 || f.m.ReadAt(v, b) != len(b) {
		return false
	}
	f.WriteString(FormatSockaddr(b))
	return true
}

// FormatSockaddr returns a socket address as text:
// "{AF_INET, 127.0.0.1:80}", `{AF_UNIX, "/run/x"}`, `{AF_UNIX, @"abstract"}`.
// b is the address as in memory.
func FormatSockaddr(b []byte) string {
	if len(b) < 2 {
		return "{}"
	}
	family := uint64(binary.LittleEndian.Uint16(b))
	name := setAf.format(family)
	switch {
	case family == AF_INET && len(b) >= 8:
		ip := netip.AddrFrom4([4]byte(b[4:8]))
		return "{" + name + ", " + netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[2:])).String() + "}"
	case family == AF_INET6 && len(b) >= 24:
		ip := netip.AddrFrom16([16]byte(b[8:24]))
		return "{" + name + ", " + netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[2:])).String() + "}"
	case family == AF_UNIX && len(b) == 2:
		return "{" + name + "}"
	case family == AF_UNIX && b[2] == 0:
		return "{" + name + ", @" + Quote(b[3:]) + "}"
	case family == AF_UNIX:
		path := b[2:]
		for i, c := range path {
			if c == 0 {
				path = path[:i]
				break
			}
		}
		return "{" + name + ", " + Quote(path) + "}"
	case family == AF_NETLINK && len(b) >= 12:
		return "{" + name + ", pid=" + utoa(uint64(binary.LittleEndian.Uint32(b[4:]))) + ", groups=" + hex(uint64(binary.LittleEndian.Uint32(b[8:]))) + "}"
	}
	return "{" + name + ", " + Quote(b[2:min(len(b), 2+maxText)]) + "}"
}
