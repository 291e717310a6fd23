//go:build linux && amd64

package record

import (
	"cmp"
	"errors"
	"slices"

	"vplay/checkpoint"
)

// The kernel may take a clean page of a file out of the page tables at any time: under
// memory pressure, or where DAMON pages out what it holds to be idle. So the page tables
// of an interval's end do not name all pages that the program has read in it. What the
// tables no longer show is taken from the memory while the files are still mapped, as far
// as wholeLimit goes. Slimming drops what replay does not need.

// wholeLimit bounds what is kept of mapped files beyond what the page tables name, in
// bytes.
const wholeLimit = 64 << 20

// keepWhole keeps all pages of the given mappings of files, small mappings first: but for
// those of private, which belong to the address and whose originals are kept elsewhere.
func (sp *space) keepWhole(list []mapping, private ranges) error {
	list = slices.DeleteFunc(slices.Clone(list), func(m mapping) bool { return !sp.objects.isCleanFile(&m) })
	slices.SortStableFunc(list, func(a, b mapping) int { return cmp.Compare(a.End-a.Start, b.End-b.Start) })
	for _, m := range list {
		if err := sp.session.out.check(); err != nil {
			return err
		}
		pages := ranges{{m.Start / checkpoint.PageSize, m.End / checkpoint.PageSize}}.minus(private)
		v := sp.version(&m)
		if err := sp.objects.keepKnownOf(v, &m, pages); err != nil {
			return err
		}
		err := eachPage(sp.reader(), sp.objects.notKept(&m, pages), func(addr uint64, page []byte) error {
			sp.objects.wholeBytes += checkpoint.PageSize
			return sp.objects.keepRead(v, keyIn(&m.Mapping, addr), slices.Clone(page))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keepKnownOf keeps the pages of pages, which m maps, that the recording has already.
func (o *objectStore) keepKnownOf(v *fileVersion, m *mapping, pages ranges) error {
	if v == nil {
		return nil
	}
	return pages.each(func(page uint64) error {
		k := keyIn(&m.Mapping, page*checkpoint.PageSize)
		if o.done[k] {
			return nil
		}
		_, err := o.keepKnown(v, k)
		return err
	})
}

// errNoRoom ends a walk over pages.
var errNoRoom = errors.New("no room is left for pages of files")

// isCleanFile reports whether the clean pages of m are those of its file, as it was all
// along.
func (o *objectStore) isCleanFile(m *mapping) bool {
	if m.Object == 0 {
		return false
	}
	f := o.at(m.Object)
	return f.Kind == checkpoint.ObjectFile && !f.Changed && (m.private() || m.Prot&checkpoint.ProtWrite == 0)
}

// notKept returns the pages of pages, which m maps, that are not kept yet, as many as
// wholeLimit has room for.
func (o *objectStore) notKept(m *mapping, pages ranges) ranges {
	var out ranges
	room := (wholeLimit - min(wholeLimit, o.wholeBytes)) / checkpoint.PageSize
	_ = pages.each(func(page uint64) error {
		if o.done[keyIn(&m.Mapping, page*checkpoint.PageSize)] {
			return nil
		}
		if room == 0 {
			return errNoRoom
		}
		out.add(page, page+1)
		room--
		return nil
	})
	return out
}
