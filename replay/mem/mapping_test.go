package mem

import (
	"math/rand/v2"
	"runtime"
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
	s.OnFlush = func(a uint64, all bool) {
		if all {
			clear(d.mapped)
		} else {
			delete(d.mapped, a&^(PageSize-1))
		}
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
			for _, s := range both {
				s.Map(Region{Start: p, End: p + PageSize, Prot: ProtRead | ProtWrite, Fresh: true})
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
		if a &^= PageSize - 1; plain.IsWritten(a) != mapped.IsWritten(a) {
			t.Fatalf("access %d: page %#x is written: %t, mapped %t", n, a, plain.IsWritten(a), mapped.IsWritten(a))
		}
	}
	if d.made < 100_000 {
		t.Errorf("only %d accesses were made directly", d.made)
	}
	for i := range both {
		if snapshots[i] != nil {
			snapshots[i].Release()
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
