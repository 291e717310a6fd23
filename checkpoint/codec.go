package checkpoint

import (
	"fmt"
	"slices"
	"time"
)

// How the structures of a recording are coded, one function each for both
// directions; FORMAT.md says the same in words.

func codeRegs(c *coder, r *Regs) {
	codeNumbers(c, r.R[:])
	c.u64(&r.RIP)
	c.u64(&r.RFLAGS)
	c.u64(&r.FSBase)
	c.u64(&r.GSBase)
	for _, p := range []*uint16{&r.CS, &r.SS, &r.DS, &r.ES, &r.FS, &r.GS} {
		c.u16(p)
	}
}

func codeContext(c *coder, x *Context) {
	c.i32((*int32)(&x.TID))
	codeRegs(c, &x.Regs)
	c.bytes(&x.XState)
	c.i64(&x.OrigRAX)
	c.bool(&x.InCall)
	c.i64(&x.Restart)
	if c.version >= 2 {
		c.str(&x.Name)
	}
}

func codeMapping(c *coder, m *Mapping) {
	c.u64(&m.Start)
	c.u64(&m.End)
	codeMapped(c, m)
	if c.err == nil && (m.Start%PageSize != 0 || m.End%PageSize != 0 || m.Start >= m.End) {
		c.fail("mapping %#x-%#x is not a range of pages", m.Start, m.End)
	}
}

// codeMapped codes what a range maps: all of m but the range.
func codeMapped(c *coder, m *Mapping) {
	codeBits(c, &m.Prot, ProtRead|ProtWrite|ProtExec, "protection")
	codeBits(c, &m.Flags, MapShared|MapGrowsDown|MapStack|MapHeap, "mapping flags")
	c.u32(&m.Object)
	c.u64(&m.Offset)
	c.str(&m.Name)
}

// codeBits codes a byte that has no bits but those of all.
func codeBits(c *coder, p *uint8, all uint8, what string) {
	narrow(c, p, 255)
	if c.err == nil && *p&^all != 0 {
		c.fail("%s %#x has unknown bits", what, *p)
	}
}

func codeMapOp(c *coder, op *MapOp) {
	enum(c, &op.Kind, MapOpMap, MapOpDrop, "map change")
	c.u64(&op.Start)
	c.u64(&op.End)
	switch op.Kind {
	case MapOpMap:
		// The mapping's range is the change's, and is written once.
		codeMapped(c, &op.Map)
		if c.decoding {
			op.Map.Start, op.Map.End = op.Start, op.End
		}
	case MapOpMove:
		c.u64(&op.New)
		c.u64(&op.NewEnd)
	case MapOpProtect:
		codeBits(c, &op.Prot, ProtRead|ProtWrite|ProtExec, "protection")
	case MapOpUnmap, MapOpDrop: // The range says all.
	}
}

func codeMemWrite(c *coder, w *MemWrite) {
	c.u64(&w.Addr)
	c.bytes(&w.Data)
}

func codeObject(c *coder, o *Object) {
	c.u32(&o.ID)
	enum(c, &o.Kind, ObjectAnon, ObjectSpecial, "object kind")
	c.str(&o.Path)
	c.str(&o.BuildID)
	c.u64(&o.Dev)
	c.u64(&o.Inode)
	c.i64(&o.Size)
	c.bool(&o.Changed)
}

func codeArtefact(c *coder, a *Artefact) {
	c.u64(&a.Addr)
	c.bytes(&a.Old)
	c.str(&a.What)
}

func codeEnd(c *coder, e *End) {
	enum(c, &e.Kind, 0, EndStop, "end kind")
	c.bool(&e.Forced)
	c.i32(&e.Signo)
	c.i32(&e.ExitCode)
	list(c, &e.Contexts, 30, codeContext)
	c.fixed64(&e.MemHash)
	codePageTable(c, &e.Pages, false)
	c.i64((*int64)(&e.CPUTime))
	c.str(&e.Reason)
}

// codeInterval codes all of an interval but its events.
func codeInterval(c *coder, iv *Interval) {
	c.u32(&iv.ID)
	c.i32(&iv.PID)
	c.u32(&iv.Image)
	c.bool(&iv.Delta)
	codeSlim(c, iv)
	list(c, &iv.Start, 30, codeContext)
	list(c, &iv.Maps, 7, codeMapping)
	c.u64(&iv.Brk)
	c.u64(&iv.StackLimit)
	codePageTable(c, &iv.Pages, iv.Delta)
	codeEnd(c, &iv.End)
	list(c, &iv.Artefact, 3, codeArtefact)
	c.i64((*int64)(&iv.CPUStart))
	codeTime(c, &iv.WallTime)
}

// codeSlim codes how slim an interval is: 0 fat, 1 slim, and since version 3 2 first loads.
func codeSlim(c *coder, iv *Interval) {
	v, most := uint64(0), uint64(1)
	if c.version >= firstLoadsVersion {
		most = 2
	}
	switch {
	case iv.FirstLoads:
		v = 2
	case iv.Slim:
		v = 1
	}
	v = c.limited(v, most, "slim")
	if c.decoding {
		iv.Slim, iv.FirstLoads = v > 0, v > 1
	}
}

// codeTime codes seconds since 1970 and nanoseconds; the zone is lost.
func codeTime(c *coder, t *time.Time) {
	sec, nsec := t.Unix(), uint64(t.Nanosecond())
	c.i64(&sec)
	nsec = c.limited(nsec, 999_999_999, "nanoseconds")
	if c.decoding && c.err == nil {
		*t = time.Unix(sec, int64(nsec)).UTC()
	}
}

func codeFinal(c *coder, f *Final) {
	codePageTable(c, &f.Pages, false)
	list(c, &f.Maps, 7, codeMapping)
	list(c, &f.Contexts, 30, codeContext)
	c.bytes(&f.Siginfo)
	c.i32(&f.Signo)
}

func codeObjects(c *coder, objects *[]Object) {
	list(c, objects, 8, codeObject)
	for i := 1; i < len(*objects) && c.err == nil; i++ {
		if (*objects)[i-1].ID >= (*objects)[i].ID {
			c.fail("object %d is not in order", (*objects)[i].ID)
		}
	}
}

// Page references in a table. A page of the store is refStored plus the
// zigzag distance of its number from the one expected, which is the number
// after the last stored page of the same table: tables of neighbouring pages
// cost a byte or two a row and no hash.
const (
	refZero = iota
	refAbsent
	refRedacted
	refRemoved
	refFull    // 16 bytes of hash follow: a page that is not in the store
	refPartial // the same for a partial page
	refStored
)

// refCoder codes page references relative to the one before.
type refCoder struct {
	next uint64
	last PageRef // of number next-1, unless that is 0
}

var plainRefs = [...]PageKind{refZero: PageZero, refAbsent: PageAbsent, refRedacted: PageRedacted, refRemoved: PageRemoved}

func (rc *refCoder) code(c *coder, r *PageRef) {
	if c.err != nil {
		return
	}
	if c.decoding {
		rc.decode(c, r)
		return
	}
	v := uint64(0)
	switch r.Kind {
	case PageZero:
		v = refZero
	case PageAbsent:
		v = refAbsent
	case PageRedacted:
		v = refRedacted
	case PageRemoved:
		v = refRemoved
	case PageFull, PagePartial:
		if rc.next > 0 && *r == rc.last { // as of many pages in a row
			v = refStored + zigzag(-1)
			break
		}
		if n, ok := c.pages.number(*r); ok {
			v = refStored + zigzag(int64(n)-int64(rc.next))
			rc.next, rc.last = n+1, *r
			break
		}
		v = refFull
		if r.Kind == PagePartial {
			v = refPartial
		}
		c.u64(&v)
		c.raw(r.Hash[:])
		return
	default:
		c.fail("unknown kind of page record %d", r.Kind)
	}
	c.u64(&v)
}

func (rc *refCoder) decode(c *coder, r *PageRef) {
	var v uint64
	c.u64(&v)
	switch {
	case c.err != nil:
	case v < uint64(len(plainRefs)):
		*r = PageRef{Kind: plainRefs[v]}
	case v == refFull:
		r.Kind = PageFull
		c.raw(r.Hash[:])
	case v == refPartial:
		r.Kind = PagePartial
		c.raw(r.Hash[:])
	default:
		n := rc.next + uint64(unzigzag(v-refStored))
		ref, err := c.pages.ref(n)
		if err != nil {
			c.fail("%w", err)
			return
		}
		*r, rc.next = ref, n+1
	}
}

// codePageTable codes rows sorted by address without repetition. removed says
// whether rows of kind PageRemoved may occur.
func codePageTable(c *coder, p *[]PageEntry, removed bool) {
	var rc refCoder
	next := uint64(0) // the least page number the row may have
	if !c.decoding {
		c.b = slices.Grow(c.b, 2*len(*p)) // a row of a run takes two bytes
	}
	list(c, p, 2, func(c *coder, e *PageEntry) {
		const maxPage = ^uint64(0) / PageSize
		gap := e.Addr/PageSize - next
		if !c.decoding && (e.Addr%PageSize != 0 || e.Addr/PageSize < next || next > maxPage) {
			c.fail("page table has %#x twice, not in order, or not page-aligned", e.Addr)
			return
		}
		c.u64(&gap)
		if c.err == nil && (next > maxPage || gap > maxPage-next) {
			c.fail("page number above the address space")
			return
		}
		if c.decoding {
			e.Addr = (next + gap) * PageSize
		}
		next += gap + 1
		rc.code(c, &e.Ref)
		if c.err == nil && e.Ref.Kind == PageRemoved && !removed {
			c.fail("page %#x is removed in a table that has nothing to remove from", e.Addr)
		}
	})
}

// codeObjectPages codes rows sorted by object and index without repetition.
func codeObjectPages(c *coder, p *[]ObjectPage) {
	var rc refCoder
	var last ObjectPage
	first := true
	list(c, p, 3, func(c *coder, o *ObjectPage) {
		c.u32(&o.Object)
		gap := o.Index
		if !first && o.Object == last.Object {
			gap -= last.Index
		}
		c.u64(&gap)
		if c.decoding {
			o.Index = gap
			if !first && o.Object == last.Object {
				o.Index += last.Index
			}
		}
		rc.code(c, &o.Ref)
		if c.err == nil && !first && compareObjectPages(last, *o) >= 0 {
			c.fail("page %d of object %d is not in order", o.Index, o.Object)
		}
		if c.err == nil && o.Ref.Kind == PageRemoved {
			c.fail("page %d of object %d is removed", o.Index, o.Object)
		}
		last, first = *o, false
	})
}

func compareObjectPages(a, b ObjectPage) int {
	if a.Object != b.Object {
		return cmpU64(uint64(a.Object), uint64(b.Object))
	}
	return cmpU64(a.Index, b.Index)
}

// decodeWhole decodes the raw bytes of a member, in a version of the format, with code.
func decodeWhole[T any](raw []byte, version int, p pageNumbers, ch *charge, code func(*coder, *T)) (*T, error) {
	v := new(T)
	c := newDecoder(raw, p)
	c.charge, c.version = ch, version
	code(c, v)
	if err := c.finish(); err != nil {
		return nil, &offsetError{int64(c.pos), fmt.Errorf("of the decoded bytes: %w", err)}
	}
	return v, nil
}
