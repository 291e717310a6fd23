package abi

// Files and descriptors: the irregular outputs of the read family, fcntl,
// quotas and file handles. ioctl is in sys_ioctl.go.

var fileRows = rowFuncs{
	SYS_READ:              (*outputs).read,
	SYS_READV:             (*outputs).readv,
	SYS_PREADV:            (*outputs).readv,
	SYS_PREADV2:           (*outputs).readv,
	SYS_VMSPLICE:          (*outputs).readv,
	SYS_IOCTL:             (*outputs).ioctl,
	SYS_FCNTL:             (*outputs).fcntl,
	SYS_NAME_TO_HANDLE_AT: (*outputs).fileHandle,
	SYS_SYSFS:             (*outputs).sysfs,
	SYS_QUOTACTL:          func(o *outputs) { o.quota(o.args[0], o.args[3]) },
	SYS_QUOTACTL_FD:       func(o *outputs) { o.quota(o.args[1], o.args[3]) },
	SYS_GETXATTRAT:        (*outputs).getxattrat,
}

func (o *outputs) read() {
	if !o.untouched(false) {
		o.received(o.args[1], o.args[2])
	}
}

func (o *outputs) readv() {
	if !o.untouched(false) {
		o.iovec(o.args[1], o.args[2])
	}
}

// fcntlSizes has the commands that write to their argument, and how many bytes
// (include/uapi/linux/fcntl.h, asm-generic/fcntl.h).
var fcntlSizes = map[uint64]uint64{
	F_GETLK:            32, // struct flock
	F_OFD_GETLK:        32,
	F_GETOWN_EX:        8, // struct f_owner_ex
	F_GETOWNER_UIDS:    8, // two uid_t
	F_GET_RW_HINT:      8,
	F_GET_FILE_RW_HINT: 8,
	F_GETDELEG:         8, // struct delegation
}

func (o *outputs) fcntl() {
	cmd := uint64(uint32(o.args[1]))
	if size := fcntlSizes[cmd]; size != 0 {
		o.arg(2, size)
		return
	}
	if _, ok := setName("fcntl", cmd); !ok && o.errno == 0 {
		o.opaque = true
	}
}

// fileHandle: struct file_handle is a size, a type and that many bytes, at most
// MAX_HANDLE_SZ; the mount id has 8 bytes with AT_HANDLE_MNT_ID_UNIQUE.
func (o *outputs) fileHandle() {
	const maxHandle = 128
	n, ok := readUint32(o.m, o.args[2])
	if !ok || n > maxHandle {
		n = maxHandle
	}
	o.arg(2, 8+uint64(n))
	o.arg(3, 8)
}

// sysfs: option 2 copies the name of a file system type, which has no length
// argument; registered names are far below 64 bytes.
func (o *outputs) sysfs() {
	if int32(o.args[0]) == 2 && o.errno != EINVAL {
		o.arg(2, 64)
	}
}

// quota: the commands that answer with a struct (linux/quota.h,
// linux/dqblk_xfs.h); the largest, fs_quota_statv, has 160 bytes.
func (o *outputs) quota(cmd, addr uint64) {
	switch uint32(cmd) >> 8 {
	case 0x800004, 0x800005, 0x800007, 0x800009: // Q_GETFMT, Q_GETINFO, Q_GETQUOTA, Q_GETNEXTQUOTA
		o.add(addr, 160)
	case 'X'<<8 + 3, 'X'<<8 + 5, 'X'<<8 + 8, 'X'<<8 + 9: // Q_XGETQUOTA, Q_XGETQSTAT, Q_XGETQSTATV, Q_XGETNEXTQUOTA
		o.add(addr, 160)
	}
}

// getxattrat: struct xattr_args {u64 value; u32 size; u32 flags}.
func (o *outputs) getxattrat() {
	value, ok1 := readUint64(o.m, o.args[4])
	size, ok2 := readUint32(o.m, o.args[4]+8)
	if ok1 && ok2 {
		o.received(value, uint64(size))
	}
}
