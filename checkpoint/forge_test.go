package checkpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forge writes a recording of n intervals that change nothing but what change says.
func forge(t *testing.T, intervals int, change func(w *Writer, iv *Interval)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forged.vplay")
	w, err := Create(path, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for id := range intervals {
		iv := &Interval{ID: uint32(id), PID: 1, Start: []Context{{TID: 1, OrigRAX: -1}}, End: End{Kind: EndSync}}
		change(w, iv)
		if err := w.AddInterval(iv); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(Manifest{PID: 1}); err != nil {
		t.Fatal(err)
	}
	return path
}

// zeros is a table of n pages of zeros.
func zeros(n int) []PageEntry {
	t := make([]PageEntry, n)
	for i := range t {
		t[i] = PageEntry{uint64(i) * PageSize, PageRef{Kind: PageZero}}
	}
	return t
}

// TestBudget opens small files that ask for more than a budget of 32 MiB, reads all
// of them, and wants an error that names the limit and the part.
func TestBudget(t *testing.T) {
	const limit = 32 << 20
	for _, c := range []struct {
		name, part string
		make       func(t *testing.T) string
	}{
		{"a chain of deltas", "page table", func(t *testing.T) string {
			return forge(t, 40, func(_ *Writer, iv *Interval) {
				if iv.ID == 0 {
					iv.Pages = zeros(200_000)
					return
				}
				iv.Delta, iv.Pages = true, zeros(1)
			})
		}},
		{"events", "log", func(t *testing.T) string {
			return forge(t, 1, func(_ *Writer, iv *Interval) { iv.Events = make([]Event, 200_000); fill(iv.Events) })
		}},
		{"changes of the map", "log", func(t *testing.T) string {
			return forge(t, 1, func(_ *Writer, iv *Interval) {
				ops := make([]MapOp, 500_000)
				for i := range ops {
					ops[i] = MapOp{Kind: MapOpUnmap, Start: 0x1000, End: 0x2000}
				}
				iv.Events = []Event{{Kind: EventExit, TID: 1, Maps: ops}}
			})
		}},
		{"writes", "log", func(t *testing.T) string {
			return forge(t, 1, func(_ *Writer, iv *Interval) {
				iv.Events = []Event{{Kind: EventExit, TID: 1, Writes: make([]MemWrite, 2_000_000)}}
			})
		}},
		{"mappings", "head", func(t *testing.T) string {
			return forge(t, 1, func(_ *Writer, iv *Interval) {
				for i := range uint64(100_000) {
					iv.Maps = append(iv.Maps, Mapping{Start: 2 * i * PageSize, End: (2*i + 1) * PageSize})
				}
			})
		}},
		{"a page table", "head", func(t *testing.T) string {
			return forge(t, 1, func(_ *Writer, iv *Interval) { iv.Pages = zeros(1_000_000) })
		}},
		{"an index of pages", "index", func(t *testing.T) string {
			return forge(t, 1, func(w *Writer, iv *Interval) {
				var mask [512]byte
				for i := range 200_000 {
					mask[0], mask[1], mask[2] = byte(2*i+1), byte(i>>7), byte(i>>15)
					var page [PageSize]byte
					page[0] = 1
					if _, err := w.AddPartialPage(&mask, page[:]); err != nil {
						t.Fatal(err)
					}
				}
			})
		}},
		{"a list in the manifest", "manifest", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "forged.vplay")
			w, err := Create(path, WriterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			list := make([]Process, 100_000)
			for i := range list {
				list[i].PID = int32(2 + i)
			}
			if err := w.Finish(Manifest{PID: 1, Processes: list}); err != nil {
				t.Fatal(err)
			}
			return path
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := c.make(t)
			err := readAll(path, NewBudget(context.Background(), limit))
			var le *LimitError
			if !errors.As(err, &le) || !strings.Contains(le.Part, c.part) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "limit of") {
				st, _ := os.Stat(path)
				t.Errorf("a file of %d bytes: error %v", st.Size(), err)
			}
			if err := readAll(path, nil); err != nil {
				t.Errorf("without a budget: %v", err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := readAll(path, NewBudget(ctx, 1<<40)); !errors.Is(err, context.Canceled) {
				t.Errorf("with a context that has ended: %v", err)
			}
		})
	}
}

// fill makes the least event of each.
func fill(events []Event) {
	for i := range events {
		events[i] = Event{Kind: EventSched, TID: 1}
	}
}

// readAll opens a recording and reads all of its intervals and their tables, and
// keeps what it has read.
func readAll(path string, b *Budget) error {
	r, err := OpenWithin(path, b)
	if err != nil {
		return err
	}
	defer r.Close()
	var kept []any
	for _, in := range r.Intervals() {
		iv, err := r.Interval(in.ID)
		if err != nil {
			return err
		}
		table, err := r.PageTable(in.ID)
		if err != nil {
			return err
		}
		kept = append(kept, iv, table)
	}
	if b != nil && len(kept) == 0 && len(r.Intervals()) > 0 {
		return errors.New("nothing was read")
	}
	return nil
}

// TestBudgetIsGivenBack reads one interval again and again under a budget that
// holds a few of it.
func TestBudgetIsGivenBack(t *testing.T) {
	path := forge(t, 1, func(_ *Writer, iv *Interval) { iv.Events = make([]Event, 20_000); fill(iv.Events) })
	b := NewBudget(context.Background(), 64<<20)
	b.work = 1 << 40
	r, err := OpenWithin(path, b)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range 30 {
		if _, err := r.Interval(0); err != nil {
			t.Fatalf("the %dth time: %v", i, err)
		}
	}
}

// TestBudgetIsGivenBackAtClose opens a recording again and again under a budget that
// holds what it keeps once.
func TestBudgetIsGivenBackAtClose(t *testing.T) {
	path := forge(t, 1, func(w *Writer, _ *Interval) {
		if err := w.AddObject(Object{ID: 1, Kind: ObjectFile, Path: "/o"}); err != nil {
			t.Fatal(err)
		}
		for i := range uint64(100_000) {
			if err := w.AddObjectPage(ObjectPage{1, i, PageRef{Kind: PageZero}}); err != nil {
				t.Fatal(err)
			}
		}
	})
	b := NewBudget(context.Background(), 6<<20)
	b.work = 1 << 40
	for i := range 10 {
		r, err := OpenWithin(path, b)
		if err != nil {
			t.Fatalf("the %dth time: %v", i, err)
		}
		if b.used.Load() < 4<<20 {
			t.Errorf("an open recording of 100,000 pages takes %d bytes", b.used.Load())
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if n := b.used.Load(); n != 0 {
			t.Errorf("closed, it takes %d bytes", n)
		}
	}
}

// TestBudgetOfDecoded: what a log becomes is work, too, and not only its bytes.
func TestBudgetOfDecoded(t *testing.T) {
	path := forge(t, 1, func(_ *Writer, iv *Interval) { iv.Events = make([]Event, 100_000); fill(iv.Events) })
	b := NewBudget(context.Background(), 1<<30)
	b.work = 20 << 20
	var le *LimitError
	if err := readAll(path, b); !errors.As(err, &le) || !le.Work {
		t.Errorf("100,000 events are work of less than 20 MiB: %v", err)
	}
}

// TestBudgetOfLittleRoom takes and gives back again and again what hardly fits: each time
// the collector is waited for, which is work.
func TestBudgetOfLittleRoom(t *testing.T) {
	b := NewBudget(context.Background(), 16<<20)
	if err := b.Take(16<<20-100, "all"); err != nil {
		t.Fatal(err)
	}
	var le *LimitError
	for range 100 {
		if err := b.Take(200, "more"); !errors.As(err, &le) {
			t.Fatal(err)
		} else if le.Work {
			return
		}
	}
	t.Errorf("the collector has run 300 times, and work is %d bytes", b.worked.Load())
}

// TestBudgetScaled has a file of a few kilobytes ask for more than fits its size,
// under a budget that would hold it.
func TestBudgetScaled(t *testing.T) {
	path := forge(t, 1, func(_ *Writer, iv *Interval) {
		iv.Events = []Event{{Kind: EventExit, TID: 1, Writes: make([]MemWrite, 12_000_000)}}
	})
	var le *LimitError
	err := readAll(path, NewBudget(context.Background(), 8<<30).Scaled())
	if !errors.As(err, &le) || le.Limit != leastDecoded {
		t.Errorf("scaled: %v", err)
	}
	if err := readAll(path, NewBudget(context.Background(), 8<<30)); err != nil {
		t.Errorf("as the user says: %v", err)
	}
	b := NewBudget(context.Background(), 1<<40).Scaled()
	b.fit(nil, 1<<30)
	b.fit(nil, 1)
	if b.decoded() != decodedShare<<30 || b.workLimit() != workOfFile<<30 || b.Memory() != 1<<40 {
		t.Errorf("a file of 1 GiB: %d, %d, %d", b.decoded(), b.workLimit(), b.Memory())
	}
}

// TestBudgetOfTables reads page tables of which the cache alone would take more
// than the budget has, and goes through them again and again.
func TestBudgetOfTables(t *testing.T) {
	path := forge(t, 12, func(_ *Writer, iv *Interval) {
		if iv.Delta = iv.ID > 0; iv.Delta {
			iv.Pages = zeros(1)
		} else {
			iv.Pages = zeros(100_000)
		}
	})
	r, err := OpenWithin(path, NewBudget(context.Background(), 20<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range 10 {
		for id := range uint32(12) {
			if table, err := r.PageTable(id); err != nil || len(table) != 100_000 {
				t.Fatalf("the %dth time, table %d: %d rows, %v", i, id, len(table), err)
			}
		}
	}
}

// endsAfter is a context that has ended once it was asked so often.
type endsAfter struct {
	context.Context
	questions int
}

// Err implements context.Context.
func (c *endsAfter) Err() error {
	if c.questions--; c.questions < 0 {
		return context.Canceled
	}
	return nil
}

// TestManifestEndsWithContext decodes a manifest of megabytes until somebody does not want
// it any more, and one with something behind its end.
func TestManifestEndsWithContext(t *testing.T) {
	doc, err := encodeManifest(&manifestFile{Format: formatName, Manifest: Manifest{Version: 1, Args: slices.Repeat([]string{"an argument"}, 150_000)}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; ; n++ {
		if _, err = decodeManifest(&endsAfter{t.Context(), n}, doc); !errors.Is(err, context.Canceled) {
			break
		}
	}
	if err != nil || n < 2*len(doc)>>20 {
		t.Errorf("%v after %d questions, of %d bytes", err, n, len(doc))
	}
	if _, err := decodeManifest(t.Context(), append(doc, "{}"...)); err == nil {
		t.Error("a document behind the manifest is not noticed")
	}
}
