package mem

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// gibibyte returns a space with 1 GiB of written pages, and one snapshot's
// worth of recycled pages in its pool.
func gibibyte(b *testing.B) (s *Space, pages uint64) {
	b.Helper()
	const base, size = 1 << 32, 1 << 30
	p := NewPool()
	s = NewSpace(p, zeroSource{})
	b.Cleanup(func() {
		s.Close()
		if err := p.Close(); err != nil {
			b.Error(err)
		}
	})
	s.Map(Region{Start: base, End: base + size, Prot: ProtRead | ProtWrite})
	for a := uint64(base); a < base+size; a += PageSize {
		if page, fast := s.Translate(a, Store); page == nil || !fast {
			b.Fatalf("no page at %#x", a)
		}
	}
	n := s.Snapshot()
	for i := range touched {
		s.Translate(base+uint64(i)*PageSize, Store)
	}
	s.Restore(n)
	n.Release()
	return s, size / PageSize
}

// touched is how many pages are written between two snapshots.
const touched = 1000

type zeroSource struct{}

func (zeroSource) PageAt(uint64, *Page, *Mask) (Content, bool)     { return Zero, true }
func (zeroSource) ObjectPage(uint32, uint64, *Page, *Mask) Content { return Zero }

// BenchmarkSnapshot measures, on a guest of 1 GiB: a snapshot, the first write
// to each of 1000 random pages behind it, and going back to it. The metrics are
// medians and minima of single moments: other work on the machine moves the mean.
func BenchmarkSnapshot(b *testing.B) {
	s, pages := gibibyte(b)
	base := s.Regions()[0].Start
	rng := rand.New(rand.NewPCG(1, 1))
	var take, write, restore []float64
	for b.Loop() {
		start := time.Now()
		n := s.Snapshot()
		taken := time.Now()
		for range touched {
			s.Translate(base+rng.Uint64N(pages)*PageSize, Store)
		}
		written := time.Now()
		s.Restore(n)
		restored := time.Now()
		n.Release()
		take = append(take, float64(taken.Sub(start).Nanoseconds()))
		write = append(write, float64(written.Sub(taken).Nanoseconds())/touched)
		restore = append(restore, float64(restored.Sub(written).Nanoseconds()))
	}
	for name, v := range map[string][]float64{"snapshot": take, "write-page": write, "restore": restore} {
		slices.Sort(v)
		b.ReportMetric(v[len(v)/2], name+"-ns")
		b.ReportMetric(v[0], name+"-min-ns")
	}
}
