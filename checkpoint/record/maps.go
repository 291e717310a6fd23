//go:build linux && amd64

package record

import (
	"bufio"
	"errors"
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

// readModel makes the model of the map what the kernel lists.
func (sp *space) readModel() error {
	list, err := sp.kernelMaps()
	if err == nil {
		sp.maps = newMapModel(list)
	}
	return err
}

// lineAt returns the kernel's description of the mapping at addr.
func (sp *space) lineAt(addr uint64) (mapping, error) {
	m, err := sp.mm.mappingAt(sp.pid, addr, &sp.objects.objectTable)
	switch {
	case err == nil && !sp.isScratch(&m):
		return m, nil
	case err != nil && !errors.Is(err, unix.ENOTTY):
		return mapping{}, fmt.Errorf("the new mapping at %#x: %w", addr, err)
	}
	list, err := sp.kernelMaps()
	if err != nil {
		return mapping{}, err
	}
	all := newMapModel(list)
	if r := all.at(addr); r != nil {
		return *r, nil
	}
	return mapping{}, fmt.Errorf("the new mapping at %#x is not in the kernel's list", addr)
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
	var l mapsLine
	f := strings.SplitN(line, " ", 6)
	if len(f) < 5 || len(f[1]) != 4 {
		return mapping{}, false
	}
	lo, hi, ok := strings.Cut(f[0], "-")
	file, ok2 := parseFileID(f[3], f[4])
	if !ok || !ok2 {
		return mapping{}, false
	}
	var err [3]error
	l.file = file
	l.start, err[0] = strconv.ParseUint(lo, 16, 64)
	l.end, err[1] = strconv.ParseUint(hi, 16, 64)
	l.offset, err[2] = strconv.ParseUint(f[2], 16, 64)
	for _, e := range err {
		if e != nil {
			return mapping{}, false
		}
	}
	if len(f) == 6 {
		l.path = strings.TrimLeft(f[5], " ")
	}
	for i, c := range []byte("rwx") {
		if f[1][i] == c {
			l.prot |= 1 << i
		}
	}
	l.shared = f[1][3] == 's'
	return l.mapping(pid, objs), true
}

// mapsLine is what the kernel says of a mapping.
type mapsLine struct {
	start, end, offset uint64
	prot               uint8
	shared             bool
	file               fileID
	path               string // with \012 for each newline
}

// mapping returns the mapping. An object that is new gets its number.
func (l *mapsLine) mapping(pid int, objs *objectTable) mapping {
	var m mapping
	m.Start, m.End, m.Offset, m.Prot = l.start, l.end, l.offset, l.prot
	path := l.path
	if strings.HasPrefix(path, "[anon_shmem:") {
		path = sharedAnonymous // named by PR_SET_VMA_ANON_NAME, and the same object
	}
	m.Name = path
	if l.shared {
		m.Flags |= checkpoint.MapShared
	}
	switch path {
	case "[heap]":
		m.Flags |= checkpoint.MapHeap
	case "[stack]":
		m.Flags |= checkpoint.MapStack | checkpoint.MapGrowsDown
	}
	kind := kindOf(path, l.file.inode)
	if kind == checkpoint.ObjectAnon {
		m.Offset = 0
		return m
	}
	m.Object = objs.id(objectKey{l.file, path}, kind, func(kind checkpoint.ObjectKind) (int64, string) { return objs.lookBehind(pid, m.Start, m.End, kind) })
	return m
}

// readMapsAt asks for the mapping at addr alone, of a process's map that may have thousands. ENOTTY says that the kernel has not got
// the request, before Linux 6.11, and ENOENT that nothing is mapped there.
func readMapsAt(pid int, addr uint64, objs *objectTable) (mapping, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return mapping{}, err
	}
	defer func() { _ = f.Close() }() // only read
	l, err := queryMaps(int(f.Fd()), addr)
	if err != nil {
		return mapping{}, err
	}
	l.path = strings.ReplaceAll(l.path, "\n", `\012`)
	return l.mapping(pid, objs), nil
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

// openMapFile opens the file behind a mapping of a process, which the kernel allows root alone.
func openMapFile(pid int, start, end uint64) (io.ReaderAt, func(), error) {
	f, err := os.Open(mapFile(pid, start, end))
	if err != nil {
		return nil, nil, err
	}
	return f, func() { _ = f.Close() }, nil
}
