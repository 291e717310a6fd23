package dwarf

import (
	"cmp"
	"errors"
	"slices"
	"sort"
	"strings"
	"sync"
)

// frameSection is .eh_frame or .debug_frame. The list of functions in it is
// made when first needed; their programs are interpreted when asked for.
type frameSection struct {
	data []byte
	addr uint64 // file virtual address, of .eh_frame
	eh   bool
	once sync.Once

	meter *meter // nil has no bounds
	fdes  []fde  // sorted by low, once it was parsed
}

// cie is a common information entry (DWARF 5, 6.4.1).
type cie struct {
	code     uint64 // code alignment factor
	data     int64  // data alignment factor
	ra       uint64 // return address register
	pointers byte   // encoding of addresses in the FDEs
	sized    bool   // the FDEs have augmentation data
	signal   bool   // frames of signal handlers: pc is not behind a call
	program  []byte
}

// fde is a frame description entry: how to unwind [low,high).
type fde struct {
	low, high uint64
	cie       *cie
	program   []byte
}

// maxFDEs bounds one section's functions.
const maxFDEs = 4 << 20

// frameEntryBytes is what one entry takes in memory, and frameEntryWork in time, with sorting.
const (
	frameEntryBytes = 160
	frameEntryWork  = 200
)

// errNoFrame says that the call frame information does not cover an address.
var errNoFrame = errors.New("dwarf: no call frame information for this address")

// Pointer encodings (LSB 5 Core, "DWARF Exception Header Encoding").
const (
	peOmit   = 0xff
	pePCRel  = 0x10
	peFormat = 0x0f
	peBase   = 0x70
)

func (m *Module) readFrames(f *file) {
	for _, name := range []string{".eh_frame", ".debug_frame"} {
		if s := f.Section(name); s != nil {
			m.frames = append(m.frames, &frameSection{data: f.section(s), addr: s.Addr, eh: strings.HasPrefix(name, ".eh"), meter: m.meter})
		}
	}
}

// find returns the entry that covers pc. It takes no lock of the module: names
// are looked up with it held.
func (m *Module) find(pc uint64) (*fde, error) {
	for _, s := range m.frames {
		s.once.Do(s.parse)
		j := sort.Search(len(s.fdes), func(j int) bool { return s.fdes[j].low > pc })
		if j > 0 && pc < s.fdes[j-1].high {
			return &s.fdes[j-1], nil
		}
	}
	return nil, errNoFrame
}

// parse lists the section's entries; those that make no sense are left out.
func (s *frameSection) parse() {
	cies := map[uint64]*cie{}
	c := cursor{b: s.data}
	for c.left() >= 4 && len(s.fdes) < maxFDEs {
		start := c.at
		n, size := c.uint(4), uint64(4)
		switch n {
		case 0:
			continue // a terminator; what linkers put behind it is read as well
		case 0xffffffff:
			n, size = c.uint(8), 8
		}
		at := c.at
		body := cursor{b: c.bytes(n)}
		if c.bad || s.meter.spend(frameEntryWork) != nil || s.meter.take(frameEntryBytes) != nil {
			break
		}
		id := body.uint(size)
		switch {
		case s.eh && id == 0, !s.eh && (id == 0xffffffff && size == 4 || id == ^uint64(0)):
			if e := s.cie(&body); e != nil {
				cies[uint64(start)] = e
			}
		default:
			if s.eh {
				id = uint64(at) - id
			}
			if e := cies[id]; e != nil {
				s.addFDE(&body, e, uint64(at))
			}
		}
	}
	slices.SortStableFunc(s.fdes, func(a, b fde) int { return cmp.Compare(a.low, b.low) })
}

// cie decodes what stands behind the id of a CIE; nil when it is not understood.
func (s *frameSection) cie(c *cursor) *cie {
	e := &cie{}
	version := c.u8()
	augmentation := c.str()
	if version == 4 {
		if c.u8() != 8 || c.u8() != 0 { // address size, segment selector size
			return nil
		}
	}
	e.code, e.data = c.uleb(), c.sleb()
	if version == 1 {
		e.ra = uint64(c.u8())
	} else {
		e.ra = c.uleb()
	}
	if augmentation != "" && !e.augment(c, augmentation) || c.bad {
		return nil
	}
	e.program = c.b[c.at:]
	return e
}

// augment reads the data that the augmentation string describes.
func (e *cie) augment(c *cursor, augmentation string) bool {
	if augmentation[0] != 'z' {
		return false
	}
	e.sized = true
	data := cursor{b: c.bytes(c.uleb())}
	for _, a := range augmentation[1:] {
		switch a {
		case 'L':
			data.u8()
		case 'R':
			e.pointers = data.u8()
		case 'S':
			e.signal = true
		case 'P':
			enc := data.u8()
			data.pointer(enc, 0)
		case 'B': // pointer authentication, elsewhere
		default:
			return true // the size tells where the program begins
		}
	}
	return !data.bad
}

// addFDE decodes what stands behind the CIE pointer of an FDE; at is the
// section offset of body.
func (s *frameSection) addFDE(body *cursor, e *cie, at uint64) {
	f := fde{cie: e}
	f.low = body.pointer(e.pointers, s.addr+at+uint64(body.at))
	f.high = f.low + body.pointer(e.pointers&peFormat, 0)
	if e.sized {
		body.bytes(body.uleb())
	}
	if body.bad || f.high <= f.low {
		return
	}
	f.program = body.b[body.at:]
	s.fdes = append(s.fdes, f)
}

// pointer reads an encoded address; at is its own address.
func (c *cursor) pointer(enc byte, at uint64) uint64 {
	if enc == peOmit {
		return 0
	}
	var v uint64
	switch enc & peFormat {
	case 0x0, 0x4, 0xc:
		v = c.uint(8)
	case 0x1:
		v = c.uleb()
	case 0x2:
		v = c.uint(2)
	case 0x3:
		v = c.uint(4)
	case 0x9:
		v = uint64(c.sleb())
	case 0xa:
		v = uint64(c.int(2))
	case 0xb:
		v = uint64(c.int(4))
	default:
		c.bad = true
	}
	switch enc & peBase {
	case 0:
	case pePCRel:
		v += at
	default: // relative to text, data or function: not used on this machine
		c.bad = true
	}
	return v
}
