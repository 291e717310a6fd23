package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"
)

// gen makes random recordings; the same seed gives the same recording.
type gen struct{ *rand.Rand }

func newGen(seed uint64) gen { return gen{rand.New(rand.NewPCG(seed, 7))} }

func (g gen) num() uint64 { return g.Uint64() >> g.IntN(64) }

func (g gen) bytes(most int) []byte {
	b := make([]byte, g.IntN(most+1))
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	if len(b) == 0 {
		return nil
	}
	return b
}

func (g gen) text() string { return string(g.bytes(12)) }

func (g gen) regs() Regs {
	var r Regs
	for i := range r.R {
		r.R[i] = g.num()
	}
	r.RIP, r.RFLAGS, r.FSBase, r.GSBase = g.num(), g.num(), g.num(), g.num()
	r.CS, r.SS, r.DS, r.ES, r.FS, r.GS = 0x33, 0x2b, uint16(g.num()), 0, 1, 2
	return r
}

func (g gen) contexts() []Context {
	list := make([]Context, 1+g.IntN(3))
	for i := range list {
		list[i] = Context{TID: TID(g.num()), Regs: g.regs(), XState: g.bytes(900), OrigRAX: -1, InCall: g.IntN(2) == 0, Restart: -512, Name: g.text()}
	}
	return list
}

func (g gen) mapping() Mapping {
	start := g.num() >> 13 << 12
	return Mapping{
		Start: start, End: start + PageSize*uint64(1+g.IntN(9)), Prot: uint8(g.IntN(8)), Flags: uint8(g.IntN(16)),
		Object: g.Uint32(), Offset: g.num(), Name: g.text(),
	}
}

// event makes an event of a kind from the event table: all required fields
// and some of the optional ones.
func (g gen) event(kind EventKind) Event {
	e := Event{Kind: kind}
	s := kind.spec()
	for _, id := range s.required {
		g.field(&e, id)
	}
	for _, id := range s.optional {
		if g.IntN(2) == 0 {
			g.field(&e, id)
		}
	}
	return e
}

func (g gen) field(e *Event, id fieldID) {
	switch p := eventFields[id].at(e).(type) {
	case *int64:
		*p = int64(g.num()) * int64(g.IntN(3)-1)
	case *int32:
		*p = int32(g.num())
	case *uint64:
		*p = g.num()
	case *bool:
		*p = true
	case *[6]uint64:
		for i := range p {
			p[i] = g.num()
		}
	case *[4]uint64:
		for i := range p {
			p[i] = g.num()
		}
	case *InstrKind:
		*p = InstrKind(1 + g.IntN(3))
	case *SchedReason:
		*p = SchedReason(1 + g.IntN(len(schedNames)-1))
	case *ThreadOp:
		*p = ThreadOp(1 + g.IntN(len(threadNames)-1))
	case **Regs:
		r := g.regs()
		*p = &r
	case *[]byte:
		*p = g.bytes(200)
	case *string:
		*p = g.text()
	case *[]MapOp:
		*p = g.mapOps()
	case *[]MemWrite:
		for range 1 + g.IntN(3) {
			*p = append(*p, MemWrite{Addr: g.num(), Data: g.bytes(300)})
		}
	default:
		panic(fmt.Sprintf("field %s has type %T", eventFields[id].name, p))
	}
}

func (g gen) mapOps() []MapOp {
	var ops []MapOp
	for range 1 + g.IntN(3) {
		op := MapOp{Kind: MapOpKind(1 + g.IntN(5)), Start: g.num(), End: g.num()}
		switch op.Kind {
		case MapOpMap:
			op.Map = g.mapping()
			op.Map.Start, op.Map.End = op.Start, op.End
		case MapOpMove:
			op.New, op.NewEnd = g.num(), g.num()
		case MapOpProtect:
			op.Prot = uint8(g.IntN(8))
		case MapOpUnmap, MapOpDrop:
		}
		ops = append(ops, op)
	}
	return ops
}

func (g gen) events(n int) []Event {
	var list []Event
	for range n {
		list = append(list, g.event(EventEnter+EventKind(g.IntN(int(lastEvent)))))
	}
	return list
}

// recording is everything that a file holds, for comparison.
type recording struct {
	manifest Manifest
	objects  []Object
	objPages []ObjectPage
	refs     []PageRef
	contents map[PageRef][PageSize]byte
	masks    map[PageRef][512]byte
	list     []*Interval
	final    *Final
	other    *Final // of otherProcess, when that has an interval
}

// otherProcess is the PID of every third interval of a random recording, from the second
// on: those of 4711, which the manifest is about, lie around them.
const otherProcess = 3

// addPages stores n pages: random, half-filled, zero and partial ones.
func (rec *recording) addPages(t testing.TB, g gen, w *Writer, n int) {
	t.Helper()
	for range n {
		var page [PageSize]byte
		for i := range g.IntN(PageSize) {
			a, b := g.Uint32(), g.Uint32()
			page[i] = byte(a & b)
		}
		if g.IntN(9) == 0 {
			page = zeroPage
		}
		var ref PageRef
		var err error
		if g.IntN(4) == 0 {
			var mask [512]byte
			for range g.IntN(40) {
				mask[g.IntN(512)] = byte(g.Uint32())
			}
			ref, err = w.AddPartialPage(&mask, page[:])
			if ref.Kind == PagePartial {
				rec.masks[ref] = mask
			}
			for i := range page {
				if mask[i/8]>>(i%8)&1 == 0 {
					page[i] = 0
				}
			}
		} else {
			ref, err = w.AddPage(page[:])
		}
		if err != nil {
			t.Fatal(err)
		}
		rec.refs = append(rec.refs, ref)
		rec.contents[ref] = page
	}
}

func (rec *recording) table(g gen, n int, removed bool) []PageEntry {
	var t []PageEntry
	addr := uint64(g.IntN(99)) * PageSize
	for range n {
		ref := rec.refs[g.IntN(len(rec.refs))]
		switch g.IntN(12) {
		case 0:
			ref = PageRef{Kind: PageAbsent}
		case 1:
			ref = PageRef{Kind: PageRedacted}
		case 2:
			if removed {
				ref = PageRef{Kind: PageRemoved}
			}
		}
		t = append(t, PageEntry{addr, ref})
		addr += PageSize * uint64(1+g.IntN(2)*g.IntN(1<<20))
	}
	return t
}

func (rec *recording) interval(g gen, id uint32) *Interval {
	iv := &Interval{
		ID: id, PID: 4711, Image: 2, Start: g.contexts(), Brk: g.num(), StackLimit: 8 << 20,
		Delta: id > 1 && g.IntN(3) > 0, Slim: g.IntN(2) == 0, Events: g.events(g.IntN(30)),
		CPUStart: time.Duration(g.Uint32()), WallTime: time.Unix(1763600000, int64(g.IntN(1e9))).UTC(),
	}
	for range g.IntN(9) {
		iv.Maps = append(iv.Maps, g.mapping())
	}
	if id%3 == 2 {
		iv.PID, iv.Delta = otherProcess, iv.Delta && id > 3
	}
	iv.FirstLoads = iv.Slim && g.IntN(2) == 0
	iv.Pages = rec.table(g, g.IntN(40), iv.Delta)
	unknown := PageRef{Kind: PageFull, Hash: PageHash{1, 2, 3, byte(id)}}
	iv.End = End{
		Kind: EndForced, Forced: true, Signo: 11, ExitCode: -1, Contexts: g.contexts(), MemHash: g.Uint64(),
		Pages: append(rec.table(g, g.IntN(9), false), PageEntry{^uint64(0) &^ 4095, unknown}), CPUTime: time.Second, Reason: g.text(),
	}
	iv.Artefact = []Artefact{{Addr: g.num(), Old: g.bytes(9), What: "test"}}
	return iv
}

// writeRandom writes a random recording to path and returns what it must hold.
func writeRandom(t testing.TB, path string, seed uint64, pages, intervals int) *recording {
	t.Helper()
	g := newGen(seed)
	w, err := Create(path, WriterOptions{FirstLoads: true})
	if err != nil {
		t.Fatal(err)
	}
	rec := &recording{contents: make(map[PageRef][PageSize]byte), masks: make(map[PageRef][512]byte)}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	rec.addPages(t, g, w, pages)
	rec.final = &Final{Pages: rec.table(g, 9, false), Maps: []Mapping{g.mapping()}, Contexts: g.contexts(), Siginfo: g.bytes(128), Signo: 11}
	check(w.SetFinal(rec.final))
	for i := range uint32(intervals) {
		rec.list = append(rec.list, rec.interval(g, 1+i))
	}
	if intervals > 1 {
		rec.other = &Final{Pages: rec.table(g, 5, false), Maps: []Mapping{g.mapping()}, Contexts: g.contexts(), Signo: 9}
		check(w.SetFinalOf(otherProcess, rec.other))
	}
	for _, i := range g.Perm(intervals) {
		check(w.AddInterval(rec.list[i]))
	}
	for i := range uint32(3) {
		o := Object{ID: 1 + i, Kind: ObjectKind(i), Path: "/lib/\xffx", BuildID: "00ff", Dev: 1, Inode: g.num(), Size: 99, Changed: i == 1}
		rec.objects = append(rec.objects, o)
		check(w.AddObject(Object{ID: 1 + i, Path: "replaced"}))
		check(w.AddObject(o))
		for j := range uint64(4) {
			p := ObjectPage{Object: o.ID, Index: j * j * g.num(), Ref: rec.refs[g.IntN(len(rec.refs))]}
			if slices.ContainsFunc(rec.objPages, func(q ObjectPage) bool { return compareObjectPages(p, q) == 0 }) {
				continue
			}
			rec.objPages = append(rec.objPages, p)
			check(w.AddObjectPage(ObjectPage{Object: p.Object, Index: p.Index, Ref: rec.refs[0]})) // replaced
			check(w.AddObjectPage(p))
		}
	}
	slices.SortFunc(rec.objPages, compareObjectPages)
	rec.manifest = Manifest{
		Tool: "test", ID: "0123456789abcdef0123456789abcdef", Program: "/bin/\xfe", Args: []string{"a", "base64:x", "\x80"},
		Env: []string{"A=ü"}, Start: time.Unix(1763600000, 5).UTC(), PID: 4711, Crash: true, Signo: 11, Keep: "crash",
		CPU:       Identity{Vendor: "AuthenticAMD", CPUID: []CPUIDLeaf{{Leaf: 7, EAX: 1}}, XSAVE: []XSAVEComponent{{2, 576, 256}}},
		Auxv:      []byte{6, 0},
		Parent:    otherProcess,
		Processes: []Process{{PID: otherProcess, Program: "\xff"}},
	}
	check(w.Finish(rec.manifest))
	rec.manifest.Version, rec.manifest.Intervals = FormatVersion, intervals
	return rec
}

// compare reports the first difference between a file and what it must hold.
func (rec *recording) compare(r *Recording) error {
	if !reflect.DeepEqual(*r.Manifest(), rec.manifest) {
		return fmt.Errorf("manifest: got %+v, want %+v", *r.Manifest(), rec.manifest)
	}
	if !slices.Equal(r.Objects(), rec.objects) {
		return fmt.Errorf("objects: got %+v", r.Objects())
	}
	if got := slices.Collect(r.ObjectPages()); !slices.Equal(got, rec.objPages) {
		return fmt.Errorf("object pages: got %+v, want %+v", got, rec.objPages)
	}
	for _, p := range rec.objPages {
		if ref, ok := r.ObjectPage(p.Object, p.Index); !ok || ref != p.Ref {
			return fmt.Errorf("object page %d of %d", p.Index, p.Object)
		}
	}
	if len(r.Intervals()) != len(rec.list) {
		return fmt.Errorf("%d intervals", len(r.Intervals()))
	}
	for _, want := range rec.list {
		if err := rec.compareInterval(r, want); err != nil {
			return err
		}
	}
	if err := rec.compareTables(r); err != nil {
		return err
	}
	final, err := r.Final()
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(final, rec.final) {
		return fmt.Errorf("final: got %+v, want %+v", final, rec.final)
	}
	if err := rec.compareProcesses(r); err != nil {
		return err
	}
	return rec.comparePages(r)
}

func (rec *recording) compareInterval(r *Recording, want *Interval) error {
	got, err := r.Interval(want.ID)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("interval %d: got %+v, want %+v", want.ID, got, want)
	}
	return nil
}

// compareProcesses checks whose intervals and final images there are.
func (rec *recording) compareProcesses(r *Recording) error {
	other, err := r.FinalOf(otherProcess)
	if rec.other == nil {
		if !errors.Is(err, ErrNoFinal) {
			return fmt.Errorf("final of a process that is not there: %w", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(other, rec.other) {
		return fmt.Errorf("final of process %d: got %+v, want %+v", otherProcess, other, rec.other)
	}
	var got []int32
	for _, p := range r.Processes() {
		got = append(got, p.PID)
		for _, image := range r.ImagesOf(p.PID) {
			for _, in := range image {
				if want := (in.ID%3 == 2) == (p.PID == otherProcess); !want || in.PID != p.PID {
					return fmt.Errorf("interval %d of process %d is listed as one of %d", in.ID, in.PID, p.PID)
				}
			}
		}
	}
	if want := []int32{4711, otherProcess}; !slices.Equal(got, want) {
		return fmt.Errorf("processes %v, want %v", got, want)
	}
	return nil
}

// compareTables checks the resolved tables against maps.
func (rec *recording) compareTables(r *Recording) error {
	models := make(map[int32]map[uint64]PageRef)
	for _, iv := range rec.list {
		if !iv.Delta {
			models[iv.PID] = make(map[uint64]PageRef)
		}
		model := models[iv.PID]
		for _, e := range iv.Pages {
			model[e.Addr] = e.Ref
			if e.Ref.Kind == PageRemoved {
				delete(model, e.Addr)
			}
		}
		table, err := r.PageTable(iv.ID)
		if err != nil {
			return err
		}
		if len(table) != len(model) || !slices.IsSortedFunc(table, func(a, b PageEntry) int { return cmpU64(a.Addr, b.Addr) }) {
			return fmt.Errorf("table of interval %d has %d rows, want %d", iv.ID, len(table), len(model))
		}
		for addr, ref := range model {
			if got, ok := table.Find(addr); !ok || got != ref {
				return fmt.Errorf("table of interval %d at %#x", iv.ID, addr)
			}
		}
	}
	return nil
}

func (rec *recording) comparePages(r *Recording) error {
	for ref, want := range rec.contents {
		var got [PageSize]byte
		mask, err := r.Page(ref, &got)
		if ref.Kind == PageAbsent {
			if !errors.Is(err, ErrAbsent) {
				return fmt.Errorf("absent page: got %w", err)
			}
			continue
		}
		if err != nil {
			return err
		}
		wantMask, partial := rec.masks[ref]
		if got != want || partial != (mask != nil) || partial && *mask != wantMask {
			return fmt.Errorf("page %x differs", ref.Hash)
		}
	}
	return nil
}

func TestRoundTrip(t *testing.T) {
	for seed := range uint64(20) {
		path := filepath.Join(t.TempDir(), "x.vplay")
		rec := writeRandom(t, path, seed, 20+int(seed)*20, int(seed))
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := rec.compare(r); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		r.Close()
		st, err := os.Stat(path)
		if err != nil || runtime.GOOS != "windows" && st.Mode() != fs.FileMode(0o600) {
			t.Errorf("mode %v, error %v", st.Mode(), err)
		}
	}
}

// TestManyPacks writes more than one pack holds, and checks a few pages of each.
func TestManyPacks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.vplay")
	w := must(Create(path, WriterOptions{}))
	g := newGen(8)
	var refs []PageRef
	var table []PageEntry
	var page [PageSize]byte
	for i := range uint64(9000) {
		for j := 0; j < PageSize; j += 8 {
			binary.LittleEndian.PutUint64(page[j:], g.Uint64())
		}
		refs = append(refs, must(w.AddPage(page[:])))
		table = append(table, PageEntry{i * PageSize, refs[i]})
	}
	if err := w.AddInterval(&Interval{ID: 1, Pages: table}); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(Manifest{}); err != nil {
		t.Fatal(err)
	}
	r := open(t, path)
	if len(r.store.packs) != 3 {
		t.Errorf("%d packs", len(r.store.packs))
	}
	if got := must(r.PageTable(1)); !slices.Equal(got, table) {
		t.Error("the page table differs")
	}
	for i := 0; i < len(refs); i += 97 {
		must(r.Page(refs[i], &page))
		if HashPageContent(&page) != refs[i].Hash {
			t.Errorf("page %d differs", i)
		}
	}
	if info := r.Intervals()[0]; info.HeadSize > 9000*2+1000 {
		t.Errorf("a table of 9000 neighbouring pages takes %d bytes", info.HeadSize)
	}
}
