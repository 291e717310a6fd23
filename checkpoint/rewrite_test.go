package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// open opens a recording for the length of a test.
func open(t testing.TB, path string) *Recording {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestRewriteUnchanged(t *testing.T) {
	dir := t.TempDir()
	rec := writeRandom(t, filepath.Join(dir, "old"), 11, 200, 12)
	old := open(t, filepath.Join(dir, "old"))
	if err := Rewrite(old, filepath.Join(dir, "new"), RewriteOptions{WriterOptions: WriterOptions{Level: LevelSmall}}); err != nil {
		t.Fatal(err)
	}
	r := open(t, filepath.Join(dir, "new"))
	if err := rec.compareTables(r); err != nil {
		t.Error(err)
	}
	for _, want := range rec.list {
		got, err := r.Interval(want.ID)
		if err != nil {
			t.Fatal(err)
		}
		// The split into deltas may differ; compareTables has looked at it.
		got.Pages, got.Delta = want.Pages, want.Delta
		rec.list[slices.Index(rec.list, want)] = got
	}
	if !slices.Equal(slices.Collect(r.ObjectPages()), rec.objPages) {
		t.Error("object pages differ")
	}
	if a, b := old.Sizes(), r.Sizes(); b.PagesStored > a.PagesStored || b.File > a.File {
		t.Errorf("it grew: %+v to %+v", a, b)
	}
	for _, e := range must(r.PageTable(7)) {
		if e.Ref.Kind != PageFull && e.Ref.Kind != PagePartial {
			continue
		}
		var a, b [PageSize]byte
		_, errA := old.Page(e.Ref, &a)
		_, errB := r.Page(e.Ref, &b)
		if a != b || errA != nil || errB != nil {
			t.Errorf("page %x differs: %v, %v", e.Ref.Hash, errA, errB)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestRewriteSlims replaces one interval of a chain of deltas by one with
// partial pages and checks that its neighbours keep their tables.
func TestRewriteSlims(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.vplay")
	writeRandom(t, path, 5, 100, 6)
	old := open(t, path)
	var want [7]PageTable
	for id := uint32(1); id <= 6; id++ {
		want[id] = must(old.PageTable(id))
	}
	var page [PageSize]byte
	page[9], page[10] = 1, 2
	slim := func(w *Writer, iv *Interval) (*Interval, error) {
		if iv.ID == 5 {
			return nil, nil
		}
		if iv.ID != 3 {
			return iv, nil
		}
		ref, err := w.AddPartialPage(&[512]byte{1: 2}, page[:])
		iv.Slim, iv.Pages = true, []PageEntry{{Addr: 0x5000, Ref: ref}}
		return iv, err
	}
	drop := func(_ *Writer, p *ObjectPage) (bool, error) { return p.Object != 2, nil }
	err := Rewrite(old, path, RewriteOptions{WriterOptions: WriterOptions{Overwrite: true}, Interval: slim, ObjectPage: drop})
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, path)
	if len(r.Intervals()) != 5 || r.Sizes().PagesStored >= old.Sizes().PagesStored+1 {
		t.Errorf("%d intervals, %d pages", len(r.Intervals()), r.Sizes().PagesStored)
	}
	for _, id := range []uint32{1, 2, 4, 6} {
		if got := must(r.PageTable(id)); !slices.Equal(got, want[id]) {
			t.Errorf("table of interval %d changed", id)
		}
	}
	table := must(r.PageTable(3))
	if len(table) != 1 || table[0].Ref.Kind != PagePartial {
		t.Fatalf("table of interval 3: %v", table)
	}
	var got [PageSize]byte
	mask, err := r.Page(table[0].Ref, &got)
	if err != nil || mask == nil || mask[1] != 2 || got[9] != 1 || got[10] != 0 {
		t.Errorf("partial page: %v, %v", err, got[:12])
	}
	for p := range r.ObjectPages() {
		if p.Object == 2 {
			t.Error("a page was kept")
		}
	}
}

func TestRewriteFailsClean(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.vplay")
	writeRandom(t, path, 5, 20, 3)
	before := must(os.ReadFile(path))
	no := errors.New("no")
	err := Rewrite(open(t, path), path, RewriteOptions{
		WriterOptions: WriterOptions{Overwrite: true},
		Interval:      func(*Writer, *Interval) (*Interval, error) { return nil, no },
	})
	if !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	if list := must(os.ReadDir(dir)); len(list) != 1 || !slices.Equal(before, must(os.ReadFile(path))) {
		t.Errorf("left behind: %v", list)
	}
}
