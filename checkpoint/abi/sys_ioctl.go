package abi

// ioctl: a request number says what the third argument is. New-style numbers
// (asm-generic/ioctl.h) encode direction and size, but not whether the struct
// holds pointers through which more is written, so the encoding is trusted only
// for requests in the table below and for the few drivers in ioctlTrusted,
// whose structs are flat. Every other request is opaque.

// Bits of a request number: include/uapi/asm-generic/ioctl.h.
const (
	iocWrite = 1 // the kernel reads the argument
	iocRead  = 2 // the kernel writes the argument
)

func iocDir(req uint32) uint32  { return req >> 30 }
func iocType(req uint32) byte   { return byte(req >> 8) }
func iocSize(req uint32) uint64 { return uint64(req >> 16 & 0x3fff) }

// ioctlRow describes one request.
type ioctlRow struct {
	name string
	// out is how many bytes the kernel may write at the argument;
	// outEncoded takes the size from the request number.
	out int32
	// write marks requests that change file content.
	write bool
	// list adds what a fixed size cannot say.
	list func(o *outputs)
}

const outEncoded = -1

// ioctlTrusted has the driver letters whose requests all carry flat structs:
// evdev and joysticks, whose request numbers have the buffer's length in them,
// namespaces (linux/nsfs.h) and pidfds (linux/pidfd.h), whose structs grow.
func ioctlTrusted(req uint32) bool {
	switch iocType(req) {
	case 'E', 'j', 0xb7, 0xff:
		return iocDir(req) != 0
	}
	return false
}

func (o *outputs) ioctl() {
	req := uint32(o.args[1])
	row, ok := ioctls[req]
	switch {
	case o.errno == ENOTTY, o.errno == EBADF: // no driver took the request
	case ok && row.list != nil:
		row.list(o)
	case ok && row.out == outEncoded:
		o.arg(2, iocSize(req))
	case ok:
		o.arg(2, uint64(row.out))
	case ioctlTrusted(req):
		if iocDir(req)&iocRead != 0 {
			o.arg(2, iocSize(req))
		}
	default:
		o.opaque = true
	}
}

// userfaultfdNew is USERFAULTFD_IOC_NEW, the other way to userfaultfd(2).
const userfaultfdNew = 0xaa00

func ioctlEffect(request uint64) (Effect, string) {
	req := uint32(request)
	if req == userfaultfdNew {
		s, _ := Lookup(SYS_USERFAULTFD)
		return EffectRefuse, s.Why
	}
	row, ok := ioctls[req]
	switch {
	case ok && row.write:
		return EffectFileWrite, ""
	case ok, ioctlTrusted(req):
		return EffectPlain, ""
	}
	return EffectOpaque, "unknown ioctl " + hex(uint64(req))
}

// ifconf: struct ifconf {int len; void *buf}; the length is written back.
func (o *outputs) ifconf() {
	o.arg(2, 16)
	n, ok1 := readUint32(o.m, o.args[2])
	buf, ok2 := readUint64(o.m, o.args[2]+8)
	if ok1 && ok2 && int32(n) > 0 {
		o.add(buf, uint64(n))
	}
}

// fiemap: a header of 32 bytes with the room for extents at 24, then extents of
// 56 bytes (linux/fiemap.h).
func (o *outputs) fiemap() {
	n, _ := readUint32(o.m, o.args[2]+24)
	o.arg(2, 32+56*uint64(n))
}

// dedupe: a header of 24 bytes with a 16-bit count at 16, then 32 bytes for each
// destination (struct file_dedupe_range, linux/fs.h).
func (o *outputs) dedupe() {
	n, _ := readUint32(o.m, o.args[2]+16)
	o.arg(2, 24+32*uint64(uint16(n)))
}

// inputMask: struct input_mask, two 32-bit words, the type and the room at the
// pointer behind them (linux/input.h).
func (o *outputs) inputMask() {
	n, ok1 := readUint32(o.m, o.args[2]+4)
	bits, ok2 := readUint64(o.m, o.args[2]+8)
	if ok1 && ok2 {
		o.add(bits, uint64(n))
	}
}

// measureVerity: struct fsverity_digest, two 16-bit words and the digest.
func (o *outputs) measureVerity() { o.arg(2, 4+64) }

// encryptionPolicy: an 8-byte size and a policy of at most 24 bytes.
func (o *outputs) encryptionPolicy() { o.arg(2, 8+32) }

// ioctls has the known requests by number.
var ioctls = map[uint32]ioctlRow{
	// Terminals: asm-generic/ioctls.h. struct termios has 36 bytes, termios2
	// 44, termio 18, winsize 8.
	0x5401: {name: "TCGETS", out: 36}, 0x5402: {name: "TCSETS"}, 0x5403: {name: "TCSETSW"}, 0x5404: {name: "TCSETSF"},
	0x5405: {name: "TCGETA", out: 18}, 0x5406: {name: "TCSETA"}, 0x5407: {name: "TCSETAW"}, 0x5408: {name: "TCSETAF"},
	0x5409: {name: "TCSBRK"}, 0x540a: {name: "TCXONC"}, 0x540b: {name: "TCFLSH"}, 0x540c: {name: "TIOCEXCL"},
	0x540d: {name: "TIOCNXCL"}, 0x540e: {name: "TIOCSCTTY"}, 0x540f: {name: "TIOCGPGRP", out: 4}, 0x5410: {name: "TIOCSPGRP"},
	0x5411: {name: "TIOCOUTQ", out: 4}, 0x5412: {name: "TIOCSTI"}, 0x5413: {name: "TIOCGWINSZ", out: 8}, 0x5414: {name: "TIOCSWINSZ"},
	0x5415: {name: "TIOCMGET", out: 4}, 0x5416: {name: "TIOCMBIS"}, 0x5417: {name: "TIOCMBIC"}, 0x5418: {name: "TIOCMSET"},
	0x5419: {name: "TIOCGSOFTCAR", out: 4}, 0x541a: {name: "TIOCSSOFTCAR"}, 0x541b: {name: "FIONREAD", out: 4},
	0x541d: {name: "TIOCCONS"}, 0x541e: {name: "TIOCGSERIAL", out: 72}, 0x541f: {name: "TIOCSSERIAL"},
	0x5420: {name: "TIOCPKT"}, 0x5421: {name: "FIONBIO"}, 0x5422: {name: "TIOCNOTTY"}, 0x5423: {name: "TIOCSETD"},
	0x5424: {name: "TIOCGETD", out: 4}, 0x5425: {name: "TCSBRKP"}, 0x5427: {name: "TIOCSBRK"}, 0x5428: {name: "TIOCCBRK"},
	0x5429: {name: "TIOCGSID", out: 4}, 0x5437: {name: "TIOCVHANGUP"}, 0x5450: {name: "FIONCLEX"}, 0x5451: {name: "FIOCLEX"},
	0x5452: {name: "FIOASYNC"}, 0x5459: {name: "TIOCSERGETLSR", out: 4}, 0x545c: {name: "TIOCMIWAIT"},
	0x545d: {name: "TIOCGICOUNT", out: 80}, 0x5456: {name: "TIOCGLCKTRMIOS", out: 36}, 0x5457: {name: "TIOCSLCKTRMIOS"},
	0x5460:     {name: "FIOQSIZE", out: 8},
	0x802c542a: {name: "TCGETS2", out: outEncoded}, 0x402c542b: {name: "TCSETS2"}, 0x402c542c: {name: "TCSETSW2"}, 0x402c542d: {name: "TCSETSF2"},
	0x80045430: {name: "TIOCGPTN", out: outEncoded}, 0x40045431: {name: "TIOCSPTLCK"}, 0x80045432: {name: "TIOCGDEV", out: outEncoded},
	0x40045436: {name: "TIOCSIG"}, 0x80045438: {name: "TIOCGPKT", out: outEncoded}, 0x80045439: {name: "TIOCGPTLCK", out: outEncoded},
	0x80045440: {name: "TIOCGEXCL", out: outEncoded}, 0x5441: {name: "TIOCGPTPEER"},

	// Virtual consoles: linux/kd.h, linux/vt.h.
	0x4b33: {name: "KDGKBTYPE", out: 1}, 0x4b3a: {name: "KDSETMODE"}, 0x4b3b: {name: "KDGETMODE", out: 4},
	0x4b44: {name: "KDGKBMODE", out: 4}, 0x4b45: {name: "KDSKBMODE"}, 0x4b62: {name: "KDGKBMETA", out: 4}, 0x4b64: {name: "KDGKBLED", out: 1},
	0x5600: {name: "VT_OPENQRY", out: 4}, 0x5601: {name: "VT_GETMODE", out: 8}, 0x5602: {name: "VT_SETMODE"},
	0x5603: {name: "VT_GETSTATE", out: 6}, 0x5606: {name: "VT_ACTIVATE"}, 0x5607: {name: "VT_WAITACTIVE"},

	// Files: linux/fs.h. The flag words are declared long and copied as int.
	0x1: {name: "FIBMAP", out: 4}, 0x2: {name: "FIGETBSZ", out: 4},
	0x40049409: {name: "FICLONE", write: true}, 0x4020940d: {name: "FICLONERANGE", write: true},
	0xc0189436: {name: "FIDEDUPERANGE", list: (*outputs).dedupe, write: true},
	0xc0045877: {name: "FIFREEZE"}, 0xc0045878: {name: "FITHAW"}, 0xc0185879: {name: "FITRIM", out: outEncoded},
	0x80086601: {name: "FS_IOC_GETFLAGS", out: outEncoded}, 0x40086602: {name: "FS_IOC_SETFLAGS"},
	0x80087601: {name: "FS_IOC_GETVERSION", out: outEncoded}, 0x40087602: {name: "FS_IOC_SETVERSION"},
	0xc020660b: {name: "FS_IOC_FIEMAP", list: (*outputs).fiemap},
	0x801c581f: {name: "FS_IOC_FSGETXATTR", out: outEncoded}, 0x401c5820: {name: "FS_IOC_FSSETXATTR"},
	0x81009431: {name: "FS_IOC_GETFSLABEL", out: outEncoded}, 0x41009432: {name: "FS_IOC_SETFSLABEL"},
	0x80111500: {name: "FS_IOC_GETFSUUID", out: outEncoded}, 0x80811501: {name: "FS_IOC_GETFSSYSFSPATH", out: outEncoded},
	0xc0046686: {name: "FS_IOC_MEASURE_VERITY", list: (*outputs).measureVerity}, 0x40806685: {name: "FS_IOC_ENABLE_VERITY"},
	0x400c6615: {name: "FS_IOC_GET_ENCRYPTION_POLICY", out: 12}, 0x40106614: {name: "FS_IOC_GET_ENCRYPTION_PWSALT", out: 16},
	0xc0096616: {name: "FS_IOC_GET_ENCRYPTION_POLICY_EX", list: (*outputs).encryptionPolicy},

	// Block devices: linux/fs.h, linux/hdreg.h.
	0x125d: {name: "BLKROSET"}, 0x125e: {name: "BLKROGET", out: 4}, 0x125f: {name: "BLKRRPART"}, 0x1260: {name: "BLKGETSIZE", out: 8},
	0x1261: {name: "BLKFLSBUF"}, 0x1262: {name: "BLKRASET"}, 0x1263: {name: "BLKRAGET", out: 8}, 0x1264: {name: "BLKFRASET"},
	0x1265: {name: "BLKFRAGET", out: 8}, 0x1267: {name: "BLKSECTGET", out: 4}, 0x1268: {name: "BLKSSZGET", out: 4},
	0x80081270: {name: "BLKBSZGET", out: 8}, 0x40081271: {name: "BLKBSZSET"}, 0x80081272: {name: "BLKGETSIZE64", out: 8},
	0x1277: {name: "BLKDISCARD", write: true}, 0x1278: {name: "BLKIOMIN", out: 4}, 0x1279: {name: "BLKIOOPT", out: 4},
	0x127a: {name: "BLKALIGNOFF", out: 4}, 0x127b: {name: "BLKPBSZGET", out: 4}, 0x127c: {name: "BLKDISCARDZEROES", out: 4},
	0x127d: {name: "BLKSECDISCARD", write: true}, 0x127e: {name: "BLKROTATIONAL", out: 4}, 0x127f: {name: "BLKZEROOUT", write: true},
	0x80081280: {name: "BLKGETDISKSEQ", out: 8}, 0x0301: {name: "HDIO_GETGEO", out: 16},

	// Sockets and interfaces: linux/sockios.h. struct ifreq has 40 bytes.
	0x8901: {name: "FIOSETOWN"}, 0x8902: {name: "SIOCSPGRP"}, 0x8903: {name: "FIOGETOWN", out: 4}, 0x8904: {name: "SIOCGPGRP", out: 4},
	0x8905: {name: "SIOCATMARK", out: 4}, 0x8906: {name: "SIOCGSTAMP", out: 16}, 0x8907: {name: "SIOCGSTAMPNS", out: 16},
	0x80108906: {name: "SIOCGSTAMP_NEW", out: 16}, 0x80108907: {name: "SIOCGSTAMPNS_NEW", out: 16}, 0x894b: {name: "SIOCOUTQNSD", out: 4},
	0x8910: {name: "SIOCGIFNAME", out: 40}, 0x8912: {name: "SIOCGIFCONF", list: (*outputs).ifconf},
	0x8913: {name: "SIOCGIFFLAGS", out: 40}, 0x8914: {name: "SIOCSIFFLAGS"}, 0x8915: {name: "SIOCGIFADDR", out: 40}, 0x8916: {name: "SIOCSIFADDR"},
	0x8917: {name: "SIOCGIFDSTADDR", out: 40}, 0x8919: {name: "SIOCGIFBRDADDR", out: 40}, 0x891b: {name: "SIOCGIFNETMASK", out: 40},
	0x891d: {name: "SIOCGIFMETRIC", out: 40}, 0x8921: {name: "SIOCGIFMTU", out: 40}, 0x8922: {name: "SIOCSIFMTU"},
	0x8927: {name: "SIOCGIFHWADDR", out: 40}, 0x8933: {name: "SIOCGIFINDEX", out: 40}, 0x8942: {name: "SIOCGIFTXQLEN", out: 40},
	0x8970: {name: "SIOCGIFMAP", out: 40}, 0x8954: {name: "SIOCGARP", out: 68},

	// Descriptors of namespaces, processes, timers and random: linux/nsfs.h,
	// pidfd.h, timerfd.h, random.h. NS_GET_OWNER_UID says none and writes four.
	0xb701: {name: "NS_GET_USERNS"}, 0xb702: {name: "NS_GET_PARENT"}, 0xb703: {name: "NS_GET_NSTYPE"}, 0xb704: {name: "NS_GET_OWNER_UID", out: 4},
	0x8008b705: {name: "NS_GET_MNTNS_ID", out: 8},
	0xff01:     {name: "PIDFD_GET_CGROUP_NAMESPACE"}, 0xff02: {name: "PIDFD_GET_IPC_NAMESPACE"}, 0xff03: {name: "PIDFD_GET_MNT_NAMESPACE"},
	0xff04: {name: "PIDFD_GET_NET_NAMESPACE"}, 0xff05: {name: "PIDFD_GET_PID_NAMESPACE"}, 0xff06: {name: "PIDFD_GET_PID_FOR_CHILDREN_NAMESPACE"},
	0xff07: {name: "PIDFD_GET_TIME_NAMESPACE"}, 0xff08: {name: "PIDFD_GET_TIME_FOR_CHILDREN_NAMESPACE"},
	0xff09: {name: "PIDFD_GET_USER_NAMESPACE"}, 0xff0a: {name: "PIDFD_GET_UTS_NAMESPACE"},
	0x80247009: {name: "RTC_RD_TIME", out: outEncoded},

	// Input devices, where they are not flat or write what they do not declare:
	// linux/input.h. EVIOCSFF gives the effect's number back.
	0x80104592: {name: "EVIOCGMASK", list: (*outputs).inputMask}, 0x40304580: {name: "EVIOCSFF", out: 48},

	0x40085400: {name: "TFD_IOC_SET_TICKS"}, 0x80045200: {name: "RNDGETENTCNT", out: 4}, 0x40045201: {name: "RNDADDTOENTCNT"},

	// Tunnels and loop devices: linux/if_tun.h, linux/loop.h.
	// Who answers the calls that a seccomp filter tells of: linux/seccomp.h.
	0xc0502100: {name: "SECCOMP_IOCTL_NOTIF_RECV", out: outEncoded}, 0xc0182101: {name: "SECCOMP_IOCTL_NOTIF_SEND"}, 0x40082102: {name: "SECCOMP_IOCTL_NOTIF_ID_VALID"},
	0x40182103: {name: "SECCOMP_IOCTL_NOTIF_ADDFD"}, 0x40082104: {name: "SECCOMP_IOCTL_NOTIF_SET_FLAGS"},
	0x400454ca: {name: "TUNSETIFF", out: 40}, 0x800454d2: {name: "TUNGETIFF", out: 40}, 0x800454cf: {name: "TUNGETFEATURES", out: 4},
	0x400454cb: {name: "TUNSETPERSIST"}, 0x400454cc: {name: "TUNSETOWNER"}, 0x400454ce: {name: "TUNSETGROUP"},
	0x4c00: {name: "LOOP_SET_FD"}, 0x4c01: {name: "LOOP_CLR_FD"}, 0x4c05: {name: "LOOP_GET_STATUS64", out: 232}, 0x4c82: {name: "LOOP_CTL_GET_FREE"},
}
