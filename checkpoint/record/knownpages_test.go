//go:build linux && amd64

package record

import (
	"slices"
	"testing"

	"vplay/checkpoint"
)

// TestInheritedHoles: of anonymous memory that a new process shares with its parent, what the
// recorded processes have stored is known. The rest are holes, and to read one makes a page of it.
func TestInheritedHoles(t *testing.T) {
	const start, pages = 0x10000000, 16
	f, th := newFake(t, Options{})
	old, child := th.space(), th.session.newThread(1<<30).space()
	list := func(sp *space) []mapping {
		id := sp.objects.id(objectKey{fileID{1, 5}, sharedAnonymous}, checkpoint.ObjectShared, func(checkpoint.ObjectKind) (int64, string) { return 0, "" })
		m := checkpoint.Mapping{Start: start, End: start + pages*checkpoint.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtWrite, Flags: checkpoint.MapShared, Object: id, Name: sharedAnonymous}
		return append(slices.Clone(f.list), mapping{Mapping: m})
	}
	for _, sp := range []*space{old, child} {
		sp.maps = newMapModel(list(sp))
	}
	if err := child.open(); err != nil {
		t.Fatal(err)
	}
	th.group().join(child.group)
	hidden := old.keyAt(start + 3*checkpoint.PageSize)
	old.unmapped = map[pageKey]struct{}{hidden: {}} // its parent has stored there, and dropped it
	f.reads = 0
	if err := child.keepInherited(old); err != nil {
		t.Fatal(err)
	}
	if f.reads != 0 {
		t.Errorf("%d reads of memory", f.reads)
	}
	if got, want := child.hiddenShared(nil), (ranges{{start/checkpoint.PageSize + 3, start/checkpoint.PageSize + 4}}); !slices.Equal(got, want) {
		t.Errorf("pages %x are known to be stored, want %x", got, want)
	}
	child.session.strangers = true // who may have stored anywhere
	if err := child.keepInherited(old); err != nil || f.reads != 1 {
		t.Errorf("%d reads with a stranger, %v", f.reads, err)
	}
}
