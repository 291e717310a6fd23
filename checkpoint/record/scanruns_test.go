//go:build linux && amd64

package record

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// TestScanFits: the scan, which ends with JMP R11, and the INT3 behind it fit in what is copied.
func TestScanFits(t *testing.T) {
	var b [scanSize]byte
	codeOfScan(&b)
	if i := bytes.Index(b[:], []byte{0x41, 0xff, 0xe3}); i < 0 || i+3 >= scanSize {
		t.Errorf("JMP R11 at %d of %d bytes", i, scanSize)
	}
}

// somePages returns n pages, many of which differ from the one before in one byte, or not at
// all, where a file in memory would be mapped: at a multiple of a page.
func somePages(t *testing.T, rnd *rand.Rand, n int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n*checkpoint.PageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	for i := 1; i < n; i++ {
		page := b[i*checkpoint.PageSize:][:checkpoint.PageSize]
		copy(page, b[(i-1)*checkpoint.PageSize:])
		if rnd.IntN(3) > 0 {
			page[rnd.IntN(checkpoint.PageSize)]++
		}
	}
	return b
}

// runsOf returns what a scan of pages gives that has room slots.
func runsOf(pages []byte, room int) (r pageRuns) {
	for ; len(pages) > 0; pages = pages[checkpoint.PageSize:] {
		page, n := pages[:checkpoint.PageSize], len(r.counts)
		if n > 0 && bytes.Equal(page, r.pages[(n-1)*checkpoint.PageSize:]) {
			r.counts[n-1]++
		} else if n < room {
			r.pages, r.counts = append(r.pages, page...), append(r.counts, 1)
		} else {
			break
		}
	}
	return r
}

// TestScanRuns compares the scan with one in Go, and what a reader is given with the pages.
func TestScanRuns(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		n, room := 1+rnd.IntN(40), 1+rnd.IntN(20)
		pages := somePages(t, rnd, n)
		want := runsOf(pages, room)
		got := pageRuns{somePages(t, rnd, room), make([]uint32, room)}
		for i := range got.counts {
			got.counts[i] = 77 // of an earlier scan
		}
		done := scanHere(&pages[0], &got.pages[0], &got.counts[0], uint64(n), uint64(room))
		got.pages, got.counts = got.pages[:len(want.pages)], got.counts[:len(want.counts)]
		if !slices.Equal(got.counts, want.counts) || !bytes.Equal(got.pages, want.pages) {
			t.Fatalf("%d pages, %d slots: runs %d, want %d", n, room, got.counts, want.counts)
		}
		at := uint64(0)
		for len(got.pages) > 0 {
			n, page := got.next()
			for ; n > 0; n, at = n-1, at+1 {
				if !bytes.Equal(page, pages[at*checkpoint.PageSize:][:checkpoint.PageSize]) {
					t.Fatalf("page %d is another one", at)
				}
			}
		}
		if at != done {
			t.Fatalf("%d pages, and the scan says %d", at, done)
		}
	}
}

// holes is a memory in which some pages cannot be read.
type holes struct {
	pages []byte
	none  []uint64
}

func (h holes) readAt(b []byte, addr uint64) (int, error) {
	if slices.Contains(h.none, addr/checkpoint.PageSize) {
		return 0, unix.EIO
	}
	b = b[:min(len(b), len(h.pages)-int(addr))]
	for _, p := range h.none {
		if from := p * checkpoint.PageSize; from > addr {
			b = b[:min(uint64(len(b)), from-addr)]
		}
	}
	return copy(b, h.pages[addr:]), nil
}
func (holes) writeAt([]byte, uint64) (int, error) { return 0, unix.EIO }
func (holes) close()                              {}

// TestEachRun: all pages that can be read are shown, in order, and those in a row that are the
// same may be shown together.
func TestEachRun(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	mem := holes{somePages(t, rnd, 300), []uint64{0, 7, 8, 100, 163, 299}}
	set := ranges{{0, 5}, {6, 12}, {13, 14}, {90, 300}}
	var want, got []uint64
	_ = set.each(func(page uint64) error {
		if !slices.Contains(mem.none, page) {
			want = append(want, page)
		}
		return nil
	})
	calls := 0
	err := eachRun(memReader{mem}, set, func(addr, n uint64, page []byte) error {
		calls++
		for ; n > 0; n, addr = n-1, addr+checkpoint.PageSize {
			if !bytes.Equal(page, mem.pages[addr:][:checkpoint.PageSize]) {
				t.Errorf("page %d is another one", addr/checkpoint.PageSize)
			}
			got = append(got, addr/checkpoint.PageSize)
		}
		return nil
	})
	if err != nil || !slices.Equal(got, want) || calls >= len(want) {
		t.Errorf("%v, %d calls, pages %d, want %d", err, calls, got, want)
	}
}

// TestStartReader: pages that are the same now are read where they are now, all others where the start
// is held, whatever is asked for.
func TestStartReader(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	now, start := holes{pages: somePages(t, rnd, 200)}, holes{pages: somePages(t, rnd, 200)}
	want := slices.Clone(start.pages)
	same := ranges{{3, 4}, {10, 90}, {91, 92}, {150, 199}}
	_ = same.each(func(page uint64) error {
		from := page * checkpoint.PageSize
		copy(want[from:from+checkpoint.PageSize], now.pages[from:])
		clear(start.pages[from : from+checkpoint.PageSize])
		return nil
	})
	for _, src := range []pageReader{memReader{start}, onePage{memReader{start}}} {
		r := startReader{src, memReader{now}, same}
		got := make([]byte, len(want))
		err := eachPage(r, ranges{{0, 5}, {5, 200}}, func(addr uint64, page []byte) error {
			copy(got[addr:], page)
			return nil
		})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%T: %v, other pages", src, err)
		}
		for page := range uint64(200) {
			b, addr := make([]byte, checkpoint.PageSize), page*checkpoint.PageSize
			if err := r.readPage(addr, b); err != nil || !bytes.Equal(b, want[addr:addr+checkpoint.PageSize]) {
				t.Errorf("%T: page %d: %v", src, page, err)
			}
		}
	}
}

// onePage is a reader that reads page by page.
type onePage struct{ r memReader }

func (o onePage) readPage(addr uint64, b []byte) error { return o.r.readPage(addr, b) }
func (onePage) close()                                 {}

// TestWithin: the runs of a set that are in another run.
func TestWithin(t *testing.T) {
	set := ranges{{2, 4}, {6, 10}, {12, 13}}
	for lo := range uint64(15) {
		for hi := lo + 1; hi < 15; hi++ {
			var got ranges
			set.within(lo, hi, func(lo, hi uint64) { got = append(got, pageRange{lo, hi}) })
			if want := set.intersect(ranges{{lo, hi}}); !slices.Equal(got, want) {
				t.Errorf("%d to %d: %v, want %v", lo, hi, got, want)
			}
		}
	}
}
