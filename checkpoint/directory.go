package checkpoint

import "io"

// A reader below Go's zip reader, which charges the memory that a zip directory takes to
// the recording's budget. The budget is in budget.go.

// directoryShare is how many bytes of memory an entry of a zip directory takes for
// each byte that it has: 46 become a structure of some 300, a name and a place in
// our map.
const directoryShare = 12

// directoryReader charges what the zip reader reads of the directory, which goes on
// for as long as there are entries.
type directoryReader struct {
	src io.ReaderAt
	ch  *charge
	err error // the charge's
}

// ReadAt implements io.ReaderAt.
func (d *directoryReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := d.src.ReadAt(b, off)
	if d.err == nil && d.ch != nil {
		d.err = d.ch.add(directoryShare * int64(n))
	}
	if d.err != nil {
		return 0, d.err
	}
	return n, err
}
