//go:build linux && amd64

package record

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/replay/mem/rangemap"
)

// The recorder keeps the guest's memory map by itself, one change for each
// system call that makes one, because the log must say what each call changed
// and parsing /proc/PID/maps after each would cost more than the call. At
// every interval border the kernel's list replaces the model, so an error here
// cannot live longer than an interval.

// Advice and flags that a fork does not honour (man 2 madvise); kept per range.
type forkAdvice uint8

const (
	wipeOnFork forkAdvice = 1 << iota
	dontFork
)

// mapping is a range of the model: what the recording holds, and what the
// recorder needs besides.
type mapping struct {
	checkpoint.Mapping
	advice forkAdvice
}

// private reports whether stores stay in the process.
func (m *mapping) private() bool { return m.Flags&checkpoint.MapShared == 0 }

// indexOf returns the index, in the mapped object, of the page at addr.
func (m *mapping) indexOf(addr uint64) uint64 {
	return (addr - m.Start + m.Offset) / checkpoint.PageSize
}

// Bounds implements rangemap.Value.
func (m mapping) Bounds() (start, end uint64) { return m.Start, m.End }

// Cut implements rangemap.Value.
func (m mapping) Cut(start, end uint64) mapping { return m.part(start, end) }

// mapModel is the map as the recorder believes it to be: disjoint ranges, by
// address.
type mapModel struct {
	tree   rangemap.Map[mapping]
	list   []mapping // of the tree listed; see all
	listed rangemap.Map[mapping]
	viewed *objectViews      // see tracer.views
	where  map[fileID]uint64 // an address where the file was mapped; see tracer.isMapped
}

// newMapModel returns the model of a sorted list of disjoint ranges.
func newMapModel(list []mapping) mapModel { return mapModel{tree: rangemap.Of(list)} }

// all returns the ranges in order. The list must not be changed; it is made anew
// after a change of the map.
func (m *mapModel) all() []mapping {
	if m.list == nil || m.listed != m.tree {
		m.list, m.listed = m.tree.All(), m.tree
	}
	return m.list
}

// at returns the range that holds addr, or nil. It must not be changed.
func (m *mapModel) at(addr uint64) *mapping { return m.tree.Find(addr) }

// overlap returns the ranges that meet [start,end), uncut.
func (m *mapModel) overlap(start, end uint64) []mapping {
	var out []mapping
	for r := range m.tree.From(start) {
		if r.Start >= end {
			break
		}
		out = append(out, *r)
	}
	return out
}

func (m *mapping) cutFront(addr uint64) {
	if m.Object != 0 {
		m.Offset += addr - m.Start
	}
	m.Start = addr
}

// change cuts the ranges at start and end and changes those between.
func (m *mapModel) change(start, end uint64, f func(*mapping)) {
	in := m.tree.Inside(start, end)
	for i := range in {
		f(&in[i])
	}
	m.tree = m.tree.Replace(start, end, in...)
}

func (m *mapModel) advise(start, end uint64, set, unset forkAdvice) {
	m.change(start, end, func(r *mapping) { r.advice = r.advice&^unset | set })
}

// apply changes the model as the kernel changed the map.
func (m *mapModel) apply(op *checkpoint.MapOp) {
	switch op.Kind {
	case checkpoint.MapOpMap:
		x := mapping{Mapping: op.Map}
		x.Start, x.End = op.Start, op.End
		m.tree = m.tree.Replace(x.Start, x.End, x)
	case checkpoint.MapOpUnmap:
		m.tree = m.tree.Replace(op.Start, op.End)
	case checkpoint.MapOpProtect:
		m.change(op.Start, op.End, func(r *mapping) { r.Prot = op.Prot })
	case checkpoint.MapOpMove:
		m.move(op)
	case checkpoint.MapOpDrop: // The content goes, the map stays.
	}
}

// move is mremap: the ranges keep what they map; the last one grows or is cut.
func (m *mapModel) move(op *checkpoint.MapOp) {
	moved := m.tree.Inside(op.Start, op.End)
	m.tree = m.tree.Replace(op.Start, op.End)
	if len(moved) == 0 {
		return
	}
	var there []mapping
	for k, x := range moved {
		x.End = x.End - op.Start + op.New
		x.Start = x.Start - op.Start + op.New
		if k == len(moved)-1 && op.NewEnd > x.End {
			x.End = op.NewEnd
		}
		if x.Start >= op.NewEnd {
			break
		}
		x.End = min(x.End, op.NewEnd)
		there = append(there, x)
	}
	m.tree = m.tree.Replace(op.New, op.NewEnd, there...)
}

// mappings returns a copy of the ranges as the recording holds them.
func (m *mapModel) mappings() []checkpoint.Mapping {
	out := make([]checkpoint.Mapping, 0, m.tree.Len())
	for r := range m.tree.From(0) {
		out = append(out, r.Mapping)
	}
	return out
}

// adopt replaces the model by the kernel's list and keeps the advice and flags
// that the list does not show.
func (m *mapModel) adopt(list []mapping) {
	old := *m
	for i := range list {
		x := &list[i]
		for _, o := range old.overlap(x.Start, x.End) {
			x.advice |= o.advice
			x.Flags |= o.Flags & checkpoint.MapGrowsDown
		}
	}
	*m = newMapModel(list)
}

// differs describes the first difference between the model and the kernel's
// list, or returns "". Neighbours with the same attributes count as one range
// (the kernel merges when it can), and a stack may have grown.
func (m *mapModel) differs(list []mapping) string {
	a, b := merged(m.all()), merged(list)
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if y.Flags&checkpoint.MapGrowsDown != 0 && y.Start < x.Start {
			x.Start = y.Start
		}
		if x.Start != y.Start || x.End != y.End || x.Prot != y.Prot || x.Object != y.Object {
			return fmt.Sprintf("model %x-%x prot %d object %d, kernel %x-%x prot %d object %d",
				x.Start, x.End, x.Prot, x.Object, y.Start, y.End, y.Prot, y.Object)
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("model has %d ranges, kernel %d", len(a), len(b))
	}
	return ""
}

func merged(list []mapping) []mapping {
	var out []mapping
	for _, x := range list {
		x.Flags &= checkpoint.MapShared | checkpoint.MapGrowsDown
		if n := len(out); n > 0 {
			p := &out[n-1]
			if p.End == x.Start && p.Prot == x.Prot && p.Flags&checkpoint.MapShared == x.Flags&checkpoint.MapShared &&
				p.Object == x.Object && (x.Object == 0 || p.Offset+(p.End-p.Start) == x.Offset) {
				p.End = x.End
				continue
			}
		}
		out = append(out, x)
	}
	return out
}

// objectKey identifies what a mapping refers to, as /proc/PID/maps shows it.
type objectKey struct {
	dev, inode uint64
	path       string
}

// objectTable numbers the objects of one recording; IDs start at 1.
type objectTable struct {
	ids  map[objectKey]uint32
	list []checkpoint.Object
}

// id returns the object's number, making it when it is new. size and open are called
// then; open, to read the build-id, may return an error.
func (t *objectTable) id(k objectKey, kind checkpoint.ObjectKind, size func() int64, open func() (io.ReaderAt, func(), error)) uint32 {
	if id, ok := t.ids[k]; ok {
		return id
	}
	if t.ids == nil {
		t.ids = map[objectKey]uint32{}
	}
	o := checkpoint.Object{ID: uint32(len(t.list) + 1), Kind: kind, Path: k.path, Dev: k.dev, Inode: k.inode, Size: size()}
	if kind == checkpoint.ObjectFile && open != nil {
		if f, done, err := open(); err == nil {
			o.BuildID = buildID(f)
			done()
		}
	}
	t.list = append(t.list, o)
	t.ids[k] = o.ID
	return o.ID
}

// forget makes the next mapping of a file refer to a new object.
func (t *objectTable) forget(dev, inode uint64) {
	for k := range t.ids {
		if k.dev == dev && k.inode == inode {
			delete(t.ids, k)
		}
	}
}

// kindOf tells what a path of /proc/PID/maps stands for.
func kindOf(path string, inode uint64) checkpoint.ObjectKind {
	switch {
	case path == "[vdso]" || path == "[vvar]" || path == "[vvar_vclock]" || path == "[vsyscall]":
		return checkpoint.ObjectSpecial
	case strings.HasPrefix(path, "/memfd:"), strings.HasPrefix(path, "/SYSV"), strings.HasPrefix(path, "/dev/zero"):
		return checkpoint.ObjectShared
	case inode != 0 && path != "":
		return checkpoint.ObjectFile
	}
	return checkpoint.ObjectAnon
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
	major, minor, ok2 := strings.Cut(f[3], ":")
	if !ok || !ok2 {
		return m, false
	}
	var err [6]error
	var maj, mnr, inode uint64
	m.Start, err[0] = strconv.ParseUint(lo, 16, 64)
	m.End, err[1] = strconv.ParseUint(hi, 16, 64)
	m.Offset, err[2] = strconv.ParseUint(f[2], 16, 64)
	maj, err[3] = strconv.ParseUint(major, 16, 32)
	mnr, err[4] = strconv.ParseUint(minor, 16, 32)
	inode, err[5] = strconv.ParseUint(f[4], 10, 64)
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
	kind := kindOf(path, inode)
	if kind == checkpoint.ObjectAnon {
		m.Offset = 0
		return m, true
	}
	dev := unix.Mkdev(uint32(maj), uint32(mnr))
	m.Object = objs.id(objectKey{dev, inode, path}, kind, func() int64 { return fileSize(pid, m.Start, m.End) }, mapFileOpener(pid, m.Start, m.End))
	return m, true
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
