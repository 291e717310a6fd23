package checkpoint

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
)

// somePages returns pages of which many are the same, mostly zeros.
func somePages(r *rand.Rand, n int) [][PageSize]byte {
	pages := make([][PageSize]byte, n)
	for i := range pages {
		if r.IntN(3) == 0 {
			pages[i] = pages[r.IntN(i+1)]
			continue
		}
		for range r.IntN(6) {
			pages[i][r.IntN(PageSize)] = byte(r.IntN(4))
		}
	}
	return pages
}

// TestPageHasher compares references with those made one by one, on several goroutines.
func TestPageHasher(t *testing.T) {
	pages := somePages(rand.New(rand.NewPCG(1, 2)), 2000)
	h := NewPageHasher()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range pages {
				if got, want := h.Ref(pages[i][:]), RefOf(&pages[i]); got != want {
					t.Errorf("page %d: got %v, want %v", i, got, want)
				}
			}
		})
	}
	wg.Wait()
}

// TestHashPage compares the hash of a page with the sum of its words.
func TestHashPage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i, page := range somePages(r, 500) {
		addr := r.Uint64() &^ (PageSize - 1)
		want := uint64(0)
		for o := uint64(0); o < PageSize; o += 8 {
			want += HashWord(addr+o, binary.LittleEndian.Uint64(page[o:]))
		}
		if got := HashPage(addr, page[:]); got != want {
			t.Errorf("page %d: got %#x, want %#x", i, got, want)
		}
	}
}

// TestHashPages compares the hash of pages that are the same with the sum of their hashes.
func TestHashPages(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i, page := range somePages(r, 200) {
		addr, n, want := r.Uint64()&^(PageSize-1), r.Uint64N(5), uint64(0)
		for k := range n {
			want += HashPage(addr+k*PageSize, page[:])
		}
		if got := HashPages(addr, n, page[:]); got != want {
			t.Errorf("%d pages like %d: got %#x, want %#x", n, i, got, want)
		}
	}
}
