package corefile

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"vplay/checkpoint"
)

// What /proc says of a program whose core file is being written: it has not gone yet. Who asks /proc is
// not here, so that this is tested on any system.

// File is a file of the program, as it is mapped.
type File interface {
	io.ReaderAt
	io.Closer
}

// Live is what is known of a process beside its core file. What is zero is not known.
type Live struct {
	Maps     []byte // the text of /proc/PID/maps
	Program  string
	Args     []string
	Env      []string
	Cwd      string
	Hostname string
	Kernel   string
	CPU      checkpoint.Identity
	Names    map[checkpoint.TID]string // of threads, by the numbers that the program knows
	// Open opens a mapped file by its path in Maps and returns its size.
	Open func(path string) (File, int64, error)
}

// areas returns the areas of a text of /proc/PID/maps (Documentation/filesystems/proc.rst). Lines that
// are not understood are left out: what is known of them is in the core file.
func (l *Live) areas() (out []area) {
	for line := range bytes.Lines(l.Maps) {
		f := strings.SplitN(strings.TrimSuffix(string(line), "\n"), " ", 6)
		if len(f) < 5 || len(f[1]) != 4 {
			continue
		}
		lo, hi, _ := strings.Cut(f[0], "-")
		major, minor, _ := strings.Cut(f[3], ":")
		var v [6]uint64
		bad := false
		for i, s := range []string{lo, hi, f[2], major, minor} {
			var err error
			v[i], err = strconv.ParseUint(s, 16, 64)
			bad = bad || err != nil
		}
		inode, err := strconv.ParseUint(f[4], 10, 64)
		if bad || err != nil || v[0] >= v[1] || (v[0]|v[1]|v[2])%pageSize != 0 || v[1] > userEnd {
			continue
		}
		a := area{start: v[0], end: v[1], offset: v[2], dev: device(v[3], v[4]), inode: inode, shared: f[1][3] == 's'}
		if len(f) == 6 {
			a.path = strings.TrimLeft(f[5], " ")
		}
		out = append(out, a)
	}
	return out
}

// device is the number of a device as stat(2) has it (makedev(3)).
func device(major, minor uint64) uint64 {
	return minor&0xff | major&0xfff<<8 | minor&^0xff<<12 | major&^0xfff<<32
}
