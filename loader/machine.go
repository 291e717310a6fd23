package loader

import (
	"encoding/binary"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Conversion between the forms that a recording has and those of the emulated machine:
// memory maps to regions, general registers in both directions. The content of pages is
// in source.go. Extended state is converted by package x86.

// Space returns the address space at the start of an interval: its map, with
// pages that are loaded from src when first needed.
func Space(pool *mem.Pool, rec *checkpoint.Recording, iv *checkpoint.Interval, src mem.Source) *mem.Space {
	s := mem.NewSpace(pool, src)
	objects := ObjectTable(rec)
	s.MapAll(Regions(iv.Maps, objects))
	s.Begin()
	return s
}

// ObjectTable returns the recording's objects by ID.
func ObjectTable(rec *checkpoint.Recording) map[uint32]checkpoint.Object {
	t := map[uint32]checkpoint.Object{}
	for _, o := range rec.Objects() {
		t[o.ID] = o
	}
	return t
}

// Region converts a mapping of a recording. fresh says that the mapping was
// made after the interval's start.
func Region(m *checkpoint.Mapping, objects map[uint32]checkpoint.Object, fresh bool) mem.Region {
	r := mem.Region{
		Start: m.Start, End: m.End,
		Prot:      m.Prot,
		Shared:    m.Flags&checkpoint.MapShared != 0,
		GrowsDown: m.Flags&checkpoint.MapGrowsDown != 0,
		Object:    m.Object,
		Offset:    m.Offset,
		Fresh:     fresh,
		Name:      m.Name,
	}
	o := objects[m.Object]
	if m.Start == abi.VsyscallPage {
		r.Prot &^= mem.ProtExec // The kernel acts where it is fetched; it holds no code.
	}
	r.Zero = o.Kind == checkpoint.ObjectShared && strings.HasPrefix(o.Path, "/dev/zero")
	return r
}

// Regions converts the memory map of a recording.
func Regions(maps []checkpoint.Mapping, objects map[uint32]checkpoint.Object) []mem.Region {
	out := make([]mem.Region, len(maps))
	for i := range maps {
		out[i] = Region(&maps[i], objects, false)
	}
	return out
}

// SetRegs makes a thread's general registers those of a recording.
func SetRegs(st *x86.State, r *checkpoint.Regs) {
	st.R = r.R
	st.RIP = r.RIP
	st.SetFlags(r.RFLAGS)
	st.FSBase, st.GSBase = r.FSBase, r.GSBase
	st.Seg = [6]uint16{x86.ES: r.ES, x86.CS: r.CS, x86.SS: r.SS, x86.DS: r.DS, x86.FS: r.FS, x86.GS: r.GS}
}

// Vector returns what reads the XMM registers of a state by their numbers in DWARF, 17 to 32 (System V ABI, AMD64
// supplement, figure 3.36).
func Vector(st *x86.State) func(n uint64, b []byte) bool {
	const first = 17
	return func(n uint64, b []byte) bool {
		if n < first || n >= first+16 {
			return false
		}
		var w [16]byte
		v := st.V[n-first]
		binary.LittleEndian.PutUint64(w[:], v[0])
		binary.LittleEndian.PutUint64(w[8:], v[1])
		copy(b, w[:])
		return true
	}
}

// Regs returns a thread's general registers in the recording's form.
func Regs(st *x86.State) checkpoint.Regs {
	return checkpoint.Regs{
		R: st.R, RIP: st.RIP, RFLAGS: st.Flags(),
		FSBase: st.FSBase, GSBase: st.GSBase,
		ES: st.Seg[x86.ES], CS: st.Seg[x86.CS], SS: st.Seg[x86.SS],
		DS: st.Seg[x86.DS], FS: st.Seg[x86.FS], GS: st.Seg[x86.GS],
	}
}
