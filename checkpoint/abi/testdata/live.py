# Makes many system calls that write to memory, some of them half-failing, so
# that the tracer of live_test.go can compare what the kernel changed with what
# the table says. Runs in one thread. Raw calls go through syscall(2) with
# numbers given as name=number in the arguments.
import ctypes, fcntl, mmap, os, select, signal, socket, struct, sys, tempfile, time

libc = ctypes.CDLL(None, use_errno=True)
NR = {k: int(v) for k, v in (a.split("=") for a in sys.argv[1:])}
PAGE = 4096

# Two mapped pages with an unmapped one behind, and room for structs.
area = mmap.mmap(-1, 16 * PAGE)
base = ctypes.addressof(ctypes.c_char.from_buffer(area))
libc.munmap(ctypes.c_void_p(base + 2 * PAGE), ctypes.c_size_t(PAGE))
libc.mprotect(ctypes.c_void_p(base + 5 * PAGE), ctypes.c_size_t(PAGE), 1)
edge = base + 2 * PAGE  # the first absent byte
ro = base + 5 * PAGE  # the first read-only byte
room = base + 8 * PAGE  # eight free pages


def call(name, *args):
    return libc.syscall(ctypes.c_long(NR[name]), *(ctypes.c_long(a) for a in args))


def put(at, fmt, *values):
    b = struct.pack(fmt, *values)
    ctypes.memmove(at, b, len(b))
    return at


def text(at, s):
    ctypes.memmove(at, s + b"\0", len(s) + 1)
    return at


def files(d):
    name = os.path.join(d, "f")
    with open(name, "wb") as f:
        f.write(bytes(range(256)) * 64)
    fd = os.open(name, os.O_RDWR)
    path = text(room, name.encode())
    buf = room + PAGE
    for at in (edge - 10, ro - 10):  # a fault behind the tenth byte
        call("read", fd, at, 100)
        call("pread64", fd, at, 3 * PAGE, 5)
        r, w = os.pipe()
        os.write(w, b"x" * 100)
        call("read", r, at, 100)
        call("getdents64", os.open("/etc", os.O_RDONLY), at, 4096)
        call("getcwd", at, 4096)
        call("readlink", text(room, b"/proc/self/exe"), at, 4096)
        call("getrandom", at, 64, 0)
        call("newfstatat", -100, text(room, name.encode()), at, 0)
        put(buf, "QQQQ", at, 100, room + 2 * PAGE, 50)
        call("readv", fd, buf, 2)
        call("preadv2", fd, buf, 2, 0, 0, 0)
        call("clock_gettime", 1, at)
        call("uname", at)
        call("poll", at, 2, 0)
        call("getrusage", 0, at)
        call("sysinfo", at)
        call("rt_sigaction", 10, 0, at, 8)
    path = text(room, name.encode())
    os.lseek(fd, 0, 0)
    call("read", fd, buf, 1 << 62)
    call("read", fd, buf, 100)
    call("read", -1, buf, 100)
    call("pread64", fd, buf, 8192, 10)
    put(room + PAGE, "QQQQ", room + 2 * PAGE, 5, room + 2 * PAGE + 64, 7)
    for n in ("readv", "preadv"):
        call(n, fd, room + PAGE, 2, 0, 0)
    for n in ("stat", "lstat", "statfs"):
        call(n, path, buf)
        call(n, text(room + 64, b"/nonexistent"), buf)
    for n in ("fstat", "fstatfs"):
        call(n, fd, buf)
    call("statx", -100, path, 0, 0xFFF, buf)
    for cmd in (3, 5, 16, 17, 36, 1035, 9999):
        put(buf, "QQQQ", 0, 0, 0, 0)
        call("fcntl", fd, cmd, buf)
    put(buf, "II", 128, 0)
    call("name_to_handle_at", -100, path, buf, buf + 512, 0)
    call("setxattr", path, text(room + 64, b"user.a"), text(buf, b"value"), 5, 0)
    for size in (0, 3, 100):
        call("getxattr", path, room + 64, buf, size)
        call("listxattr", path, buf, size)
    put(buf, "Q", 3)
    out = os.open(os.path.join(d, "g"), os.O_RDWR | os.O_CREAT)
    call("sendfile", out, fd, buf, 100)
    call("copy_file_range", fd, buf, out, buf + 8, 100, 0)
    r, w = os.pipe()
    call("splice", fd, buf, w, 0, 100, 0)
    put(room + PAGE, "QQ", room + 2 * PAGE, 50)
    call("vmsplice", r, room + PAGE, 1, 0)
    call("getdents64", os.open(d, os.O_RDONLY), buf, 4096)
    call("getdents", os.open(d, os.O_RDONLY), buf, 4096)
    call("mincore", base, 2 * PAGE, buf)
    call("cachestat", fd, put(buf, "QQ", 0, 4096), buf + 64, 0)
    call("sysfs", 2, 0, buf)
    call("ustat", 0, buf)
    call("file_getattr", -100, path, buf, 24, 0)
    call("statmount", put(buf, "IIQQ", 24, 0, 1, 0x1FF), buf + 64, 512, 0)
    call("listmount", put(buf, "IIQQQ", 32, 0, 0xFFFFFFFFFFFFFFFF, 0, 0), buf + 64, 16, 0)


def ioctls(d):
    buf = room
    a, b = os.openpty()
    reg = os.open(os.path.join(d, "f"), os.O_RDONLY)
    s = socket.socket()
    os.write(a, b"abc\n")
    requests = [0x5401, 0x5405, 0x540F, 0x5411, 0x5413, 0x5415, 0x541B, 0x541E, 0x5424, 0x5429, 0x545D, 0x5456, 0x5460,
                0x802C542A, 0x80045430, 0x80045432, 0x80045438, 0x80045439, 0x80045440, 0x5451, 0x5450, 1, 2,
                0x80086601, 0x80087601, 0x801C581F, 0x81009431, 0x80111500, 0x80811501, 0xC020660B, 0x4B33, 0x5603,
                0x8905, 0x8904, 0x8906, 0x894B]
    for req in requests:
        for fd in (a, b, reg, s.fileno()):
            ctypes.memset(buf, 0, 512)
            if req == 0xC020660B:
                put(buf, "QQIIII", 0, 1 << 40, 0, 0, 4, 0)
            call("ioctl", fd, req, buf)
    for req in (0x8913, 0x8915, 0x8919, 0x891B, 0x891D, 0x8921, 0x8927, 0x8933, 0x8942, 0x8970):
        ctypes.memset(buf, 0, 512)
        call("ioctl", s.fileno(), req, text(buf, b"lo"))
    put(buf, "Q", 1)
    call("ioctl", s.fileno(), 0x8910, text(buf, b""))
    put(buf, "QQ", 400, buf + PAGE)
    call("ioctl", s.fileno(), 0x8912, buf)
    ns = os.open("/proc/self/ns/user", os.O_RDONLY)
    call("ioctl", ns, 0xB704, buf)
    call("ioctl", ns, 0xB703, 0)


def sockets():
    buf, iov, name, ctl = room, room + PAGE, room + 2 * PAGE, room + 3 * PAGE
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for size in (100, 3):
        socket.send_fds(a, [b"hello"], [0, 1])
        put(iov, "QQ", name, size)
        put(buf, "QQQQQQQ", name + 512, 128, iov, 1, ctl, 64 if size == 100 else 20, 0)
        call("recvmsg", b.fileno(), buf, 0)
    call("recvmsg", b.fileno(), buf, 0x40)
    for at in (edge - 3, ro - 3):
        a.send(b"hello")
        put(iov, "QQ", at, 100)
        put(buf, "QQQQQQQ", name + 512, 128, iov, 1, ctl, 64, 0)
        call("recvmsg", b.fileno(), buf, 0)
        a.send(b"hello")
        call("recvfrom", b.fileno(), at, 100, 0, 0, 0)
    a.send(b"one")
    a.send(b"three")
    put(iov, "QQQQQQ", name, 64, name + 64, 64, name + 128, 64)
    for i in range(3):
        put(buf + 64 * i, "QQQQQQQQ", name + 1024 + 128 * i, 128, iov + 16 * i, 1, ctl + 128 * i, 100, 0, 0)
    put(name + 2048, "QQ", 0, 1000)
    call("recvmmsg", b.fileno(), buf, 3, 0x10000, name + 2048)
    for i in range(2):
        put(buf + 64 * i, "QQQQQQQQ", 0, 0, iov + 16 * i, 1, 0, 0, 0, 0)
    call("sendmmsg", a.fileno(), buf, 2, 0)
    srv = socket.socket()
    srv.bind(("127.0.0.1", 0))
    srv.listen()
    cli = socket.create_connection(srv.getsockname())
    for room_for in (16, 4, 0, 200):
        put(name, "I", room_for)
        call("getsockname", srv.fileno(), buf, name)
        put(name, "I", room_for)
        call("getpeername", cli.fileno(), buf, name)
    put(name, "I", 16)
    conn = call("accept4", srv.fileno(), buf, name, 0)
    call("recvfrom", conn, buf, 100, 0x40, buf + 512, name)
    cli.send(b"stream data")
    call("recvfrom", conn, buf, 4, 0, buf + 512, put(name, "I", 16))
    call("read", conn, buf, 100)
    call("recvfrom", conn, buf, 100, 0x40, 0, 0)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    udp.sendto(b"x" * 50, udp.getsockname())
    call("recvfrom", udp.fileno(), buf, 20, 0, buf + 512, put(name, "I", 16))
    call("recvfrom", udp.fileno(), buf, 20, 0x40, buf + 512, put(name, "I", 16))
    for level, fd, names in ((1, a, range(1, 80)), (6, cli, range(1, 45)), (0, udp, range(1, 54))):
        for opt in names:
            if (level, opt) != (6, 35):
                call("getsockopt", fd.fileno(), level, opt, buf, put(name, "I", 300 if opt % 4 else 2))
    call("socketpair", 1, 1, 0, buf)


def waiting():
    buf, ts = room, room + PAGE
    r, w = os.pipe()
    os.write(w, b"x")
    for timeout in (0, 2):
        put(buf, "ihhihh", r, 1, 0, w, 4, 0)
        call("poll", buf, 2, timeout)
        put(ts, "QQ", 0, timeout * 1000000)
        call("ppoll", buf, 2, ts, 0, 8)
        for n in ("select", "pselect6"):
            put(buf, "24Q", *[0xFF] * 24)
            put(ts, "QQ", 0, timeout * 1000)
            call(n, 8, buf, buf + 64, buf + 128, ts, 0)
    put(buf, "QQ", 0, 1)
    call("select", w + 65 - w % 64, 0, 0, 0, put(ts, "QQ", 0, 10))
    ep = select.epoll()
    ep.register(r, 1)
    ep.register(w, 4)
    call("epoll_wait", ep.fileno(), buf, 10, 0)
    call("epoll_pwait", ep.fileno(), buf, 1, 0, 0, 8)
    call("epoll_pwait2", ep.fileno(), buf, 10, put(ts, "QQ", 0, 0), 0, 8)
    call("epoll_wait", ep.fileno(), edge - 20, 10, 0)
    call("epoll_wait", ep.fileno(), ro - 20, 10, 0)
    signal.signal(signal.SIGALRM, lambda *_: None)
    for n, args in (("nanosleep", (ts, ts + 16)), ("clock_nanosleep", (1, 0, ts, ts + 16))):
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        put(ts, "QQ", 1, 0)
        call(n, *args)
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    put(buf, "ihh", os.pipe()[0], 1, 0)
    call("ppoll", buf, 1, put(ts, "QQ", 1, 0), 0, 8)
    for n in ("getitimer",):
        call(n, 0, buf)
    call("setitimer", 0, 0, buf)
    call("timer_create", 1, 0, buf)
    (timer,) = struct.unpack("i", ctypes.string_at(buf, 4))
    call("timer_settime", timer, 0, put(ts, "QQQQ", 0, 0, 0, 0), buf)
    call("timer_gettime", timer, buf)
    fd = call("timerfd_create", 1, 0)
    call("timerfd_settime", fd, 0, put(ts, "QQQQ", 0, 0, 0, 1), buf)
    call("timerfd_gettime", fd, buf)
    call("read", fd, buf, 8)
    for n in ("clock_gettime", "clock_getres"):
        call(n, 0, buf)
    call("gettimeofday", buf, buf + 64)
    call("time", buf)
    call("times", buf)
    call("adjtimex", put(buf, "208x"))
    call("clock_adjtime", 0, put(buf, "208x"))


def signals():
    buf = room
    call("rt_sigaction", 10, 0, buf, 8)
    call("rt_sigprocmask", 0, put(buf, "Q", 1 << 11), buf + 8, 8)
    os.kill(os.getpid(), signal.SIGUSR2)
    call("rt_sigpending", buf, 8)
    call("rt_sigtimedwait", put(buf, "Q", 1 << 11), buf + 64, put(buf + 8, "QQ", 0, 0), 8)
    os.kill(os.getpid(), signal.SIGUSR2)
    fd = call("signalfd4", -1, put(buf, "Q", 1 << 11), 8, 0)
    call("read", fd, buf, 256)
    call("sigaltstack", 0, buf)
    e = call("eventfd2", 5, 0)
    call("read", e, buf, 8)
    i = call("inotify_init1", 0x800)
    call("inotify_add_watch", i, text(buf, b"/tmp"), 0xFFF)
    call("read", i, buf, 512)


def processes():
    buf = room
    for code in range(3):
        pid = os.fork()
        if pid == 0:
            os._exit(code)
        if code == 0:
            call("wait4", pid, buf, 0, buf + 64)
        elif code == 1:
            call("waitid", 1, pid, buf, 4, buf + 256)
        else:
            call("wait4", -1, edge - 2, 0, 0)
    for n in ("getresuid", "getresgid"):
        call(n, buf, buf + 4, buf + 8)
    call("getgroups", 0, buf)
    call("getgroups", 64, buf)
    put(buf, "IIQ", 0x20080522, 0, 0)
    call("capget", buf, buf + 64)
    put(buf, "II", 7, 0)
    call("capget", buf, buf + 64)
    for n in ("getrlimit",):
        call(n, 7, buf)
    call("prlimit64", 0, 7, 0, buf)
    call("getrusage", 0, buf)
    call("sysinfo", buf)
    call("uname", buf)
    call("sched_getparam", 0, buf)
    call("sched_getattr", 0, buf, 56, 0)
    call("sched_getaffinity", 0, 128, buf)
    call("sched_getaffinity", 0, 1024, buf)
    call("sched_rr_get_interval", 0, buf)
    call("getcpu", buf, buf + 4, 0)
    call("get_robust_list", 0, buf, buf + 8)
    call("get_mempolicy", buf, buf + 64, 1024, 0, 0)
    call("move_pages", 0, 1, put(buf, "Q", base), 0, buf + 64, 0)
    call("process_vm_readv", os.getpid(), put(buf, "QQ", room + PAGE, 64), 1, put(buf + 64, "QQ", base, 64), 1, 0)
    call("modify_ldt", 0, buf, 128)
    call("syslog", 10, 0, 0)
    call("syslog", 3, buf, 256)
    for opt in (2, 3, 5, 9, 11, 16, 19, 25, 37, 40):
        call("prctl", opt, buf, 0, 0, 0)
    call("prctl", 0x41555856, buf, 64, 0, 0)
    call("prctl", 35, 15, buf, 0, 0)
    for code in (0x1003, 0x1004, 0x1011, 0x1021, 0x1022, 0x1024, 0x4001, 0x4003, 0x5005):
        call("arch_prctl", code, buf)
    call("seccomp", 3, 0, buf)
    call("lsm_list_modules", buf, put(buf + 2048, "I", 1024), 0)
    call("lsm_get_self_attr", 100, buf, put(buf + 2048, "I", 1024), 0)
    call("keyctl", 0, -2, 0, 0, 0)
    call("keyctl", 6, -2, buf, 100, 0)
    call("keyctl", 11, -2, buf, 100, 0)
    call("keyctl", 31, buf, 16, 0, 0)
    call("futex", buf, 8, 0, 0, 0, 0)
    call("futex", put(buf, "Q", 0), 5, 1, 1, buf + 4, 0x10001000)
    call("futex", put(buf, "Q", 0), 6, 0, 0, 0, 0)
    call("clone3", buf, 4)
    call("quotactl", 0x80000700, 0, 0, buf)


def ipc():
    buf = room
    q = call("msgget", 0, 0o1600)
    call("msgsnd", q, put(buf, "Q5s", 1, b"hello"), 5, 0)
    call("msgrcv", q, buf, 100, 0, 0)
    for cmd in (2, 3, 11, 12):
        call("msgctl", q, cmd, buf)
    call("msgctl", q, 0, 0)
    s = call("semget", 0, 5, 0o1600)
    for cmd in (2, 3, 11, 12, 13, 14, 15, 18, 19):
        call("semctl", s, 0, cmd, buf)
    call("semctl", s, 0, 0, 0)
    m = call("shmget", 0, 4096, 0o1600)
    for cmd in (2, 3, 13, 14):
        call("shmctl", m, cmd, buf)
    call("shmctl", m, 0, 0)
    q = call("mq_open", text(buf, b"vplay-live"), 0o102, 0o600, 0)
    if q >= 0:
        call("mq_unlink", buf)
        call("mq_getsetattr", q, 0, buf)
        call("mq_timedsend", q, buf, 5, 3, 0)
        call("mq_timedreceive", q, buf, 8192, buf + 8192, 0)


with tempfile.TemporaryDirectory() as d:
    os.access("/vplay-live-start", 0)
    files(d)
    ioctls(d)
    sockets()
    waiting()
    signals()
    processes()
    ipc()
    os.access("/vplay-live-stop", 0)
