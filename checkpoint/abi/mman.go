package abi

// Numbers of the calls that change the memory map, as the kernel's headers have them, and the
// sets that print them. What the calls do to the map is package record's business.

// Protections: include/uapi/asm-generic/mman-common.h.
const (
	PROT_READ      = 1
	PROT_WRITE     = 2
	PROT_EXEC      = 4
	PROT_SEM       = 8
	PROT_GROWSDOWN = 0x1000000
	PROT_GROWSUP   = 0x2000000
)

// Flags of mmap: include/uapi/linux/mman.h, asm-generic/mman.h, arch/x86/include/uapi/asm/mman.h.
// MAP_SHARED|MAP_PRIVATE is MAP_SHARED_VALIDATE.
const (
	MAP_SHARED          = 1
	MAP_PRIVATE         = 2
	MAP_DROPPABLE       = 8
	MAP_FIXED           = 0x10
	MAP_ANONYMOUS       = 0x20
	MAP_32BIT           = 0x40
	MAP_ABOVE4G         = 0x80
	MAP_GROWSDOWN       = 0x100
	MAP_DENYWRITE       = 0x800
	MAP_EXECUTABLE      = 0x1000
	MAP_LOCKED          = 0x2000
	MAP_NORESERVE       = 0x4000
	MAP_POPULATE        = 0x8000
	MAP_NONBLOCK        = 0x10000
	MAP_STACK           = 0x20000
	MAP_HUGETLB         = 0x40000
	MAP_SYNC            = 0x80000
	MAP_FIXED_NOREPLACE = 0x100000
)

// Flags of mremap: include/uapi/linux/mman.h.
const (
	MREMAP_MAYMOVE   = 1
	MREMAP_FIXED     = 2
	MREMAP_DONTUNMAP = 4
)

// Advice of madvise: include/uapi/asm-generic/mman-common.h.
const (
	MADV_NORMAL          = 0
	MADV_RANDOM          = 1
	MADV_SEQUENTIAL      = 2
	MADV_WILLNEED        = 3
	MADV_DONTNEED        = 4
	MADV_FREE            = 8
	MADV_REMOVE          = 9
	MADV_DONTFORK        = 10
	MADV_DOFORK          = 11
	MADV_MERGEABLE       = 12
	MADV_UNMERGEABLE     = 13
	MADV_HUGEPAGE        = 14
	MADV_NOHUGEPAGE      = 15
	MADV_DONTDUMP        = 16
	MADV_DODUMP          = 17
	MADV_WIPEONFORK      = 18
	MADV_KEEPONFORK      = 19
	MADV_COLD            = 20
	MADV_PAGEOUT         = 21
	MADV_POPULATE_READ   = 22
	MADV_POPULATE_WRITE  = 23
	MADV_DONTNEED_LOCKED = 24
	MADV_COLLAPSE        = 25
	MADV_HWPOISON        = 100
	MADV_SOFT_OFFLINE    = 101
	MADV_GUARD_INSTALL   = 102
	MADV_GUARD_REMOVE    = 103
)

// Flags of shmat: include/uapi/linux/shm.h.
const (
	SHM_RDONLY = 0x1000
	SHM_RND    = 0x2000
	SHM_REMAP  = 0x4000
	SHM_EXEC   = 0x8000
)

var setProt = flagSet{
	{PROT_READ, "PROT_READ"},
	{PROT_WRITE, "PROT_WRITE"},
	{PROT_EXEC, "PROT_EXEC"},
	{PROT_SEM, "PROT_SEM"},
	{PROT_GROWSDOWN, "PROT_GROWSDOWN"},
	{PROT_GROWSUP, "PROT_GROWSUP"},
}

var mapFlags = flagSet{
	{MAP_SHARED, "MAP_SHARED"},
	{MAP_PRIVATE, "MAP_PRIVATE"},
	{MAP_DROPPABLE, "MAP_DROPPABLE"},
	{MAP_FIXED, "MAP_FIXED"},
	{MAP_ANONYMOUS, "MAP_ANONYMOUS"},
	{MAP_32BIT, "MAP_32BIT"},
	{MAP_ABOVE4G, "MAP_ABOVE4G"},
	{MAP_GROWSDOWN, "MAP_GROWSDOWN"},
	{MAP_DENYWRITE, "MAP_DENYWRITE"},
	{MAP_EXECUTABLE, "MAP_EXECUTABLE"},
	{MAP_LOCKED, "MAP_LOCKED"},
	{MAP_NORESERVE, "MAP_NORESERVE"},
	{MAP_POPULATE, "MAP_POPULATE"},
	{MAP_NONBLOCK, "MAP_NONBLOCK"},
	{MAP_STACK, "MAP_STACK"},
	{MAP_HUGETLB, "MAP_HUGETLB"},
	{MAP_SYNC, "MAP_SYNC"},
	{MAP_FIXED_NOREPLACE, "MAP_FIXED_NOREPLACE"},
}

var setMremap = flagSet{
	{MREMAP_MAYMOVE, "MREMAP_MAYMOVE"},
	{MREMAP_FIXED, "MREMAP_FIXED"},
	{MREMAP_DONTUNMAP, "MREMAP_DONTUNMAP"},
}

var setMadvise = enumSet{
	{MADV_NORMAL, "MADV_NORMAL"},
	{MADV_RANDOM, "MADV_RANDOM"},
	{MADV_SEQUENTIAL, "MADV_SEQUENTIAL"},
	{MADV_WILLNEED, "MADV_WILLNEED"},
	{MADV_DONTNEED, "MADV_DONTNEED"},
	{MADV_FREE, "MADV_FREE"},
	{MADV_REMOVE, "MADV_REMOVE"},
	{MADV_DONTFORK, "MADV_DONTFORK"},
	{MADV_DOFORK, "MADV_DOFORK"},
	{MADV_MERGEABLE, "MADV_MERGEABLE"},
	{MADV_UNMERGEABLE, "MADV_UNMERGEABLE"},
	{MADV_HUGEPAGE, "MADV_HUGEPAGE"},
	{MADV_NOHUGEPAGE, "MADV_NOHUGEPAGE"},
	{MADV_DONTDUMP, "MADV_DONTDUMP"},
	{MADV_DODUMP, "MADV_DODUMP"},
	{MADV_WIPEONFORK, "MADV_WIPEONFORK"},
	{MADV_KEEPONFORK, "MADV_KEEPONFORK"},
	{MADV_COLD, "MADV_COLD"},
	{MADV_PAGEOUT, "MADV_PAGEOUT"},
	{MADV_POPULATE_READ, "MADV_POPULATE_READ"},
	{MADV_POPULATE_WRITE, "MADV_POPULATE_WRITE"},
	{MADV_DONTNEED_LOCKED, "MADV_DONTNEED_LOCKED"},
	{MADV_COLLAPSE, "MADV_COLLAPSE"},
	{MADV_HWPOISON, "MADV_HWPOISON"},
	{MADV_SOFT_OFFLINE, "MADV_SOFT_OFFLINE"},
	{MADV_GUARD_INSTALL, "MADV_GUARD_INSTALL"},
	{MADV_GUARD_REMOVE, "MADV_GUARD_REMOVE"},
}

// setMsync: Flags of msync.
var setMsync = flagSet{
	{0x1, "MS_ASYNC"},
	{0x2, "MS_INVALIDATE"},
	{0x4, "MS_SYNC"},
}

// setMlockall: Flags of mlockall.
var setMlockall = flagSet{
	{0x1, "MCL_CURRENT"},
	{0x2, "MCL_FUTURE"},
	{0x4, "MCL_ONFAULT"},
}

// setMemfd: Flags of memfd_create: include/uapi/linux/memfd.h.
var setMemfd = flagSet{
	{0x1, "MFD_CLOEXEC"},
	{0x2, "MFD_ALLOW_SEALING"},
	{0x4, "MFD_HUGETLB"},
	{0x8, "MFD_NOEXEC_SEAL"},
	{0x10, "MFD_EXEC"},
}

var setShmat = flagSet{
	{SHM_RDONLY, "SHM_RDONLY"},
	{SHM_RND, "SHM_RND"},
	{SHM_REMAP, "SHM_REMAP"},
	{SHM_EXEC, "SHM_EXEC"},
}
