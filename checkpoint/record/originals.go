//go:build linux && amd64

package record

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// A private page of a file that the program has written no longer shows what
// was there before the first store, and replay needs just that: it is read
// from the file.

// keepOriginals takes the pages of files behind those of private that belong
// to private mappings of files.
func (sp *space) keepOriginals(list []mapping, private ranges) error {
	for i := range list {
		m := &list[i]
		if m.Object == 0 || !m.private() || sp.objects.at(m.Object).Kind != checkpoint.ObjectFile {
			continue
		}
		var pages ranges
		pages.add(m.Start/checkpoint.PageSize, m.End/checkpoint.PageSize)
		if err := sp.keepOriginalsOf(m, private.intersect(pages)); err != nil {
			return err
		}
	}
	return nil
}

func (sp *space) keepOriginalsOf(m *mapping, pages ranges) error {
	var f io.ReaderAt
	var v *fileVersion
	done, asked := func() {}, false
	defer func() { done() }()
	return pages.each(func(page uint64) error {
		k := keyIn(&m.Mapping, page*checkpoint.PageSize)
		if sp.objects.done[k] {
			return nil
		}
		if !asked {
			v, asked = sp.version(m), true
		}
		if known, err := sp.objects.keepKnown(v, k); known || err != nil {
			return err
		}
		if f == nil {
			var err error
			if f, done, err = sp.openMapped(m); err != nil {
				done = func() {}
				sp.session.log.Debug().Err(err).Str("path", m.Name).Msg("mapped file cannot be read again")
				return nil
			}
		}
		b := make([]byte, checkpoint.PageSize)
		if n, _ := f.ReadAt(b, int64(k.index*checkpoint.PageSize)); n == 0 {
			return nil
		}
		return sp.objects.keepRead(v, k, b)
	})
}

// fileContent reads what a page of a file holds that no process had a copy of, or none that still stands. It is kept: replay
// must find the same.
func (sp *space) fileContent(k pageKey, b []byte) bool {
	if k.object == 0 || sp.objects.at(k.object).Kind != checkpoint.ObjectFile {
		return false
	}
	clear(b)
	return spaceMemory{sp}.ReadFile(k.object, k.index*checkpoint.PageSize, b) > 0
}

// openMapped opens the file behind a mapping: the very file where the kernel
// lets us, else by its name as long as it is still the same.
func (sp *space) openMapped(m *mapping) (io.ReaderAt, func(), error) {
	return openBehind(sp.pid, m, sp.objects.at(m.Object))
}

// openBehind is openMapped for a mapping of process pid, whose file is o.
func openBehind(pid int, m *mapping, o *checkpoint.Object) (io.ReaderAt, func(), error) {
	if f, done, err := openMapFile(pid, m.Start, m.End); err == nil {
		return f, done, nil
	}
	return openNamed(o)
}

// openObject opens the file of an object: behind a mapping of it, or by its name if it is not mapped any more.
func (sp *space) openObject(object uint32) (io.ReaderAt, func(), error) {
	for _, m := range sp.maps.all() {
		if m.Object == object {
			return sp.openMapped(&m)
		}
	}
	return openNamed(sp.objects.at(object))
}

// openNamed opens the file that o describes by its name.
func openNamed(o *checkpoint.Object) (io.ReaderAt, func(), error) {
	f, err := os.Open(o.Path)
	if err != nil {
		return nil, nil, err
	}
	if !sameFile(f, o) {
		_ = f.Close() // only read
		return nil, nil, os.ErrNotExist
	}
	return f, func() { _ = f.Close() }, nil
}

// sameFile reports whether f is the file that o describes.
func sameFile(f *os.File, o *checkpoint.Object) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && st.Ino == o.Inode && st.Dev == o.Dev
}
