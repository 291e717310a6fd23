//go:build linux && amd64

package record

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// The kernel's list of a process's mappings, /proc/PID/maps, and the files behind them. The
// recorder's own model of the map is in mapmodel.go; mapdiff.go compares the two.

// kernelMaps returns the mappings as the kernel lists them.
func (sp *space) kernelMaps() ([]mapping, error) {
	list, err := sp.mm.mappings(sp.pid, &sp.objects.objectTable)
	if len(sp.scratch)+len(sp.agentPages) > 0 {
		list = slices.DeleteFunc(list, func(m mapping) bool { return sp.isScratch(&m) })
	}
	return list, err
}

// readMaps parses the map of a process.
func readMaps(pid int, objs *objectTable) ([]mapping, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	var out []mapping
	s := bufio.NewScanner(f)
	s.Buffer(make([]byte, 0, 16<<10), 1<<20)
	for s.Scan() {
		m, ok := parseMapsLine(s.Text(), pid, objs)
		if !ok {
			return nil, fmt.Errorf("line %q of /proc/%d/maps is not understood", s.Text(), pid)
		}
		out = append(out, m)
	}
	return out, s.Err()
}

// parseMapsLine reads "start-end perms offset dev inode   path"
// (Documentation/filesystems/proc.rst).
func parseMapsLine(line string, pid int, objs *objectTable) (mapping, bool) {
	var m mapping
	f := strings.SplitN(line, " ", 6)
	if len(f) < 5 || len(f[1]) != 4 {
		return m, false
	}
	lo, hi, ok := strings.Cut(f[0], "-")
	file, ok2 := parseFileID(f[3], f[4])
	if !ok || !ok2 {
		return m, false
	}
	var err [3]error
	m.Start, err[0] = strconv.ParseUint(lo, 16, 64)
	m.End, err[1] = strconv.ParseUint(hi, 16, 64)
	m.Offset, err[2] = strconv.ParseUint(f[2], 16, 64)
	for _, e := range err {
		if e != nil {
			return m, false
		}
	}
	path := ""
	if len(f) == 6 {
		path = strings.TrimLeft(f[5], " ")
	}
	if strings.HasPrefix(path, "[anon_shmem:") {
		path = sharedAnonymous // named by PR_SET_VMA_ANON_NAME, and the same object
	}
	m.Name = path
	for i, c := range []byte("rwx") {
		if f[1][i] == c {
			m.Prot |= 1 << i
		}
	}
	if f[1][3] == 's' {
		m.Flags |= checkpoint.MapShared
	}
	switch path {
	case "[heap]":
		m.Flags |= checkpoint.MapHeap
	case "[stack]":
		m.Flags |= checkpoint.MapStack | checkpoint.MapGrowsDown
	}
	kind := kindOf(path, file.inode)
	if kind == checkpoint.ObjectAnon {
		m.Offset = 0
		return m, true
	}
	m.Object = objs.id(objectKey{file.dev, file.inode, path}, kind, func() int64 { return fileSize(pid, m.Start, m.End) }, mapFileOpener(pid, m.Start, m.End))
	return m, true
}

// parseFileID reads the dev and inode fields of such a line.
func parseFileID(dev, inode string) (fileID, bool) {
	major, minor, _ := strings.Cut(dev, ":")
	maj, err := strconv.ParseUint(major, 16, 32)
	mnr, err2 := strconv.ParseUint(minor, 16, 32)
	ino, err3 := strconv.ParseUint(inode, 10, 64)
	return fileID{unix.Mkdev(uint32(maj), uint32(mnr)), ino}, err == nil && err2 == nil && err3 == nil
}

func mapFile(pid int, start, end uint64) string {
	return fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, start, end)
}

// fileSize returns the size of the file behind a mapping, or -1.
func fileSize(pid int, start, end uint64) int64 {
	fi, err := os.Stat(mapFile(pid, start, end))
	if err != nil {
		return -1
	}
	return fi.Size()
}

func mapFileOpener(pid int, start, end uint64) func() (io.ReaderAt, func(), error) {
	return func() (io.ReaderAt, func(), error) {
		f, err := os.Open(mapFile(pid, start, end))
		if err != nil {
			return nil, nil, err
		}
		return f, func() { _ = f.Close() }, nil
	}
}
