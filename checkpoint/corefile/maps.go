package corefile

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// The memory map: the segments, cut where files begin and end, with what is known of each part. Which
// bytes a part has is decided elsewhere: the core file's are in write.go, the files' in mapped.go.

// memoryMap is the map at the moment of the core file.
type memoryMap struct {
	maps    []checkpoint.Mapping // by address
	objects []checkpoint.Object  // the one with ID n is at n-1
	paths   []string             // of the objects, as the kernel has them
	ids     map[area]uint32      // by path, dev and inode
	nothing uint32               // the object of memory that is not in the core file; 0: not made yet
}

// newMap joins the segments with what is known of the areas in them.
func (c *Core) newMap(areas []area) (*memoryMap, error) {
	m := &memoryMap{ids: map[area]uint32{}}
	areas = disjoint(areas)
	const row = 200 // bytes of a mapping with its place in lists
	if err := c.take(int64(len(c.segments)+2*len(areas))*row, "memory map"); err != nil {
		return nil, err
	}
	for i := range c.segments {
		s := &c.segments[i]
		for at := s.start; at < s.end; {
			for len(areas) > 0 && areas[0].end <= at {
				areas = areas[1:]
			}
			part := area{start: at, end: s.end}
			if len(areas) > 0 && areas[0].start <= at {
				part = areas[0]
				part.offset += at - part.start
				part.start, part.end = at, min(part.end, s.end)
			} else if len(areas) > 0 {
				part.end = min(part.end, areas[0].start)
			}
			m.add(c, s, part)
			at = part.end
		}
	}
	return m, nil
}

// disjoint returns areas by address, those that overlap one before left out.
func disjoint(areas []area) []area {
	areas = slices.Clone(areas)
	slices.SortStableFunc(areas, func(a, b area) int { return cmp.Compare(a.start, b.start) })
	out := areas[:0]
	for _, a := range areas {
		if n := len(out); n == 0 || a.start >= out[n-1].end {
			out = append(out, a)
		}
	}
	return out
}

// add adds a part of a segment. Anonymous memory that the core file has not is another mapping than
// what it has: of an anonymous page without a record one knows that it is zero.
func (m *memoryMap) add(c *Core, s *segment, a area) {
	g := checkpoint.Mapping{Start: a.start, End: a.end, Prot: s.prot, Name: a.path}
	if a.shared {
		g.Flags = checkpoint.MapShared
	}
	kind := kindOf(a.path, a.inode)
	if kind == checkpoint.ObjectAnon {
		c.nameAnonymous(&g)
		if g.Name == vdsoName {
			kind = checkpoint.ObjectSpecial
		}
	}
	known := min((s.start+s.stored+pageSize-1)&^(pageSize-1), s.end) // what is behind is not in the file
	cut := min(max(known, g.Start), g.End)
	if kind == checkpoint.ObjectFile {
		// Of a file that was deleted gdb is told the name that it had, as the program has it.
		g.Name = strings.TrimSuffix(g.Name, deleted)
	}
	if kind == checkpoint.ObjectFile || kind == checkpoint.ObjectSpecial {
		g.Object, g.Offset = m.object(g.Name, &a, kind), a.offset
		m.maps = append(m.maps, g)
		return
	}
	stored, rest := g, g
	stored.End, rest.Start = cut, cut
	if stored.Start < stored.End {
		if kind == checkpoint.ObjectShared {
			stored.Object, stored.Offset = m.object(g.Name, &a, kind), a.offset
		}
		m.maps = append(m.maps, stored)
	}
	if rest.Start < rest.End {
		rest.Object = m.absent()
		rest.Flags &^= checkpoint.MapShared
		m.maps = append(m.maps, rest)
	}
}

// Names that the kernel gives to mappings.
const (
	vdsoName  = "[vdso]"
	stackName = "[stack]"
	heapName  = "[heap]"
)

// nameAnonymous gives a mapping the name and the flags that the kernel has for it, as far as the
// auxiliary vector tells.
func (c *Core) nameAnonymous(g *checkpoint.Mapping) {
	within := func(tag uint64) bool { return c.aux[tag] >= g.Start && c.aux[tag] < g.End }
	switch {
	case g.Name != "":
	case within(abi.AT_SYSINFO_EHDR):
		g.Name = vdsoName
	case within(abi.AT_RANDOM):
		g.Name = stackName
	}
	switch g.Name {
	case stackName:
		g.Flags |= checkpoint.MapStack | checkpoint.MapGrowsDown
	case heapName:
		g.Flags |= checkpoint.MapHeap
	}
}

// kindOf returns what a path of /proc/PID/maps, or of NT_FILE, stands for. inode is 0 in NT_FILE.
func kindOf(name string, inode uint64) checkpoint.ObjectKind {
	switch {
	case slices.Contains([]string{vdsoName, "[vvar]", "[vvar_vclock]", "[vsyscall]"}, name):
		return checkpoint.ObjectSpecial
	case strings.HasPrefix(name, "/memfd:"), strings.HasPrefix(name, "/SYSV"), strings.HasPrefix(name, "/dev/zero"):
		return checkpoint.ObjectShared
	case strings.HasPrefix(name, "/") || inode != 0:
		return checkpoint.ObjectFile
	}
	return checkpoint.ObjectAnon
}

// object returns the object of an area, which it makes when it is new.
func (m *memoryMap) object(name string, a *area, kind checkpoint.ObjectKind) uint32 {
	key := area{path: a.path, dev: a.dev, inode: a.inode}
	id, ok := m.ids[key]
	if !ok {
		id = m.newObject(checkpoint.Object{Kind: kind, Path: name, Dev: a.dev, Inode: a.inode}, a.path)
		m.ids[key] = id
	}
	return id
}

// newObject numbers an object.
func (m *memoryMap) newObject(o checkpoint.Object, path string) uint32 {
	o.ID = uint32(len(m.objects)) + 1
	m.objects, m.paths = append(m.objects, o), append(m.paths, path)
	return o.ID
}

// Files returns the files that the core file says are mapped, as objects of which nothing but the path is known.
func (c *Core) Files() (out []checkpoint.Object) {
	seen := map[string]bool{}
	for i := range c.files {
		name := strings.TrimSuffix(c.files[i].path, deleted)
		if !seen[name] && kindOf(name, 0) == checkpoint.ObjectFile {
			seen[name] = true
			out = append(out, checkpoint.Object{Kind: checkpoint.ObjectFile, Path: name})
		}
	}
	return out
}

// deleted is what the kernel puts behind the path of a file that was deleted.
const deleted = " (deleted)"

// absent returns the object of anonymous memory that is not in the core file: of its pages none is known.
func (m *memoryMap) absent() uint32 {
	if m.nothing == 0 {
		m.nothing = m.newObject(checkpoint.Object{Kind: checkpoint.ObjectAnon}, "")
	}
	return m.nothing
}

// at returns the mapping that holds an address, nil when none does.
func (m *memoryMap) at(addr uint64) *checkpoint.Mapping {
	i, _ := slices.BinarySearchFunc(m.maps, addr, func(g checkpoint.Mapping, a uint64) int {
		if g.End <= a {
			return -1
		}
		return 1
	})
	if i == len(m.maps) || m.maps[i].Start > addr {
		return nil
	}
	return &m.maps[i]
}

// program returns the path of the program's file: what is mapped at its entry point, else its name.
func (c *Core) program(m *memoryMap) string {
	if g := m.at(c.aux[abi.AT_ENTRY]); g != nil && path.IsAbs(g.Name) {
		return g.Name
	}
	return c.comm
}
