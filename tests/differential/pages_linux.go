package differential

import "golang.org/x/sys/unix"

// The memory of the sandbox's pages: on Linux generated code may map them.

// newPages returns the sandbox's pages, as parts of a file of memory, which lives as long as the process; -1 where there is none.
func newPages() (pages [sandboxPages]*[pageSize]byte, file int) {
	fd, err := unix.MemfdCreate("sandbox", unix.MFD_CLOEXEC)
	if err == nil {
		if err = unix.Ftruncate(fd, sandboxPages*pageSize); err == nil {
			var b []byte
			if b, err = unix.Mmap(fd, 0, sandboxPages*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
				for i := range pages {
					pages[i] = (*[pageSize]byte)(b[i*pageSize:])
				}
				return pages, fd
			}
		}
		_ = unix.Close(fd)
	}
	return newPlainPages(), -1
}
