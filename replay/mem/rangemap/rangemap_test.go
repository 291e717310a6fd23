package rangemap

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// piece is a range with where it came from, so that cuts show.
type piece struct{ start, end, id, off uint64 }

func (p piece) Bounds() (uint64, uint64) { return p.start, p.end }
func (p piece) Cut(start, end uint64) piece {
	return piece{start, end, p.id, p.off + start - p.start}
}

// cells is a Map the slow way: an entry for each address.
type cells [200]struct{ id, off uint64 }

func (c *cells) set(p piece) {
	for a := p.start; a < p.end; a++ {
		c[a].id, c[a].off = p.id, p.off+a-p.start
	}
}

// check compares m with c at each address, and that m is sorted and disjoint.
func (c *cells) check(t *testing.T, m Map[piece]) {
	t.Helper()
	var got cells
	last := uint64(0)
	for _, p := range m.All() {
		if p.start < last || p.start >= p.end {
			t.Fatalf("%v behind an end of %d", p, last)
		}
		last = p.end
		got.set(p)
	}
	if got != *c {
		t.Fatalf("map has %v", m.All())
	}
	for a := range uint64(len(c)) {
		p := m.Find(a)
		if (p == nil) != (c[a].id == 0) || p != nil && (p.id != c[a].id || p.off+a-p.start != c[a].off) {
			t.Fatalf("at %d: %v, want %v", a, p, c[a])
		}
	}
}

// TestAgainstCells makes random changes, and looks at old maps again at the end:
// they must not have changed.
func TestAgainstCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var m Map[piece]
	var c cells
	type moment struct {
		m Map[piece]
		c cells
	}
	var past []moment
	for i := range 1500 {
		a, b := rng.Uint64N(200), rng.Uint64N(201)
		a, b = min(a, b), max(a, b)
		switch rng.IntN(4) {
		case 3:
			m = m.Change(a, b, func(p piece) piece {
				p.id ^= 1 << 20
				return p
			})
			for x := a; x < b; x++ {
				if c[x].id != 0 {
					c[x].id ^= 1 << 20
				}
			}
		case 0:
			m = m.Replace(a, b)
			c.set(piece{a, b, 0, -a})
			for x := a; x < b; x++ {
				c[x].off = 0
			}
		case 1:
			if a < b {
				p := piece{a, b, uint64(i + 1), 0}
				m = m.Replace(a, b, p)
				c.set(p)
			}
		case 2:
			in := m.Inside(a, b)
			for j := range in {
				in[j].id += 1 << 20
				c.set(in[j])
			}
			m = m.Replace(a, b, in...)
		}
		c.check(t, m)
		past = append(past, moment{m, c})
	}
	for _, p := range past {
		p.c.check(t, p.m)
	}
}

// TestOrder asks for parts of a map from both ends.
func TestOrder(t *testing.T) {
	var all []piece
	for i := range uint64(100) {
		all = append(all, piece{i * 10, i*10 + 5, i, 0})
	}
	m := Of(all)
	if !slices.Equal(m.All(), all) || m.Len() != 100 {
		t.Errorf("a map of %v has %v", all, m.All())
	}
	var from, back []uint64
	for p := range m.From(14) {
		from = append(from, p.id)
		if len(from) == 2 {
			break
		}
	}
	for p := range m.Backward() {
		back = append(back, p.id)
		if len(back) == 3 {
			break
		}
	}
	if !slices.Equal(from, []uint64{1, 2}) || !slices.Equal(back, []uint64{99, 98, 97}) {
		t.Errorf("from 14: %v; backward: %v", from, back)
	}
	if in := m.Inside(12, 24); !slices.Equal(in, []piece{{12, 15, 1, 2}, {20, 24, 2, 0}}) {
		t.Errorf("inside 12-24: %v", in)
	}
}

func depth(n *node[piece]) int {
	if n == nil {
		return 0
	}
	return 1 + max(depth(n.left), depth(n.right))
}

// TestDepth holds the tree to a small multiple of the logarithm, whatever the order
// of the changes: the chance of 64 levels at 2^15 values is below 10^-9.
func TestDepth(t *testing.T) {
	const n = 1 << 15
	orders := map[string]func(i uint64) uint64{
		"upwards":   func(i uint64) uint64 { return i },
		"downwards": func(i uint64) uint64 { return n - i },
		"outwards":  func(i uint64) uint64 { return n/2 + (i/2)*(i%2*2-1) + 1 },
	}
	for name, at := range orders {
		var m Map[piece]
		for i := range uint64(n) {
			a := at(i) * 2
			m = m.Replace(a, a+1, piece{a, a + 1, i, 0})
		}
		if d := depth(m.root); d > 64 || m.Len() < n/2 {
			t.Errorf("%s: %d values, depth %d", name, m.Len(), d)
		}
	}
	// One range that is cut again and again.
	m := Of([]piece{{0, 2 * n, 1, 0}})
	for i := range uint64(n) {
		m = m.Replace(2*i, 2*i+1, m.Inside(2*i, 2*i+1)...)
	}
	if d := depth(m.root); d > 64 || m.Len() != 2*n {
		t.Errorf("cut in pieces: %d values, depth %d", m.Len(), d)
	}
}
