//go:build linux && amd64

package record

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// Objects: the files and the shared memory behind mappings, with their numbers and the pages
// that are kept of them. Which page is kept when is decided elsewhere (capture.go,
// mapshared.go, evicted.go).

// objectStore is what the recorder knows of the files and the shared memory that the
// processes of a group map. Each group has its own: what a file held when one program mapped
// it may not be what it held when another did. Their numbers are the recording's.
type objectStore struct {
	objectTable
	out *output

	stamps  map[fileID]stamp // of mapped files
	done    map[pageKey]bool // pages that are kept
	pending []objectPage     // those of them that are not written yet
	// wholeBytes is how much of them keepWhole has kept.
	wholeBytes uint64
	// base holds the pages of objects as they were when mapped shared.
	base map[pageKey][]byte
	// holes are the pages of objects that had no data when they were mapped shared, and
	// missing is how many bytes were there that were not read.
	holes   map[uint32]ranges
	missing map[uint32]uint64
	looked  map[uint32]int // by object: how many pages were kept when keptOnly looked
}

// newObjectStore returns a store that has no object. last is the highest number that the
// recording has given to one.
func newObjectStore(out *output, last *uint32) objectStore {
	o := objectStore{objectTable: objectTable{last: last, builds: out.builds}, out: out, stamps: map[fileID]stamp{}}
	o.forgetPages()
	return o
}

// forgetPages forgets the pages that are kept but not written, and what was known of the
// content of objects: the next image maps them anew.
func (o *objectStore) forgetPages() {
	o.done, o.pending, o.wholeBytes = map[pageKey]bool{}, nil, 0
	o.base, o.holes, o.missing, o.looked = map[pageKey][]byte{}, nil, nil, nil
}

// pageKey names a page of an object.
type pageKey struct {
	object uint32
	index  uint64
}

// objectPage is a page of an object that waits to be written.
type objectPage struct {
	key  pageKey
	data []byte
}

// isHole reports whether a page had no data when its object was mapped shared: what it holds now
// was stored there.
func (o *objectStore) isHole(k pageKey) bool { return o.holes[k.object].has(k.index) }

// keep takes a page of an object, which replay takes for what it held at first. data is kept.
func (o *objectStore) keep(k pageKey, data []byte) error {
	if o.done[k] {
		return nil
	}
	o.done[k] = true
	hole := o.isHole(k)
	if hole {
		data = zeroes
	}
	if o.base[k] == nil && (hole || o.at(k.object).Kind == checkpoint.ObjectShared) {
		o.base[k] = data
	}
	if o.out.open() {
		_, err := o.out.objectPage(k, data)
		return err
	}
	o.pending = append(o.pending, objectPage{k, data})
	return nil
}

// stamp says which content a file has.
type stamp struct {
	size  int64
	mtime unix.Timespec
}

// objectKey identifies what a mapping refers to, as /proc/PID/maps shows it.
type objectKey struct {
	file fileID
	path string
}

// objectTable numbers objects. The numbers are unique in the recording, and start at 1.
type objectTable struct {
	ids   map[fileID]map[string]uint32 // by path
	list  []checkpoint.Object
	index map[uint32]int // in list, by number
	last  *uint32        // the highest number in the recording
	// builds are the build-ids of files in the session, or nil.
	builds map[fileVersion]string
}

// at returns the object of a number, which the table has. It stays where it is until the
// next is made.
func (t *objectTable) at(id uint32) *checkpoint.Object { return &t.list[t.index[id]] }

// file returns which file, or segment, an object is.
func (t *objectTable) file(id uint32) fileID {
	o := t.at(id)
	return fileID{o.Dev, o.Inode}
}

// add gives an object its number.
func (t *objectTable) add(o checkpoint.Object) uint32 {
	if t.index == nil {
		t.index = map[uint32]int{}
	}
	if t.last == nil {
		t.last = new(uint32)
	}
	*t.last++
	o.ID = *t.last
	t.index[o.ID] = len(t.list)
	t.list = append(t.list, o)
	return o.ID
}

// id returns the object's number, making it when it is new. look is called
// then, for the size and, of a file, the build-id.
func (t *objectTable) id(k objectKey, kind checkpoint.ObjectKind, look func(kind checkpoint.ObjectKind) (size int64, build string)) uint32 {
	if id, ok := t.ids[k.file][k.path]; ok {
		return id
	}
	if path, gone := strings.CutSuffix(k.path, " (deleted)"); gone {
		// A file that was unlinked while it is mapped.
		if id, ok := t.ids[k.file][path]; ok {
			t.ids[k.file][k.path] = id
			return id
		}
	}
	if t.ids == nil {
		t.ids = map[fileID]map[string]uint32{}
	}
	if t.ids[k.file] == nil {
		t.ids[k.file] = map[string]uint32{}
	}
	o := checkpoint.Object{Kind: kind, Path: k.path, Dev: k.file.dev, Inode: k.file.inode}
	o.Size, o.BuildID = look(kind)
	id := t.add(o)
	t.ids[k.file][k.path] = id
	return id
}

// lookBehind returns the size of the file behind a mapping of a process, -1 where that cannot be known, and its build-id, "" where there is
// none. The programs of a tree map the same libraries, so that is read once.
func (t *objectTable) lookBehind(pid int, start, end uint64, kind checkpoint.ObjectKind) (size int64, build string) {
	var st unix.Stat_t
	path := mapFile(pid, start, end)
	if err := unix.Stat(path, &st); err != nil {
		return -1, ""
	}
	if kind != checkpoint.ObjectFile {
		return st.Size, ""
	}
	v := versionOf(&st)
	if build, ok := t.builds[v]; ok {
		return st.Size, build
	}
	f, err := os.Open(path)
	if err != nil {
		return st.Size, ""
	}
	defer f.Close()
	if build = buildID(f); t.builds != nil && v.isSettled() {
		t.builds[v] = build
	}
	return st.Size, build
}

// knowSize gives an object the size that its file had when it was mapped, or cut, last, where the kernel tells that by
// /proc/PID/map_files to root alone.
func (o *objectStore) knowSize(id uint32) {
	obj := o.at(id)
	if was, ok := o.stamps[o.file(id)]; ok && obj.Size < 0 {
		obj.Size = was.size
	}
}

// resize notes the size of a file that is mapped, of which the next mapping is another object, and when a call that was
// recorded made it so: no other process has changed the file then.
func (o *objectStore) resize(f fileID, now stamp) {
	if _, ok := o.stamps[f]; ok {
		o.stamps[f] = now
	}
	o.forget(f)
}

// forget makes the next mapping of a file refer to a new object.
func (t *objectTable) forget(f fileID) { delete(t.ids, f) }

// kindOf returns what a path of /proc/PID/maps stands for.
func kindOf(path string, inode uint64) checkpoint.ObjectKind {
	switch {
	case path == vdsoName || path == "[vvar]" || path == "[vvar_vclock]" || path == "[vsyscall]":
		return checkpoint.ObjectSpecial
	case strings.HasPrefix(path, "/memfd:"), strings.HasPrefix(path, "/SYSV"), strings.HasPrefix(path, "/dev/zero"):
		return checkpoint.ObjectShared
	case inode != 0 && path != "":
		return checkpoint.ObjectFile
	}
	return checkpoint.ObjectAnon
}

// noteMissing notes that n bytes more of what an object held when it was mapped shared are
// not read.
func (o *objectStore) noteMissing(object uint32, n uint64) {
	if o.missing == nil {
		o.missing = map[uint32]uint64{}
	}
	o.missing[object] += n
}
