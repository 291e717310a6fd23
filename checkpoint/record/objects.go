//go:build linux && amd64

package record

// objectStore is what the recording knows of the files and the shared memory that
// programs map. Their numbers are the recording's, so the session has one, and every
// address space refers to it.
type objectStore struct {
	objectTable
	out *output

	stamps  map[[2]uint64]stamp // of mapped files, by device and inode
	done    map[pageKey]bool    // pages that are kept
	pending []objectPage        // those of them that are not written yet
	// wholeBytes is how much of them keepWhole has kept.
	wholeBytes uint64
	// base holds the pages of objects as they were when mapped shared.
	base map[pageKey][]byte
	// holes are the pages of objects that had no data when they were mapped shared, and
	// missing is how many bytes were there that were not read.
	holes   map[uint32]ranges
	missing map[uint32]uint64
}

func newObjectStore(out *output) objectStore {
	o := objectStore{out: out, stamps: map[[2]uint64]stamp{}}
	o.forgetPages()
	return o
}

// forgetPages forgets the pages that are kept but not written, and what was known of the
// content of objects: the next image maps them anew.
func (o *objectStore) forgetPages() {
	o.done, o.pending, o.wholeBytes = map[pageKey]bool{}, nil, 0
	o.base, o.holes, o.missing = map[pageKey][]byte{}, nil, nil
}
