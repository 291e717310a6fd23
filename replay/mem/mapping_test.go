package mem

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// direct accesses a space as an engine does that maps pages: through Mapping, and what that refuses through Read and Write.
type direct struct {
	s      *Space
	mapped map[uint64]mappedPage // by address
	made   int                   // accesses without Read and Write
}

type mappedPage struct {
	page   *Page
	stores bool
}

func newDirect(s *Space) *direct {
	d := &direct{s: s, mapped: map[uint64]mappedPage{}}
	s.OnFlush = func(start, end uint64) {
		maps.DeleteFunc(d.mapped, func(a uint64, _ mappedPage) bool { return a+PageSize > start && a < end })
	}
	return d
}

// at returns the byte at a where it may be accessed directly, else nil.
func (d *direct) at(a uint64, k Access) *byte {
	base := a &^ (PageSize - 1)
	if p, ok := d.mapped[base]; !ok || k == Store && !p.stores {
		m, ok := d.s.Mapping(base, k)
		if !ok {
			return nil
		}
		for i := range uint64(m.Pages) {
			d.mapped[m.Addr+i*PageSize] = mappedPage{d.s.pool.inFile(m.Offset + int64(i)*PageSize), m.Stores}
		}
	}
	d.made++
	return &d.mapped[base].page[a%PageSize]
}

// inFile returns the page at an offset in the arena's file.
func (p *Pool) inFile(offset int64) *Page {
	for _, c := range p.chunks[:p.n] {
		if i := (offset - c.offset) / PageSize; c.offset >= 0 && i >= 0 && i < chunkPages {
			return &c.pages[i]
		}
	}
	return nil
}

func (d *direct) load(a uint64) (byte, Fault) {
	if b := d.at(a, Load); b != nil {
		return *b, Fault{}
	}
	var b [1]byte
	f := d.s.Read(a, b[:])
	return b[0], f
}

func (d *direct) store(a uint64, v byte) Fault {
	if b := d.at(a, Store); b != nil {
		*b = v
		return Fault{}
	}
	return d.s.Write(a, []byte{v})
}

// TestMapping: pages that are mapped, until they are flushed, have what Read and Write of another space have, and accesses to them
// change nothing else: snapshots, what is written, hits of watches.
func TestMapping(t *testing.T) {
	if arenaFile() < 0 {
		if runtime.GOOS == "linux" {
			t.Error("there is no file for the arena")
		}
		return
	}
	const pages = 40
	rng := rand.New(rand.NewPCG(3, 4))
	plain, mapped := newTestSpace(t), newTestSpace(t)
	d := newDirect(mapped)
	mapped.AllowMapping()
	both := []*Space{plain, mapped}
	var hits [2]int
	for i, s := range both {
		s.OnHit = func(Hit) { hits[i]++ }
		s.Map(Region{Start: 0x10000, End: 0x10000 + pages*PageSize, Prot: ProtRead | ProtWrite})
		s.Begin()
	}
	starts := [2]*Snapshot{plain.Snapshot(), mapped.Snapshot()}
	page := func() uint64 { return 0x10000 + uint64(rng.IntN(pages))*PageSize }
	var snapshots [2]*Snapshot
	for n := range 200_000 {
		a := page() + uint64(rng.IntN(PageSize))
		switch v := byte(rng.Uint32()); rng.IntN(200) {
		case 0:
			p := page()
			prot := uint8(rng.IntN(4))
			for _, s := range both {
				s.Protect(p, p+4*PageSize, prot)
			}
		case 1:
			for i, s := range both {
				if snapshots[i] != nil {
					if v%2 == 0 {
						s.Restore(snapshots[i])
					}
					snapshots[i].Release()
				}
				snapshots[i] = s.Snapshot()
			}
		case 2:
			for _, s := range both {
				s.SetWatches([]Watch{{Addr: a, Len: 1, Kind: WatchWrite | WatchKind(v&1)*WatchRead}}[:v>>1&1])
			}
		case 3:
			for _, s := range both {
				s.CodeID(a &^ (PageSize - 1))
			}
		case 4:
			p := page()
			end := p + uint64(1+rng.IntN(16))*PageSize
			for _, s := range both {
				s.Map(Region{Start: p, End: end, Prot: ProtRead | ProtWrite, Fresh: true})
			}
		case 5:
			if a, b := plain.weight(starts[0]), mapped.weight(starts[1]); a != b {
				t.Fatalf("access %d: what was written has hash %#x, mapped %#x", n, a, b)
			}
		default:
			if v&1 == 0 {
				if f, g := plain.Write(a, []byte{v}), d.store(a, v); f != g {
					t.Fatalf("access %d, store to %#x: %+v, mapped %+v", n, a, f, g)
				}
				continue
			}
			var b [1]byte
			f := plain.Read(a, b[:])
			if got, g := d.load(a); f != g || f.Kind == FaultNone && got != b[0] {
				t.Fatalf("access %d, load from %#x: %+v %#x, mapped %+v %#x", n, a, f, b[0], g, got)
			}
		}
		if hits[0] != hits[1] {
			t.Fatalf("access %d: %d hits, mapped %d", n, hits[0], hits[1])
		}
		a &^= PageSize - 1
		var content Page
		var known Mask
		isZero := mapped.PeekRaw(a, &content, &known) && content == Page{} // then it may be written ahead
		if plain.IsWritten(a) != mapped.IsWritten(a) && (plain.IsWritten(a) || !isZero) {
			t.Fatalf("access %d: page %#x is written: %t, mapped %t", n, a, plain.IsWritten(a), mapped.IsWritten(a))
		}
	}
	if d.made < 100_000 {
		t.Errorf("only %d accesses were made directly", d.made)
	}
	for i := range both {
		starts[i].Release()
		if snapshots[i] != nil {
			snapshots[i].Release()
		}
	}
}

// weight is the hash of what the program has changed since it began, as replay compares it at a forced end: what written pages hold minus what was there, less
// what was in those that were given up.
func (s *Space) weight(start *Snapshot) (sum uint64) {
	then := start.Open()
	defer then.Close()
	add := func(sign, a uint64, page *Page) {
		for i := 0; i < PageSize; i += 8 {
			sum += sign * word(page, i) * (a + uint64(i) + 1)
		}
	}
	var was Page
	var known Mask
	s.Written(start, func(a uint64, _, now *Page) {
		if now != nil {
			was = Page{}
			then.PeekRaw(a, &was, &known)
			add(1, a, now)
			add(^uint64(0), a, &was)
		}
	})
	for _, d := range s.Dropped() {
		for a := d[0]; a < d[1]; a += PageSize {
			if was = (Page{}); !s.IsWritten(a) && then.PeekRaw(a, &was, &known) {
				add(^uint64(0), a, &was)
			}
		}
	}
	return sum
}

// TestPrepared: a program that fills fresh memory comes for a few of its pages alone, and is given none behind the end, or that has been written to.
func TestPrepared(t *testing.T) {
	if arenaFile() < 0 {
		return
	}
	s := newTestSpace(t)
	s.AllowMapping()
	d := newDirect(s)
	const first, pages = 0x10000, 256
	s.Map(Region{Start: first, End: first + pages*PageSize, Prot: ProtRead | ProtWrite, Fresh: true})
	s.Map(Region{Start: first + pages*PageSize, End: first + 2*pages*PageSize, Prot: ProtRead | ProtWrite})
	const kept = first + 100*PageSize + 8
	s.Write(kept, []byte{77})
	asked := 0
	for i := range uint64(pages) {
		if _, ok := d.mapped[first+i*PageSize]; !ok {
			asked++
		}
		d.store(first+i*PageSize, 1)
	}
	if asked > pages/8 || s.IsWritten(first+pages*PageSize) {
		t.Errorf("%d pages were asked for; the one behind the end is written: %t", asked, s.IsWritten(first+pages*PageSize))
	}
	if v, _ := d.load(kept); v != 77 {
		t.Errorf("what was written is %d", v)
	}
}

// TestTakeRun: recycled pages that lie one behind the other are handed out together, whatever way they were given back.
func TestTakeRun(t *testing.T) {
	for _, x := range []struct {
		free      []pageID
		n         int
		first     pageID
		got, left int
	}{
		{[]pageID{9, 4, 5, 6}, 8, 4, 3, 1},
		{[]pageID{9, 6, 5, 4}, 2, 4, 2, 2},
		{[]pageID{3, 4, 5, 6}, 4, 3, 4, 0},
		{[]pageID{1, 4, 9}, 4, 9, 1, 2},
		{[]pageID{7}, 3, 7, 1, 0},
	} {
		s := shelf{free: slices.Clone(x.free)}
		if first, got := s.takeRun(x.n); first != x.first || got != x.got || len(s.free) != x.left {
			t.Errorf("%v, %d: %d from %d on, %v are left", x.free, x.n, got, first, s.free)
		}
	}
}

// TestMappingWaits: nothing may be mapped while accesses are collected or stores are hashed.
func TestMappingWaits(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0x10000, End: 0x20000, Prot: ProtRead | ProtWrite})
	isThere := arenaFile() >= 0
	if _, ok := s.MappedFile(); ok {
		t.Error("pages may be mapped where nobody has allowed that")
	}
	s.AllowMapping()
	for _, x := range []struct {
		name       string
		begin, end func()
	}{
		{"Track", func() { s.Track(NewSets()) }, func() { s.Track(nil) }},
		{"Hash", func() { s.Hash(func(a, v uint64) uint64 { return a * v }, 0) }, func() { s.Hash(nil, 0) }},
	} {
		x.begin()
		if _, ok := s.Mapping(0x10000, Load); ok {
			t.Errorf("%s: a page may be mapped", x.name)
		}
		x.end()
		if _, ok := s.Mapping(0x10000, Load); ok != isThere {
			t.Errorf("%s: %t behind it", x.name, ok)
		}
	}
}
