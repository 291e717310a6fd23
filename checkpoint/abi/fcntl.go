package abi

// Numbers of the calls on files and descriptors, as the kernel's headers have them, and the
// sets that print them. What these calls write is in the table and in sys_*.go.

// Open flags: include/uapi/asm-generic/fcntl.h. O_RDONLY is 0.
const (
	O_WRONLY    = 1
	O_RDWR      = 2
	O_CREAT     = 0x40
	O_EXCL      = 0x80
	O_NOCTTY    = 0x100
	O_TRUNC     = 0x200
	O_APPEND    = 0x400
	O_NONBLOCK  = 0x800
	O_SYNC      = 0x101000
	O_DSYNC     = 0x1000
	O_ASYNC     = 0x2000
	O_DIRECT    = 0x4000
	O_LARGEFILE = 0x8000
	O_TMPFILE   = 0x410000
	O_DIRECTORY = 0x10000
	O_NOFOLLOW  = 0x20000
	O_NOATIME   = 0x40000
	O_CLOEXEC   = 0x80000
	O_PATH      = 0x200000
)

// Commands of fcntl: include/uapi/asm-generic/fcntl.h, linux/fcntl.h.
const (
	F_DUPFD            = 0
	F_GETFD            = 1
	F_SETFD            = 2
	F_GETFL            = 3
	F_SETFL            = 4
	F_GETLK            = 5
	F_SETLK            = 6
	F_SETLKW           = 7
	F_SETOWN           = 8
	F_GETOWN           = 9
	F_SETSIG           = 10
	F_GETSIG           = 11
	F_SETOWN_EX        = 15
	F_GETOWN_EX        = 16
	F_GETOWNER_UIDS    = 17
	F_OFD_GETLK        = 36
	F_OFD_SETLK        = 37
	F_OFD_SETLKW       = 38
	F_SETLEASE         = 1024
	F_GETLEASE         = 1025
	F_NOTIFY           = 1026
	F_DUPFD_QUERY      = 1027
	F_CREATED_QUERY    = 1028
	F_CANCELLK         = 1029
	F_DUPFD_CLOEXEC    = 1030
	F_SETPIPE_SZ       = 1031
	F_GETPIPE_SZ       = 1032
	F_ADD_SEALS        = 1033
	F_GET_SEALS        = 1034
	F_GET_RW_HINT      = 1035
	F_SET_RW_HINT      = 1036
	F_GET_FILE_RW_HINT = 1037
	F_SET_FILE_RW_HINT = 1038
	F_GETDELEG         = 1039
	F_SETDELEG         = 1040
)

// Flags of the *at calls: include/uapi/linux/fcntl.h.
const (
	AT_SYMLINK_NOFOLLOW = 0x100
	AT_REMOVEDIR        = 0x200
	AT_SYMLINK_FOLLOW   = 0x400
	AT_NO_AUTOMOUNT     = 0x800
	AT_EMPTY_PATH       = 0x1000
	AT_STATX_FORCE_SYNC = 0x2000
	AT_STATX_DONT_SYNC  = 0x4000
	AT_RECURSIVE        = 0x8000
)

// Modes of fallocate: include/uapi/linux/falloc.h.
const (
	FALLOC_FL_KEEP_SIZE      = 1
	FALLOC_FL_PUNCH_HOLE     = 2
	FALLOC_FL_NO_HIDE_STALE  = 4
	FALLOC_FL_COLLAPSE_RANGE = 8
	FALLOC_FL_ZERO_RANGE     = 0x10
	FALLOC_FL_INSERT_RANGE   = 0x20
	FALLOC_FL_UNSHARE_RANGE  = 0x40
)

// Origins of lseek: include/uapi/linux/fs.h.
const (
	SEEK_SET  = 0
	SEEK_CUR  = 1
	SEEK_END  = 2
	SEEK_DATA = 3
	SEEK_HOLE = 4
)

var openFlags = flagSet{
	{O_WRONLY, "O_WRONLY"},
	{O_RDWR, "O_RDWR"},
	{O_CREAT, "O_CREAT"},
	{O_EXCL, "O_EXCL"},
	{O_NOCTTY, "O_NOCTTY"},
	{O_TRUNC, "O_TRUNC"},
	{O_APPEND, "O_APPEND"},
	{O_NONBLOCK, "O_NONBLOCK"},
	{O_SYNC, "O_SYNC"},
	{O_DSYNC, "O_DSYNC"},
	{O_ASYNC, "O_ASYNC"},
	{O_DIRECT, "O_DIRECT"},
	{O_LARGEFILE, "O_LARGEFILE"},
	{O_TMPFILE, "O_TMPFILE"},
	{O_DIRECTORY, "O_DIRECTORY"},
	{O_NOFOLLOW, "O_NOFOLLOW"},
	{O_NOATIME, "O_NOATIME"},
	{O_CLOEXEC, "O_CLOEXEC"},
	{O_PATH, "O_PATH"},
}

var setFcntl = enumSet{
	{F_DUPFD, "F_DUPFD"},
	{F_GETFD, "F_GETFD"},
	{F_SETFD, "F_SETFD"},
	{F_GETFL, "F_GETFL"},
	{F_SETFL, "F_SETFL"},
	{F_GETLK, "F_GETLK"},
	{F_SETLK, "F_SETLK"},
	{F_SETLKW, "F_SETLKW"},
	{F_SETOWN, "F_SETOWN"},
	{F_GETOWN, "F_GETOWN"},
	{F_SETSIG, "F_SETSIG"},
	{F_GETSIG, "F_GETSIG"},
	{F_SETOWN_EX, "F_SETOWN_EX"},
	{F_GETOWN_EX, "F_GETOWN_EX"},
	{F_GETOWNER_UIDS, "F_GETOWNER_UIDS"},
	{F_OFD_GETLK, "F_OFD_GETLK"},
	{F_OFD_SETLK, "F_OFD_SETLK"},
	{F_OFD_SETLKW, "F_OFD_SETLKW"},
	{F_SETLEASE, "F_SETLEASE"},
	{F_GETLEASE, "F_GETLEASE"},
	{F_NOTIFY, "F_NOTIFY"},
	{F_DUPFD_QUERY, "F_DUPFD_QUERY"},
	{F_CREATED_QUERY, "F_CREATED_QUERY"},
	{F_CANCELLK, "F_CANCELLK"},
	{F_DUPFD_CLOEXEC, "F_DUPFD_CLOEXEC"},
	{F_SETPIPE_SZ, "F_SETPIPE_SZ"},
	{F_GETPIPE_SZ, "F_GETPIPE_SZ"},
	{F_ADD_SEALS, "F_ADD_SEALS"},
	{F_GET_SEALS, "F_GET_SEALS"},
	{F_GET_RW_HINT, "F_GET_RW_HINT"},
	{F_SET_RW_HINT, "F_SET_RW_HINT"},
	{F_GET_FILE_RW_HINT, "F_GET_FILE_RW_HINT"},
	{F_SET_FILE_RW_HINT, "F_SET_FILE_RW_HINT"},
	{F_GETDELEG, "F_GETDELEG"},
	{F_SETDELEG, "F_SETDELEG"},
}

var setAt = flagSet{
	{AT_SYMLINK_NOFOLLOW, "AT_SYMLINK_NOFOLLOW"},
	{AT_REMOVEDIR, "AT_REMOVEDIR"},
	{AT_SYMLINK_FOLLOW, "AT_SYMLINK_FOLLOW"},
	{AT_NO_AUTOMOUNT, "AT_NO_AUTOMOUNT"},
	{AT_EMPTY_PATH, "AT_EMPTY_PATH"},
	{AT_STATX_FORCE_SYNC, "AT_STATX_FORCE_SYNC"},
	{AT_STATX_DONT_SYNC, "AT_STATX_DONT_SYNC"},
	{AT_RECURSIVE, "AT_RECURSIVE"},
}

// setAccess: Modes of access.
var setAccess = flagSet{
	{0x4, "R_OK"},
	{0x2, "W_OK"},
	{0x1, "X_OK"},
}

var setFalloc = flagSet{
	{FALLOC_FL_KEEP_SIZE, "FALLOC_FL_KEEP_SIZE"},
	{FALLOC_FL_PUNCH_HOLE, "FALLOC_FL_PUNCH_HOLE"},
	{FALLOC_FL_NO_HIDE_STALE, "FALLOC_FL_NO_HIDE_STALE"},
	{FALLOC_FL_COLLAPSE_RANGE, "FALLOC_FL_COLLAPSE_RANGE"},
	{FALLOC_FL_ZERO_RANGE, "FALLOC_FL_ZERO_RANGE"},
	{FALLOC_FL_INSERT_RANGE, "FALLOC_FL_INSERT_RANGE"},
	{FALLOC_FL_UNSHARE_RANGE, "FALLOC_FL_UNSHARE_RANGE"},
}

var setWhence = enumSet{
	{SEEK_SET, "SEEK_SET"},
	{SEEK_CUR, "SEEK_CUR"},
	{SEEK_END, "SEEK_END"},
	{SEEK_DATA, "SEEK_DATA"},
	{SEEK_HOLE, "SEEK_HOLE"},
}

// setFlock: Operations of flock: include/uapi/asm-generic/fcntl.h.
var setFlock = flagSet{
	{0x1, "LOCK_SH"},
	{0x2, "LOCK_EX"},
	{0x4, "LOCK_NB"},
	{0x8, "LOCK_UN"},
}

// setSplice: Flags of splice, tee and vmsplice: include/linux/splice.h.
var setSplice = flagSet{
	{0x1, "SPLICE_F_MOVE"},
	{0x2, "SPLICE_F_NONBLOCK"},
	{0x4, "SPLICE_F_MORE"},
	{0x8, "SPLICE_F_GIFT"},
}

// setRwf: Flags of preadv2 and pwritev2: include/uapi/linux/fs.h.
var setRwf = flagSet{
	{0x1, "RWF_HIPRI"},
	{0x2, "RWF_DSYNC"},
	{0x4, "RWF_SYNC"},
	{0x8, "RWF_NOWAIT"},
	{0x10, "RWF_APPEND"},
	{0x20, "RWF_NOAPPEND"},
	{0x40, "RWF_ATOMIC"},
	{0x80, "RWF_DONTCACHE"},
}

// setFdcreate: Flags of the calls that make a descriptor.
var setFdcreate = flagSet{
	{0x800, "O_NONBLOCK"},
	{0x80000, "O_CLOEXEC"},
}
