//go:build linux && amd64

package record

import (
	"bytes"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The PROCMAP_QUERY request of /proc/PID/maps (include/uapi/linux/fs.h, Linux 6.11).

// mapsQuery is struct procmap_query.
type mapsQuery struct {
	size, flags, addr     uint64
	start, end            uint64
	vmaFlags, pageSize    uint64
	offset, inode         uint64
	major, minor          uint32
	nameSize, buildIDSize uint32
	name                  *byte
	buildID               uint64
}

const (
	procmapQuery = 0xc0686611 // _IOWR('f', 17, struct procmap_query)
	queryProt    = 7          // PROCMAP_QUERY_VMA_READABLE, _WRITABLE, _EXECUTABLE, as PROT_READ and so on
	queryShared  = 8          // PROCMAP_QUERY_VMA_SHARED
)

// queryMaps asks for the mapping at addr by a descriptor of /proc/PID/maps.
func queryMaps(fd int, addr uint64) (mapsLine, error) {
	name := make([]byte, unix.PathMax)
	q := mapsQuery{addr: addr, nameSize: uint32(len(name)), name: &name[0]}
	q.size = uint64(unsafe.Sizeof(q))
	if _, err := ioctl(fd, procmapQuery, unsafe.Pointer(&q)); err != nil {
		return mapsLine{}, err
	}
	path, _, _ := bytes.Cut(name[:q.nameSize], []byte{0}) // the size is with the 0
	return mapsLine{
		start: q.start, end: q.end, offset: q.offset, prot: uint8(q.vmaFlags & queryProt), shared: q.vmaFlags&queryShared != 0,
		file: fileID{unix.Mkdev(q.major, q.minor), q.inode}, path: string(path),
	}, nil
}
