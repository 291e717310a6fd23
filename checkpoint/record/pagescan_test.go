package record

import (
	"slices"
	"testing"

	"vplay/checkpoint"
)

// TestPageScan: what an entry of the page tables counts as depends on what is mapped there.
func TestPageScan(t *testing.T) {
	const (
		start = 0x40000
		page  = start / checkpoint.PageSize
	)
	entries := []uint64{
		pmPresent,                        // shared with the last fork
		pmPresent | pmExclusive,          // written since
		pmSwap,                           // swapped: whether it was written is not known
		pmPresent | pmFile,               // of the file
		pmPresent | pmFile | pmExclusive, // of the file, mapped by this process alone
	}
	anonymous := mapping{Mapping: checkpoint.Mapping{Start: start, End: start + 5*checkpoint.PageSize}}
	file, shared, wiped := anonymous, anonymous, anonymous
	file.Object, file.Offset = 7, 3*checkpoint.PageSize
	shared.Object, shared.Flags = 7, checkpoint.MapShared
	wiped.advice = wipeOnFork
	set := func(pages ...uint64) (r ranges) {
		for _, p := range pages {
			r.add(page+p, page+p+1)
		}
		return r
	}
	for _, c := range []struct {
		name    string
		m       mapping
		changed bool
		want    pageScan
	}{
		{"anonymous", anonymous, false, pageScan{private: set(0, 1, 2), dirty: set(1, 2)}},
		{"file", file, false, pageScan{private: set(0, 1, 2), dirty: set(1, 2), file: []filePage{{start + 3<<12, 7, 6}, {start + 4<<12, 7, 7}}}},
		{"changed file", file, true, pageScan{private: set(0, 1, 2), dirty: set(1, 2), changed: set(3, 4), file: []filePage{{start + 3<<12, 7, 6}, {start + 4<<12, 7, 7}}}},
		{"shared", shared, false, pageScan{shared: set(0, 1, 2, 3, 4)}},
		{"wiped on fork", wiped, false, pageScan{unforked: set(0, 1, 2, 3, 4)}},
	} {
		var got pageScan
		visit := got.visitor(&c.m, c.changed)
		for i, e := range entries {
			visit(page+uint64(i), e)
		}
		for _, x := range []struct {
			name      string
			got, want ranges
		}{
			{"private", got.private, c.want.private}, {"dirty", got.dirty, c.want.dirty}, {"shared", got.shared, c.want.shared},
			{"unforked", got.unforked, c.want.unforked}, {"changed", got.changed, c.want.changed},
		} {
			if !slices.Equal(x.got, x.want) {
				t.Errorf("%s: %s pages %v, want %v", c.name, x.name, x.got, x.want)
			}
		}
		if !slices.Equal(got.file, c.want.file) {
			t.Errorf("%s: file pages %v, want %v", c.name, got.file, c.want.file)
		}
	}
}
