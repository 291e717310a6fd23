//go:build linux && amd64

package record

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// The processes of a tree run the same programs and load the same libraries, and the pages of
// these are kept for each of them. A page that is in the recording, of a file that has not
// changed since, is neither read nor hashed again: the process gets a row for it and no more. Before
// there is a recording it gets the page that another process has been given.
//
// That a file has not changed its status tells: the time of its last change (ctime) moves
// with each and cannot be set back. Two cases are left out. A file changed just now may change
// again without another ctime, for clocks of file systems have ticks. And stores through a
// shared mapping that is writable need not move any time; so it is done for programs
// and libraries alone, files that are mapped for execution, which nobody edits in this way.

// fileVersion is a file with the content that it has until it is changed.
type fileVersion struct {
	dev, inode   uint64
	size         int64
	mtime, ctime unix.Timespec
}

// versionSettled is how long ago the last change of a file must be, so that another one has
// another ctime.
const versionSettled = 2 * time.Second

// isSettled reports whether the file has another version when it is changed now.
func (v *fileVersion) isSettled() bool {
	return time.Since(time.Unix(v.ctime.Unix())) >= versionSettled
}

// knownPages are the pages of files that the recording holds, by index in the file.
type knownPages map[fileVersion]map[uint64]checkpoint.PageRef

// heldPages are such pages while there is no recording.
type heldPages struct {
	pages map[fileVersion]map[uint64][]byte
	count int
}

// mostHeld is how many pages are held, 64 MiB: a shell that makes processes needs some hundreds.
const mostHeld = 1 << 14

// hold holds a page, which must not be changed any more.
func (h *heldPages) hold(v fileVersion, index uint64, data []byte) {
	if h.pages == nil || h.count == mostHeld {
		*h = heldPages{pages: map[fileVersion]map[uint64][]byte{}}
	}
	if h.pages[v] == nil {
		h.pages[v] = map[uint64][]byte{}
	}
	h.pages[v][index] = data
	h.count++
}

// version returns what the file of a mapping is now; nil for those
// whose pages are read for each process.
func (sp *space) version(m *mapping) *fileVersion {
	if m == nil || !sp.objects.isCleanFile(m) {
		return nil
	}
	if !slices.ContainsFunc(sp.views().list[m.Object], func(m *mapping) bool { return m.Prot&checkpoint.ProtExec != 0 }) {
		return nil
	}
	_, v, ok := sp.fileNow(m.Object)
	if !ok || !v.isSettled() {
		return nil
	}
	return &v
}

// fileNow returns where the file of an object is, and what it is now. By its path: /proc/PID/map_files is for root alone. False says that
// another file is there, or none.
func (sp *space) fileNow(object uint32) (path string, v fileVersion, ok bool) {
	o := sp.objects.at(object)
	path = fmt.Sprintf("/proc/%d/root%s", sp.pid, o.Path)
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Dev != o.Dev || st.Ino != o.Inode {
		return "", fileVersion{}, false
	}
	return path, versionOf(&st), true
}

// versionOf returns what a file is by its status.
func versionOf(st *unix.Stat_t) fileVersion {
	return fileVersion{st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim}
}

// keepKnown keeps a page of a file of which that version's content is known. It
// reports whether it is. A page that was a hole is not the version's: it is kept as zero.
func (o *objectStore) keepKnown(v *fileVersion, k pageKey) (bool, error) {
	if v == nil || o.isHole(k) {
		return false, nil
	}
	if !o.out.open() {
		data := o.out.held.pages[*v][k.index]
		if data == nil {
			return false, nil
		}
		o.out.reused++
		return true, o.keep(k, data)
	}
	ref, ok := o.out.known[*v][k.index]
	if !ok {
		return false, nil
	}
	o.done[k] = true
	o.out.reused++
	return true, o.out.w.AddObjectPage(checkpoint.ObjectPage{Object: k.object, Index: k.index, Ref: ref})
}

// keepRead keeps a page of a file that was read, as version v has it unless that is nil. data
// is kept.
func (o *objectStore) keepRead(v *fileVersion, k pageKey, data []byte) error {
	if v == nil || o.isHole(k) {
		return o.keep(k, data)
	}
	if !o.out.open() {
		o.out.held.hold(*v, k.index, data)
		return o.keep(k, data)
	}
	o.done[k] = true
	ref, err := o.out.objectPage(k, data)
	if err != nil {
		return err
	}
	if o.out.known == nil {
		o.out.known = knownPages{}
	}
	if o.out.known[*v] == nil {
		o.out.known[*v] = map[uint64]checkpoint.PageRef{}
	}
	o.out.known[*v][k.index] = ref
	return nil
}
