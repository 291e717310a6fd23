//go:build linux && amd64

package record

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/replay/mem/rangemap"
)

// A program may map one file, or many, tens of thousands of times. What asks for
// the mappings of an object must not look at all of them, nor read the kernel's list of
// all for each new one.

// views returns the index of the present map.
func (sp *space) views() *objectViews {
	if sp.maps.viewed != nil && sp.maps.viewed.of == sp.maps.tree {
		return sp.maps.viewed
	}
	v := &objectViews{of: sp.maps.tree, list: map[uint32][]*mapping{}, objects: map[fileID][]uint32{}, shared: map[uint32]*rangemap.Overlaps[*mapping]{}}
	for m := range sp.maps.tree.From(0) {
		if m.Object == 0 {
			continue
		}
		if v.list[m.Object] == nil {
			k := sp.objects.file(m.Object)
			v.objects[k] = append(v.objects[k], m.Object)
		}
		v.list[m.Object] = append(v.list[m.Object], m)
	}
	sp.maps.viewed = v
	return v
}

// isMapped reports whether a file is mapped. Where it was the last time is looked at
// first: there is no index of all mappings to be made for each new one.
func (sp *space) isMapped(f fileID) bool {
	if m := sp.maps.at(sp.maps.where[f]); m != nil && m.Object != 0 {
		if o := sp.objects.at(m.Object); o.Dev == f.dev && o.Inode == f.inode {
			return true
		}
	}
	objects := sp.views().objects[f]
	if len(objects) == 0 {
		return false
	}
	if sp.maps.where == nil {
		sp.maps.where = map[fileID]uint64{}
	}
	sp.maps.where[f] = sp.views().list[objects[0]][0].Start
	return true
}

// viewsAtStart returns the mappings that an interval began with, by object and
// offset.
func (l *interval) viewsAtStart(object uint32) *rangemap.Overlaps[*checkpoint.Mapping] {
	if l.byOffset == nil {
		lists := map[uint32][]*checkpoint.Mapping{}
		for i := range l.rec.Maps {
			if m := &l.rec.Maps[i]; m.Object != 0 {
				lists[m.Object] = append(lists[m.Object], m)
			}
		}
		l.byOffset = map[uint32]*rangemap.Overlaps[*checkpoint.Mapping]{}
		for id, list := range lists {
			l.byOffset[id] = rangemap.NewOverlaps(list, func(m *checkpoint.Mapping) (start, end uint64) { return m.Offset, m.Offset + (m.End - m.Start) })
		}
	}
	return l.byOffset[object]
}

// filesAtStart returns the objects that were mapped when the current interval began, by file.
func (sp *space) filesAtStart() map[fileID][]uint32 {
	l := sp.group.cur
	if l == nil || l.space != sp {
		return nil
	}
	if l.files == nil {
		l.files = map[fileID][]uint32{}
		for i := range l.rec.Maps {
			id := l.rec.Maps[i].Object
			if id == 0 {
				continue
			}
			if k := sp.objects.file(id); !slices.Contains(l.files[k], id) {
				l.files[k] = append(l.files[k], id)
			}
		}
	}
	return l.files
}

// gone returns the objects of a file that were mapped when the current interval began, and are not any more.
func (sp *space) gone(f fileID) (out []uint32) {
	for _, id := range sp.filesAtStart()[f] {
		if len(sp.views().list[id]) == 0 {
			out = append(out, id)
		}
	}
	return out
}

// newLine is lineAt for a mapping that mmap has just made: without the kernel's
// list, where the kernel did not join it to a neighbour and the object is known, or is
// anonymous memory, whose device is that of tmpfs and is what stat says. Other file
// systems may have another device in the list than for stat, so that a file is known only
// once it was seen in the list.
func (sp *space) newLine(start, end, offset uint64) (mapping, error) {
	name := mapFile(sp.pid, start, end)
	path, err := os.Readlink(name)
	var st unix.Stat_t
	if err != nil || unix.Stat(name, &st) != nil {
		return sp.lineAt(start)
	}
	k := objectKey{fileID{st.Dev, st.Ino}, path}
	id, known := sp.objects.ids[k.file][path]
	if !known {
		if path != sharedAnonymous {
			return sp.lineAt(start)
		}
		id = sp.objects.id(k, kindOf(path, st.Ino), func(checkpoint.ObjectKind) (int64, string) { return st.Size, "" })
		offset = 0
	}
	return mapping{Mapping: checkpoint.Mapping{Start: start, End: end, Object: id, Name: path, Offset: offset}}, nil
}

// sharedAnonymous is the path of shared anonymous memory.
const sharedAnonymous = "/dev/zero (deleted)"
