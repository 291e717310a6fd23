package loader

import (
	"maps"
	"sync"
	"testing"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader/image"
	"vplay/loader/image/imagetest"
)

// TestModuleFiles asks about two libraries with one build-id from many resolvers at
// once: each is opened once, and all are told the same.
func TestModuleFiles(t *testing.T) {
	const low, high = 0x400000, 0x800000
	memory := imagetest.Library(low)
	maps.Copy(memory, imagetest.Library(high))
	var mappings []checkpoint.Mapping
	for _, base := range []uint64{low, high} {
		for _, g := range imagetest.Maps() {
			mappings = append(mappings, checkpoint.Mapping{Start: g.Start - imagetest.Maps()[0].Start + base, End: g.End - imagetest.Maps()[0].Start + base, Prot: g.Prot, Object: g.Object, Offset: g.Offset, Name: g.Name})
		}
	}
	files := NewModuleFiles(NewSymbols(nil, false))
	var mu sync.Mutex
	opened, told := map[uint64]int{}, map[uint64]map[*dwarf.Module]bool{low: {}, high: {}}
	files.OnOpen = func(mod *image.Module) {
		mu.Lock()
		defer mu.Unlock()
		opened[mod.Base]++
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			r := NewResolver(mappings, memory, files)
			for _, base := range []uint64{low, high, low} {
				d := r.Open(base + 0x10)
				mu.Lock()
				told[base][d] = true
				mu.Unlock()
			}
			if _, err := files.Image(r.Module(low), memory); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, base := range []uint64{low, high} {
		if opened[base] != 1 || len(told[base]) != 1 || told[base][nil] {
			t.Errorf("the library at %#x was opened %d times, %d answers", base, opened[base], len(told[base]))
		}
	}
}
