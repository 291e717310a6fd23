package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// testPages returns n different pages of real content: the test program's own
// file, which is what recordings are made of as much as anything.
func testPages(b *testing.B, n int) [][]byte {
	b.Helper()
	exe := must(os.ReadFile(must(os.Executable())))
	var pages [][]byte
	for at := 0; at+PageSize <= len(exe) && len(pages) < n; at += PageSize {
		if p := exe[at : at+PageSize]; !isZeroPage(p) {
			pages = append(pages, p)
		}
	}
	return pages
}

func benchFile(b *testing.B, level Level, pages [][]byte) (string, []PageRef) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "x.vplay")
	w := must(Create(path, WriterOptions{Level: level}))
	var refs []PageRef
	for _, p := range pages {
		refs = append(refs, must(w.AddPage(p)))
	}
	if err := w.Finish(Manifest{}); err != nil {
		b.Fatal(err)
	}
	return path, refs
}

func BenchmarkWritePages(b *testing.B) {
	pages := testPages(b, 2000)
	for _, level := range []Level{LevelFast, LevelSmall} {
		b.Run(fmt.Sprintf("level=%d", level), func(b *testing.B) {
			b.SetBytes(int64(len(pages)) * PageSize)
			var size int64
			for b.Loop() {
				path, _ := benchFile(b, level, pages)
				size = must(os.Stat(path)).Size()
			}
			b.ReportMetric(float64(size)/float64(len(pages)), "file-B/page")
		})
	}
}

func BenchmarkReadPages(b *testing.B) {
	path, refs := benchFile(b, LevelFast, testPages(b, 2000))
	random := make([]PageRef, len(refs))
	for i, j := range rand.New(rand.NewPCG(1, 2)).Perm(len(refs)) {
		random[i] = refs[j]
	}
	for name, order := range map[string][]PageRef{"sequential": refs, "random": random} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(order)) * PageSize)
			var page [PageSize]byte
			for b.Loop() {
				r := must(Open(path))
				for _, ref := range order {
					must(r.Page(ref, &page))
				}
				r.Close()
			}
		})
	}
}

func BenchmarkEvents(b *testing.B) {
	var events []Event
	for i := range uint64(10000) {
		events = append(events,
			Event{Kind: EventEnter, TID: 1, RegHash: i * 0x9e3779b97f4a7c15, NR: 0, Args: [6]uint64{3, 0x7fff00001000, 512}},
			Event{Kind: EventExit, TID: 1, RegHash: i * 0x9e3779b97f4a7c17, NR: 0, Result: 512, Writes: []MemWrite{{0x7fff00001000, make([]byte, 512)}}})
	}
	var log []byte
	var raw uint64
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			log, raw, _ = encodeLog(events, plainVersion, LevelFast)
		}
		b.SetBytes(int64(raw))
		b.ReportMetric(float64(len(log))/float64(len(events)), "file-B/event")
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			must(decodeEvents(must(decodeMember(log, kindLog, FormatVersion, maxMemberRaw, nil)), len(events), FormatVersion, nil))
		}
		b.SetBytes(int64(raw))
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
	})
}

func BenchmarkPageTable(b *testing.B) {
	rec := fakeRecording()
	table := rec.table(newGen(3), 16384, false)
	c := newEncoder(fakeStore{})
	codePageTable(c, &table, false)
	b.ReportMetric(float64(len(c.b))/float64(len(table)), "raw-B/row")
	for b.Loop() {
		must(decodeWhole(c.b, FormatVersion, fakeStore{}, nil, func(c *coder, t *[]PageEntry) { codePageTable(c, t, false) }))
	}
}

// BenchmarkTableChain resolves the last table of 200 intervals of 64 MiB, each
// a delta of 300 pages, as opening a recording at its crash does.
func BenchmarkTableChain(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x.vplay")
	w := must(Create(path, WriterOptions{}))
	g := newGen(4)
	rec := &recording{contents: make(map[PageRef][PageSize]byte), masks: make(map[PageRef][512]byte)}
	rec.addPages(b, g, w, 4000)
	for id := range uint32(200) {
		iv := &Interval{ID: id, Delta: id > 0}
		for a := range uint64(16384) {
			if id == 0 || g.IntN(16384) < 300 {
				iv.Pages = append(iv.Pages, PageEntry{a * PageSize, rec.refs[g.IntN(len(rec.refs))]})
			}
		}
		if err := w.AddInterval(iv); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Finish(Manifest{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r := must(Open(path))
		must(r.PageTable(199))
		r.Close()
	}
}
