package checkpoint

// The memory map: objects, the ranges that show them, and the changes of the map that an
// event holds. The content of memory is in pagetable.go.

// ObjectKind says what stands behind a range of memory.
type ObjectKind uint8

// The kinds of memory object.
const (
	ObjectAnon    ObjectKind = iota // private anonymous memory: pages belong to the address
	ObjectFile                      // a file, mapped privately or shared
	ObjectShared                    // shared anonymous memory, memfd, System V segment
	ObjectSpecial                   // vdso, vvar, vsyscall
)

// Object is what a mapping refers to. ID 0 is the anonymous object.
type Object struct {
	ID      uint32
	Kind    ObjectKind
	Path    string // as /proc/PID/maps says it
	BuildID string // lower-case hex of the GNU build-id note, "" when unknown
	Dev     uint64
	Inode   uint64
	Size    int64 // bytes, at the time of mapping
	Changed bool  // the file's content changed while the recording ran
}

// Protection bits of a mapping (PROT_* of mman.h).
const (
	ProtRead  = 1
	ProtWrite = 2
	ProtExec  = 4
)

// Mapping flags.
const (
	MapShared    = 1 << iota // stores reach the object (MAP_SHARED)
	MapGrowsDown             // a stack: extends downwards on a fault
	MapStack                 // the main thread's stack
	MapHeap                  // the brk area
)

// Mapping is one range of the memory map; Start and End are page-aligned.
type Mapping struct {
	Start, End uint64
	Prot       uint8
	Flags      uint8
	Object     uint32 // an Object's ID
	Offset     uint64 // bytes into the object at Start
	Name       string // as /proc/PID/maps shows it: "[heap]", "[stack]", a path, or ""
}

// MapOpKind names a change of the memory map.
type MapOpKind uint8

// The changes of the memory map.
const (
	// MapOpMap maps [Start,End) anew; whatever was there is unmapped first.
	// Pages of an anonymous range are zero, pages of a file are found by object.
	MapOpMap MapOpKind = 1 + iota
	// MapOpUnmap removes all of [Start,End).
	MapOpUnmap
	// MapOpProtect sets Prot on all mapped parts of [Start,End).
	MapOpProtect
	// MapOpMove moves the mapping and its pages from [Start,End) to New
	// (mremap); NewEnd-New may differ from End-Start.
	MapOpMove
	// MapOpDrop forgets private pages in [Start,End) (MADV_DONTNEED): they read
	// as the object again, or as zero.
	MapOpDrop
)

// MapOp is one change of the memory map.
type MapOp struct {
	Kind        MapOpKind
	Start, End  uint64
	New, NewEnd uint64  // MapOpMove
	Map         Mapping // MapOpMap: Prot, Flags, Object, Offset, Name; its range is Start, End when read
	Prot        uint8   // MapOpProtect
}
