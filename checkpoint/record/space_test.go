//go:build linux && amd64

package record

import (
	"slices"
	"testing"

	"vplay/checkpoint"
)

// TestSnapshot: which pages an interval's end takes for changed, and which for gone.
func TestSnapshot(t *testing.T) {
	f, th := newFake(t, Options{})
	sp := th.space()
	th.group().cur.src = memReader{sp.mem} // no copies, so that the page tables count
	const page = checkpoint.PageSize
	f.mapPages(0x700000, 1, checkpoint.ProtRead|checkpoint.ProtWrite, 0) // new
	f.tables[fakeData/page] = pmPresent | pmExclusive                    // written
	sp.moved = ranges{{fakeData/page + 1, fakeData/page + 2}}            // remapped
	delete(f.tables, fakeStack/page)                                     // dropped
	sp.dirtyBeforeFork = ranges{{fakeStack / page, fakeStack/page + 1}}
	slices.SortFunc(f.list, func(a, b mapping) int { return int(a.Start) - int(b.Start) })
	sp.maps = newMapModel(f.list)
	m, err := sp.takeSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	if want := (ranges{{fakeData / page, fakeData/page + 2}, {0x700000 / page, 0x700000/page + 1}}); !slices.Equal(m.dirty, want) {
		t.Errorf("dirty %x, want %x", m.dirty, want)
	}
	if want := (ranges{{fakeStack / page, fakeStack/page + 1}}); !slices.Equal(m.gone, want) {
		t.Errorf("gone %x, want %x", m.gone, want)
	}
	if th.session.result.Stats.MapDrift != 0 {
		t.Errorf("drift: %s", th.session.result.Stats.MapDriftNote)
	}
}

// TestHiddenShared: shared pages that have left the page tables are found at each address
// that maps them, those of private mappings are not.
func TestHiddenShared(t *testing.T) {
	sp := newSpace(&group{session: newSession(t.Context(), Options{})}, 1)
	sp.objects.add(checkpoint.Object{Kind: checkpoint.ObjectShared})
	view := func(start, pages, first uint64, flags uint8) mapping {
		return mapping{Mapping: checkpoint.Mapping{
			Start: start, End: start + pages*checkpoint.PageSize, Offset: first * checkpoint.PageSize, Object: 1, Flags: flags,
		}}
	}
	sp.maps = newMapModel([]mapping{
		view(0x10000, 3, 0, checkpoint.MapShared), view(0x50000, 2, 1, checkpoint.MapShared), view(0x90000, 3, 0, 0),
	})
	sp.sharedNow = map[uint64][]byte{0x10000: nil, 0x50000: nil, 0x90000: nil, 0xf0000: nil}
	whole := view(0x10000, 3, 0, checkpoint.MapShared)
	sp.noteUnmapped(&whole, ranges{{0x12, 0x13}})
	there := ranges{{0x50, 0x51}}
	if got, want := sp.hiddenShared(there), (ranges{{0x10, 0x11}, {0x12, 0x13}, {0x51, 0x52}}); !slices.Equal(got, want) {
		t.Errorf("pages %x, want %x", got, want)
	}
}

// TestObjectPages: a page of an object is kept once; forgetting them keeps the numbers.
func TestObjectPages(t *testing.T) {
	o := newObjectStore(&output{}, nil)
	id := o.id(objectKey{fileID{1, 2}, "/lib"}, checkpoint.ObjectFile, func(checkpoint.ObjectKind) (int64, string) { return 3, "" })
	for _, content := range []string{"first", "second"} {
		if err := o.keep(pageKey{id, 7}, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if len(o.pending) != 1 || string(o.pending[0].data) != "first" {
		t.Errorf("pending %v", o.pending)
	}
	o.forgetPages()
	if err := o.keep(pageKey{id, 7}, []byte("third")); err != nil || len(o.pending) != 1 || string(o.pending[0].data) != "third" {
		t.Errorf("after forgetting: %v, %v", o.pending, err)
	}
	if again := o.id(objectKey{fileID{1, 2}, "/lib"}, checkpoint.ObjectFile, func(checkpoint.ObjectKind) (int64, string) { return 3, "" }); again != id {
		t.Errorf("number %d, then %d", id, again)
	}
	o.forget(fileID{1, 2})
	if next := o.id(objectKey{fileID{1, 2}, "/lib"}, checkpoint.ObjectFile, func(checkpoint.ObjectKind) (int64, string) { return 4, "" }); next == id {
		t.Error("a forgotten file has its old number")
	}
}
