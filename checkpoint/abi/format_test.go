package abi

import (
	"strings"
	"testing"
)

func TestFormat(t *testing.T) {
	text := func(addr uint64, s string) *fakeMemory { return fourPages().bytes(addr, append([]byte(s), 0)) }
	cwd := uint64(1<<64 - 100)
	tests := []struct {
		name string
		m    Memory
		nr   int64
		args [6]uint64
		want string
	}{
		{"no arguments", nil, SYS_GETPID, argv(1, 2, 3), `getpid()`},
		{"openat", text(pa, "/etc/passwd"), SYS_OPENAT, argv(cwd, pa, O_CLOEXEC), `openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC)`},
		{"openat creating", text(pa, "x"), SYS_OPENAT, argv(5, pa, O_WRONLY|O_CREAT|O_TRUNC, 0o644), `openat(5, "x", O_WRONLY|O_CREAT|O_TRUNC, 0644)`},
		{"openat O_TMPFILE", text(pa, "x"), SYS_OPENAT, argv(5, pa, O_RDWR|O_TMPFILE, 0o600), `openat(5, "x", O_RDWR|O_TMPFILE, 0600)`},
		{"open", text(pa, "x"), SYS_OPEN, argv(pa, O_DIRECTORY, 0o644), `open("x", O_RDONLY|O_DIRECTORY)`},
		{"path absent", fourPages(), SYS_OPEN, argv(0x90000, 0), `open(0x90000, O_RDONLY)`},
		{"path without memory", nil, SYS_CHDIR, argv(pa), `chdir(0x10000)`},
		{"path at a hole", fourPages().bytes(pa+0xffd, []byte("abc")), SYS_CHDIR, argv(pa + 0xffd), `chdir("abc"...)`},
		{"path NULL", fourPages(), SYS_CHDIR, argv(0), `chdir(NULL)`},
		{"write", text(pa, "hello\n\x01\xff\"\\"), SYS_WRITE, argv(1, pa, 10), `write(1, "hello\n\1\377\"\\", 10)`},
		{"write NUL before a digit", fourPages().bytes(pa, []byte("\x001\x00x\x00")), SYS_WRITE, argv(1, pa, 5), `write(1, "\0001\0x\0", 5)`},
		{"fcntl", nil, SYS_FCNTL, argv(3, F_GETFL, 77), `fcntl(3, F_GETFL)`},
		{"fcntl F_SETFD", nil, SYS_FCNTL, argv(3, F_SETFD, 1), `fcntl(3, F_SETFD, FD_CLOEXEC)`},
		{"fcntl F_SETFL", nil, SYS_FCNTL, argv(3, F_SETFL, O_RDWR|O_NONBLOCK), `fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK)`},
		{"fcntl F_SETLK", nil, SYS_FCNTL, argv(3, F_SETLK, pa), `fcntl(3, F_SETLK, 0x10000)`},
		{"write long", text(pa, strings.Repeat("x", 100)), SYS_WRITE, argv(1, pa, 100), `write(1, "` + strings.Repeat("x", 32) + `"..., 100)`},
		{"read", fourPages(), SYS_READ, argv(3, pa, 832), `read(3, 0x10000, 832)`},
		{"negative descriptor", nil, SYS_CLOSE, argv(0xffffffff), `close(-1)`},
		{"mmap", nil, SYS_MMAP, argv(0, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, 1<<64-1, 0), `mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0)`},
		{"mmap huge", nil, SYS_MMAP, argv(0, 8192, 0, 3|MAP_HUGETLB|21<<26, 3, 4096), `mmap(NULL, 8192, 0, MAP_SHARED_VALIDATE|MAP_HUGETLB|21<<MAP_HUGE_SHIFT, 3, 0x1000)`},
		{"mprotect unknown bit", nil, SYS_MPROTECT, argv(0x1000, 4096, PROT_READ|0x40), `mprotect(0x1000, 4096, PROT_READ|0x40)`},
		{"madvise", nil, SYS_MADVISE, argv(0x1000, 4096, MADV_DONTNEED), `madvise(0x1000, 4096, MADV_DONTNEED)`},
		{"clone", nil, SYS_CLONE, argv(CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|17, 0, 0, pa, 0), `clone(CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, NULL, NULL, 0x10000, NULL)`},
		{"fork by clone", nil, SYS_CLONE, argv(17), `clone(SIGCHLD, NULL, NULL, NULL, NULL)`},
		{"kill", nil, SYS_KILL, argv(77, 11), `kill(77, SIGSEGV)`},
		{"kill 0", nil, SYS_KILL, argv(77, 0), `kill(77, 0)`},
		{"tgkill real-time", nil, SYS_TGKILL, argv(7, 7, 34), `tgkill(7, 7, SIGRT_2)`},
		{"sigaction", fourPages().words(pa, 0x401000, SA_RESTORER|SA_RESTART, 0x402000, 1<<1|1<<16), SYS_RT_SIGACTION, argv(2, pa, pb, 8), `rt_sigaction(SIGINT, {sa_handler=0x401000, sa_mask=[INT CHLD], sa_flags=SA_RESTORER|SA_RESTART, sa_restorer=0x402000}, 0x20000, 8)`},
		{"sigprocmask", fourPages().words(pa, 1<<13), SYS_RT_SIGPROCMASK, argv(SIG_SETMASK, pa, 0, 8), `rt_sigprocmask(SIG_SETMASK, [ALRM], NULL, 8)`},
		{"nanosleep", fourPages().words(pa, 1, 500), SYS_NANOSLEEP, argv(pa, pb), `nanosleep({tv_sec=1, tv_nsec=500}, 0x20000)`},
		{"ioctl known", nil, SYS_IOCTL, argv(1, 0x5413, pa), `ioctl(1, TIOCGWINSZ, 0x10000)`},
		{"ioctl unknown", nil, SYS_IOCTL, argv(1, 0xc0106442, pa), `ioctl(1, _IOC(_IOC_READ|_IOC_WRITE, 0x64, 0x42, 0x10), 0x10000)`},
		{"futex", nil, SYS_FUTEX, argv(pa, 129, 1), `futex(0x10000, FUTEX_WAKE|FUTEX_PRIVATE_FLAG, 1, 0, NULL, 0)`},
		{"socket", nil, SYS_SOCKET, argv(2, 1|SOCK_CLOEXEC, 0), `socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, 0)`},
		{"connect", fourPages().bytes(pa, []byte{2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}), SYS_CONNECT, argv(3, pa, 16), `connect(3, {AF_INET, 127.0.0.1:80}, 16)`},
		{"bind unix", fourPages().bytes(pa, []byte("\x01\x00/run/x\x00")), SYS_BIND, argv(3, pa, 9), `bind(3, {AF_UNIX, "/run/x"}, 9)`},
		{"bind abstract", fourPages().bytes(pa, []byte("\x01\x00\x00abc")), SYS_BIND, argv(3, pa, 6), `bind(3, {AF_UNIX, @"abc"}, 6)`},
		{"accept", fourPages().bytes(pb, []byte{16}), SYS_ACCEPT, argv(3, pa, pb), `accept(3, 0x10000, [16])`},
		{"writev", fourPages().words(pa, pb, 3, pc, 2).bytes(pb, []byte("abc")).bytes(pc, []byte("de")), SYS_WRITEV, argv(1, pa, 2), `writev(1, [{iov_base="abc", iov_len=3}, {iov_base="de", iov_len=2}], 2)`},
		{"execve", fourPages().bytes(pa, []byte("/bin/ls\x00")).words(pb, pa, pa+5, 0), SYS_EXECVE, argv(pa, pb, pc), `execve("/bin/ls", ["/bin/ls", "ls"], [])`},
		{"poll", fourPages().words(pa, 5|1<<32), SYS_POLL, argv(pa, 1, 0xffffffff), `poll([{fd=5, events=POLLIN}], 1, -1)`},
		{"poll many", fourPages(), SYS_POLL, argv(pa, 20, 0), `poll([` + strings.Repeat("{fd=0, events=0}, ", 8) + `...], 20, 0)`},
		{"epoll_ctl", fourPages().bytes(pa, []byte{1, 0, 0, 0x80, 7}), SYS_EPOLL_CTL, argv(3, 1, 4, pa), `epoll_ctl(3, EPOLL_CTL_ADD, 4, {events=EPOLLIN|EPOLLET, data=0x7})`},
		{"setrlimit", fourPages().words(pa, 1024, 1<<64-1), SYS_SETRLIMIT, argv(7, pa), `setrlimit(RLIMIT_NOFILE, {rlim_cur=1024, rlim_max=RLIM64_INFINITY})`},
		{"prctl", nil, SYS_PRCTL, argv(PR_SET_NAME, pa), `prctl(PR_SET_NAME, 0x10000, 0, 0, 0)`},
		{"arch_prctl", nil, SYS_ARCH_PRCTL, argv(ARCH_SET_FS, pa), `arch_prctl(ARCH_SET_FS, 0x10000)`},
		{"mknod", text(pa, "n"), SYS_MKNOD, argv(pa, 0o20600, 0x103), `mknod("n", 020600, makedev(1, 3))`},
		{"shmget", nil, SYS_SHMGET, argv(0, 4096, 0o1600), `shmget(0, 4096, IPC_CREAT|0600)`},
		{"unknown", nil, 999, argv(1, 2), `syscall_999(0x1, 0x2)`},
		{"unknown without arguments", nil, -5, argv(), `syscall_-5(0)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Format(tt.m, tt.nr, tt.args); got != tt.want {
				t.Errorf("Format = %s\n    want = %s", got, tt.want)
			}
		})
	}
}

func TestFormatCall(t *testing.T) {
	stat := func() *fakeMemory {
		return fourPages().bytes(pb+24, []byte{0xa4, 0x81}).words(pb+48, 1187)
	}
	tests := []struct {
		name string
		m    Memory
		nr   int64
		args [6]uint64
		ret  int64
		want string
	}{
		{"read", fourPages().bytes(pa, []byte("root:x")), SYS_READ, argv(3, pa, 4096), 4, `read(3, "root", 4096) = 4`},
		{"read failed", fourPages(), SYS_READ, argv(3, pa, 4096), fail(EAGAIN), `read(3, 0x10000, 4096) = -1 EAGAIN (Resource temporarily unavailable)`},
		{"fstat", stat(), SYS_FSTAT, argv(3, pb), 0, `fstat(3, {st_mode=S_IFREG|0644, st_size=1187, ...}) = 0`},
		{"pipe2", fourPages().bytes(pa, []byte{3, 0, 0, 0, 4}), SYS_PIPE2, argv(pa, O_CLOEXEC), 0, `pipe2([3, 4], O_CLOEXEC) = 0`},
		{"readv", fourPages().words(pa, pb, 3, pc, 5).bytes(pb, []byte("abc")).bytes(pc, []byte("de")), SYS_READV, argv(3, pa, 2), 4, `readv(3, [{iov_base="abc", iov_len=3}, {iov_base="d", iov_len=5}], 2) = 4`},
		{"accept", fourPages().bytes(pa, []byte{2, 0, 0x1f, 0x90, 10, 0, 0, 1}).bytes(pb, []byte{8}), SYS_ACCEPT, argv(3, pa, pb), 5, `accept(3, {AF_INET, 10.0.0.1:8080}, [8]) = 5`},
		{"epoll_wait", fourPages().bytes(pa, []byte{1, 0, 0, 0, 7}), SYS_EPOLL_WAIT, argv(3, pa, 10, 0xffffffff), 1, `epoll_wait(3, [{events=EPOLLIN, data=0x7}], 10, -1) = 1`},
		{"epoll_wait of none", fourPages(), SYS_EPOLL_WAIT, argv(3, pa, 10, 0), 0, `epoll_wait(3, [], 10, 0) = 0`},
		{"clock_gettime", fourPages().words(pa, 5, 6), SYS_CLOCK_GETTIME, argv(1, pa), 0, `clock_gettime(CLOCK_MONOTONIC, {tv_sec=5, tv_nsec=6}) = 0`},
		{"uname", fourPages().bytes(pa, []byte("Linux")).bytes(pa+65, []byte("host")), SYS_UNAME, argv(pa), 0, `uname({sysname="Linux", nodename="host", release="", ...}) = 0`},
		{"wait4", fourPages().bytes(pa, []byte{0, 3}), SYS_WAIT4, argv(1<<64-1, pa, 0, 0), 77, `wait4(-1, [exit 3], 0, NULL) = 77`},
		{"wait4, killed", fourPages().bytes(pa, []byte{0x8b}), SYS_WAIT4, argv(1<<64-1, pa, 1, 0), 77, `wait4(-1, [dumped by SIGSEGV], WNOHANG, NULL) = 77`},
		{"readlink", fourPages().bytes(pa, []byte("p\x00")).bytes(pb, []byte("/bin/x")), SYS_READLINK, argv(pa, pb, 64), 6, `readlink("p", "/bin/x", 64) = 6`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := FormatCall(tt.m, tt.nr, tt.args, tt.ret); got != tt.want {
				t.Errorf("FormatCall = %s\n        want = %s", got, tt.want)
			}
		})
	}
}

func TestFormatResult(t *testing.T) {
	tests := []struct {
		nr, ret int64
		want    string
	}{
		{SYS_READ, 832, "832"},
		{SYS_OPENAT, fail(ENOENT), "-1 ENOENT (No such file or directory)"},
		{SYS_MMAP, 0x7f0000000000, "0x7f0000000000"},
		{SYS_MMAP, fail(ENOMEM), "-1 ENOMEM (Cannot allocate memory)"},
		{SYS_BRK, 0x555555559000, "0x555555559000"},
		{SYS_UMASK, 0o22, "022"},
		{SYS_LSEEK, 1 << 40, "1099511627776"},
		{SYS_EXIT_GROUP, 0, "?"},
		{SYS_POLL, fail(ERESTART_RESTARTBLOCK), "? ERESTART_RESTARTBLOCK (To be restarted)"},
		{SYS_READ, fail(ERESTARTSYS), "? ERESTARTSYS (To be restarted)"},
		{SYS_GETUID, 0xfffffffe, "4294967294"},
		{999, -4000, "-1 E4000"},
		{999, 17, "0x11"},
	}
	for _, tt := range tests {
		if got := FormatResult(tt.nr, tt.ret); got != tt.want {
			t.Errorf("FormatResult(%s, %d) = %q, want %q", Name(tt.nr), tt.ret, got, tt.want)
		}
	}
}

func TestRestartKind(t *testing.T) {
	want := map[int64]Restart{
		-512: RestartSys, -513: RestartNoIntr, -514: RestartNoHand, -516: RestartBlock,
		-515: RestartNone, -4: RestartNone, 0: RestartNone, 512: RestartNone,
	}
	for ret, kind := range want {
		if got := RestartKind(ret); got != kind {
			t.Errorf("RestartKind(%d) = %v, want %v", ret, got, kind)
		}
	}
}

func TestSiginfoString(t *testing.T) {
	info := func(words ...uint32) Siginfo {
		b := make([]byte, SizeofSiginfo)
		for i, w := range words {
			b[4*i], b[4*i+1], b[4*i+2], b[4*i+3] = byte(w), byte(w>>8), byte(w>>16), byte(w>>24)
		}
		return b
	}
	minus := func(n int32) uint32 { return uint32(-n) }
	tests := []struct {
		si   Siginfo
		want string
	}{
		{info(11, 0, SEGV_MAPERR, 0, 0x10), "SIGSEGV {si_code=SEGV_MAPERR, si_addr=0x10}"},
		{info(7, 0, BUS_ADRERR, 0, 0x1000, 0x7f00), "SIGBUS {si_code=BUS_ADRERR, si_addr=0x7f0000001000}"},
		{info(15, 0, SI_USER, 0, 77, 1000), "SIGTERM {si_code=SI_USER, si_pid=77, si_uid=1000}"},
		{info(6, 0, minus(6), 0, 77, 0), "SIGABRT {si_code=SI_TKILL, si_pid=77, si_uid=0}"},
		{info(34, 0, minus(1), 0, 77, 0, 5), "SIGRT_2 {si_code=SI_QUEUE, si_pid=77, si_uid=0, si_value=0x5}"},
		{info(17, 0, 1, 0, 78, 0, 3), "SIGCHLD {si_code=CLD_EXITED, si_pid=78, si_uid=0, si_status=3}"},
		{info(14, 0, minus(2), 0, 1, 2), "SIGALRM {si_code=SI_TIMER, si_timerid=1, si_overrun=2}"},
		{info(31, 0, 1, 0, 0x400000, 0, 39), "SIGSYS {si_code=SYS_SECCOMP, si_call_addr=0x400000, si_syscall=getpid}"},
		{info(11, 0, SI_KERNEL), "SIGSEGV {si_code=SI_KERNEL, si_addr=0x0}"},
		{info(14, 0, SI_KERNEL), "SIGALRM {si_code=SI_KERNEL}"},
		{info(99, 0, 99), "99 {si_code=SI_CODE_99}"},
		{nil, "0 {si_code=SI_USER, si_pid=0, si_uid=0}"},
	}
	for _, tt := range tests {
		if got := tt.si.String(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestParseAuxv(t *testing.T) {
	b := make([]byte, 0, 64)
	for _, w := range []uint64{AT_PAGESZ, 4096, AT_ENTRY, 0x401000, AT_NULL, 0, 9, 9} {
		for i := range 8 {
			b = append(b, byte(w>>(8*i)))
		}
	}
	got := ParseAuxv(b)
	if len(got) != 2 || got[0] != (Aux{AT_PAGESZ, 4096}) || got[1] != (Aux{AT_ENTRY, 0x401000}) {
		t.Errorf("ParseAuxv = %v", got)
	}
	if got := ParseAuxv(b[:20]); len(got) != 1 {
		t.Errorf("cut vector: %v", got)
	}
	if AuxName(AT_SYSINFO_EHDR) != "AT_SYSINFO_EHDR" || AuxName(1000) != "AT_1000" {
		t.Error("AuxName")
	}
}
