package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestCreateRefusesAndOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.vplay")
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, WriterOptions{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	w := must(Create(path, WriterOptions{Overwrite: true}))
	if got := string(must(os.ReadFile(path))); got != "mine" {
		t.Error("the old file changed before Finish")
	}
	if err := w.Finish(Manifest{}); err != nil {
		t.Fatal(err)
	}
	r := open(t, path)
	if len(r.Manifest().ID) != 32 || r.Manifest().Version != plainVersion {
		t.Errorf("manifest %+v", r.Manifest())
	}
}

func TestFileThatAppearsMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.vplay")
	w := must(Create(path, WriterOptions{}))
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(Manifest{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	if list := must(os.ReadDir(filepath.Dir(path))); len(list) != 1 {
		t.Errorf("left behind: %v", list)
	}
}

func TestAbortLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.vplay")
	w := must(Create(path, WriterOptions{}))
	var page [PageSize]byte
	for i := range 200 {
		page[0] = byte(i + 1)
		must(w.AddPage(page[:]))
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if list := must(os.ReadDir(filepath.Dir(path))); len(list) != 0 {
		t.Errorf("left behind: %v", list)
	}
	if _, err := w.AddPage(page[:]); !errors.Is(err, ErrFinished) {
		t.Errorf("got %v", err)
	}
	if err := w.Finish(Manifest{}); !errors.Is(err, ErrFinished) {
		t.Errorf("got %v", err)
	}
}

func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.vplay")
	w := must(Create(path, WriterOptions{}))
	w.f.Close() // as good as a full disk: every write fails
	if err := w.Finish(Manifest{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if list := must(os.ReadDir(filepath.Dir(path))); len(list) != 0 {
		t.Errorf("left behind: %v", list)
	}
}

func TestWriterRefuses(t *testing.T) {
	w := must(Create(filepath.Join(t.TempDir(), "x.vplay"), WriterOptions{}))
	defer w.Abort()
	zero := PageRef{Kind: PageZero}
	unknown := PageRef{Kind: PageFull, Hash: PageHash{1}}
	if err := w.AddInterval(&Interval{ID: 1}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"page not added", w.AddInterval(&Interval{ID: 2, Pages: []PageEntry{{0, unknown}}}), "was not added"},
		{"interval twice", w.AddInterval(&Interval{ID: 1}), "added before"},
		{"page twice", w.AddInterval(&Interval{ID: 2, Pages: []PageEntry{{0, zero}, {0, zero}}}), "twice"},
		{"unaligned page", w.AddInterval(&Interval{ID: 2, Pages: []PageEntry{{5, zero}}}), "not page-aligned"},
		{"removed in a full table", w.AddInterval(&Interval{ID: 2, Pages: []PageEntry{{0, PageRef{Kind: PageRemoved}}}}), "nothing to remove"},
		{"unknown event", w.AddInterval(&Interval{ID: 2, Events: make([]Event, 1)}), "unknown event kind"},
		{"field of another kind", w.AddInterval(&Interval{ID: 2, Events: []Event{{Kind: EventSched, NR: 3}}}), "field nr"},
		{"mapping", w.AddInterval(&Interval{ID: 2, Maps: []Mapping{{Start: 4096, End: 4096}}}), "not a range of pages"},
		{"protection", w.AddInterval(&Interval{ID: 2, Maps: []Mapping{{End: 4096, Prot: 8}}}), "unknown bits"},
		{"object 0", w.AddObject(Object{}), "anonymous"},
		{"object page", w.AddObjectPage(ObjectPage{Ref: unknown}), "was not added"},
		{"final", w.SetFinal(&Final{Pages: []PageEntry{{0, unknown}}}), "was not added"},
	}
	for _, tt := range tests {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, tt.err, tt.want)
		}
	}
	if err := w.AddInterval(&Interval{ID: 2}); err != nil {
		t.Errorf("after the refusals: %v", err)
	}
	if err := w.AddInterval(&Interval{ID: 3, PID: 9, Delta: true}); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(Manifest{}); err == nil || !strings.Contains(err.Error(), "is a delta and no interval") {
		t.Errorf("delta without a base: %v", err)
	}
}

func TestPartialPageLimits(t *testing.T) {
	w := must(Create(filepath.Join(t.TempDir(), "x.vplay"), WriterOptions{}))
	defer w.Abort()
	var page [PageSize]byte
	var mask [512]byte
	page[0] = 1
	if ref := must(w.AddPartialPage(&mask, page[:])); ref.Kind != PageAbsent {
		t.Errorf("empty mask: %v", ref)
	}
	for i := range mask {
		mask[i] = 0xff
	}
	if ref := must(w.AddPartialPage(&mask, page[:])); ref != RefOf(&page) || !w.HasPage(ref) {
		t.Errorf("full mask: %v", ref)
	}
	if ref := must(w.AddPage(zeroPage[:])); ref.Kind != PageZero || ref != RefOf(&zeroPage) {
		t.Errorf("zero page: %v", ref)
	}
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.vplay")
	w := must(Create(path, WriterOptions{}))
	refs := make([][]PageRef, 4)
	var wg sync.WaitGroup
	for i := range refs {
		wg.Go(func() {
			var page [PageSize]byte
			for j := range 300 {
				page[0], page[1], page[7] = byte(j), byte(j>>8), byte(i%2)+1
				ref, err := w.AddPage(page[:])
				if err != nil {
					t.Error(err)
				}
				refs[i] = append(refs[i], ref)
			}
		})
	}
	wg.Wait()
	if err := w.Finish(Manifest{}); err != nil {
		t.Fatal(err)
	}
	r := open(t, path)
	if n := r.Sizes().PagesStored; n != 600 {
		t.Errorf("%d pages stored, want 600", n)
	}
	for i := range refs {
		wg.Go(func() {
			var page [PageSize]byte
			for j, ref := range refs[i] {
				if _, err := r.Page(ref, &page); err != nil || page[0] != byte(j) {
					t.Errorf("page %d: %v", j, err)
				}
			}
		})
	}
	wg.Wait()
}
