package damage

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"vplay/checkpoint"
)

// A forge writes a file that asks for far more than it is worth. The test runs
// itself to make one: a child's peak of memory counts that of the process which
// started it, which must stay small.

// forgeVariable names the forge to run, and the file to write.
const forgeVariable = "VPLAY_TEST_FORGE"

func TestMain(m *testing.M) {
	name := os.Getenv(forgeVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	for _, f := range slices.Concat(forges, elfForges, larges, manyEvents) {
		if f.name == name {
			if err := f.make(os.Args[1]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
}

// forge is one weakness that a file tries.
type forge struct {
	name string
	make func(path string) error
	odd  bool // parts of the file can be read all the same
}

// codes are the exit codes that a verb may end with.
func (f *forge) codes() []int {
	if f.odd {
		return []int{0, 3, 4}
	}
	return []int{4}
}

const (
	pageSize = checkpoint.PageSize
	maxUser  = 0x7fff_ffff_f000 // the end of the user half
	codeAt   = 0x40_0000
	stackAt  = 0x7fff_0000_0000
)

var forges = []forge{
	{"deltas", forgeDeltas, true},
	{"tables", func(path string) error {
		table := zeros(4_000_000)
		return record(path, 20, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
			iv.Pages = append(iv.Pages, table...)
			return nil
		})
	}, true},
	{"indexes", forgeIndexes, false},
	{"manifest", func(path string) error { return forgeManifest(path, "processes", "{}") }, false},
	{"intervals", func(path string) error { return forgeManifest(path, "interval_list", "{}") }, false},
	{"members", func(path string) error { return forgeManifest(path, "members", "{}") }, false},
	{"strings", func(path string) error { return forgeManifest(path, "args", `""`) }, false},
	{"strings that fit", func(path string) error { return forgeManifest(path, "args", `"`+strings.Repeat("a", 17)+`"`) }, false},
	{"a long string", func(path string) error { return forgeManifest(path, "args", `"`+strings.Repeat("a", 60_000_000)+`"`) }, false},
	{"logs", forgeLogs, true},
	{"events", func(path string) error {
		events := eventsDue(1_100_000)
		return record(path, 10, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
			iv.Events = events
			return nil
		})
	}, true},
	{"writes", func(path string) error {
		writes := make([]checkpoint.MemWrite, 10_000_000)
		return record(path, 8, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
			iv.Start[0].InCall = true
			iv.Events = []checkpoint.Event{{Kind: checkpoint.EventExit, TID: 1, Writes: writes}}
			return nil
		})
	}, true},
	{"move of everything", func(path string) error {
		return forgeChange(path, 1, checkpoint.MapOp{Kind: checkpoint.MapOpMove, Start: 0, End: ^uint64(0), New: 0, NewEnd: ^uint64(0)})
	}, true},
	{"move of the user half", func(path string) error {
		return forgeChange(path, 1, checkpoint.MapOp{Kind: checkpoint.MapOpMove, Start: pageSize, End: maxUser, New: 2 * pageSize, NewEnd: maxUser})
	}, true},
	{"move of pages of one content", forgeMovedPages, true},
	{"drops of the user half", func(path string) error {
		return forgeChange(path, 1000, checkpoint.MapOp{Kind: checkpoint.MapOpDrop, Start: 0, End: maxUser})
	}, true},
	{"a great mapping", forgeGreatMapping, true},
	{"changes of many mappings", forgeManyMappings, true},
	{"directory", forgeDirectory, false},
	{"deflated members", forgeDeflated, false},
	{"pages of objects", forgeObjects, true},
	{"sections", func(path string) error { return forgeModules(path, 1) }, true},
	{"modules", func(path string) error { return forgeModules(path, 60_000) }, true},
	{"link map", forgeLinkMap, true},
	{"processes", func(path string) error { return forgeProcesses(path, 30_000, 1) }, true},
	{"final images of processes", func(path string) error { return forgeProcesses(path, 20, 4_000_000) }, true},
	{"threads", forgeThreads, true},
	{"pages at the end", forgeEndPages, true},
}

// larges are files that are large for good reasons.
var larges = []forge{
	{name: "65,000 mappings", make: func(path string) error {
		return record(path, 20, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
			iv.Maps = append(append(iv.Maps[:1:1], mappings(65_000)...), iv.Maps[1])
			return nil
		})
	}},
	{name: "4 GiB of pages", make: func(path string) error {
		return record(path, 20, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
			if iv.Delta = iv.ID > 0; iv.Delta {
				iv.Pages = zeros(int(iv.ID))
			} else {
				iv.Pages = append(iv.Pages, zeros(1<<20)...)
			}
			iv.Maps = []checkpoint.Mapping{iv.Maps[0], {Start: 1 << 32, End: 2 << 32, Prot: 3}, iv.Maps[1]}
			return nil
		})
	}},
}

// manyEvents is as of a program that makes nothing but calls: two of its intervals do not fit at once.
var manyEvents = []forge{{name: "600,000 events", make: func(path string) error {
	events := eventsDue(600_000)
	return record(path, 4, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
		iv.Events = events
		return nil
	})
}}}

// eventsDue are n events that are due at once, whatever the registers are.
func eventsDue(n int) []checkpoint.Event {
	return slices.Repeat([]checkpoint.Event{{Kind: checkpoint.EventEnd, TID: 1}}, n)
}

// mappings are n mappings of a page, none of which touches another.
func mappings(n uint64) []checkpoint.Mapping {
	var out []checkpoint.Mapping
	for i := range n {
		at := 1<<32 + 2*i*pageSize
		out = append(out, checkpoint.Mapping{Start: at, End: at + pageSize, Prot: 3})
	}
	return out
}

// record writes a recording of intervals of a program that executes nothing but
// jumps to itself, as change alters them.
func record(path string, intervals int, change func(w *checkpoint.Writer, iv *checkpoint.Interval) error) error {
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	if err != nil {
		return err
	}
	code := bytes.Repeat([]byte{0xeb, 0xfe}, pageSize/2)
	ref, err := w.AddPage(code)
	if err != nil {
		return err
	}
	for id := range intervals {
		start := checkpoint.Context{TID: 1, OrigRAX: -1, XState: make([]byte, 832)}
		start.Regs.RIP, start.Regs.RFLAGS = codeAt, 0x202
		start.Regs.R[4] = stackAt + pageSize
		start.Regs.CS, start.Regs.SS = 0x33, 0x2b
		iv := &checkpoint.Interval{
			ID: uint32(id), PID: 1, Start: []checkpoint.Context{start},
			Maps: []checkpoint.Mapping{
				{Start: codeAt, End: codeAt + pageSize, Prot: checkpoint.ProtRead | checkpoint.ProtExec},
				{Start: stackAt, End: stackAt + 16*pageSize, Prot: checkpoint.ProtRead | checkpoint.ProtWrite, Flags: checkpoint.MapStack},
			},
			Pages: []checkpoint.PageEntry{{Addr: codeAt, Ref: ref}},
			End:   checkpoint.End{Kind: checkpoint.EndSync, Contexts: []checkpoint.Context{start}},
		}
		if err := change(w, iv); err != nil {
			return err
		}
		if err := w.AddInterval(iv); err != nil {
			return err
		}
	}
	return w.Finish(checkpoint.Manifest{PID: 1, Program: "/forged", CPU: checkpoint.Identity{Vendor: "GenuineIntel", XCR0: 7}})
}

// zeros is a table of n pages of zeros, above the code.
func zeros(n int) []checkpoint.PageEntry {
	t := make([]checkpoint.PageEntry, n)
	for i := range t {
		t[i] = checkpoint.PageEntry{Addr: 1<<32 + uint64(i)*pageSize, Ref: checkpoint.PageRef{Kind: checkpoint.PageZero}}
	}
	return t
}

func forgeDeltas(path string) error {
	return record(path, 400, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
		if iv.ID == 0 {
			iv.Pages = append(iv.Pages, zeros(5_000_000)...)
			return nil
		}
		iv.Delta, iv.Pages = true, zeros(1)
		return nil
	})
}

// forgeProcesses writes n processes, each with a final image of so many pages.
func forgeProcesses(path string, n, pages int) error {
	table := zeros(pages)
	return record(path, n, func(w *checkpoint.Writer, iv *checkpoint.Interval) error {
		iv.PID = 1 + int32(iv.ID)
		return w.SetFinalOf(iv.PID, &checkpoint.Final{Pages: table, Contexts: iv.End.Contexts, Maps: iv.Maps})
	})
}

func forgeLogs(path string) error {
	zero := make([]byte, 180<<20)
	return record(path, 17, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
		iv.Maps[1].End = stackAt + 1<<30
		iv.Start[0].InCall = true
		iv.Events = []checkpoint.Event{{Kind: checkpoint.EventExit, TID: 1, Writes: []checkpoint.MemWrite{{Addr: stackAt, Data: zero}}}}
		return nil
	})
}

// forgeChange writes an interval whose only event changes the map n times.
func forgeChange(path string, n int, op checkpoint.MapOp) error {
	return record(path, 1, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
		e := checkpoint.Event{Kind: checkpoint.EventExit, TID: 1}
		for range n {
			e.Maps = append(e.Maps, op)
		}
		// The event is due at once: the thread stands in the call.
		iv.Start[0].InCall = true
		iv.Events = []checkpoint.Event{e}
		return nil
	})
}

func forgeGreatMapping(path string) error {
	return record(path, 1, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
		iv.Maps = []checkpoint.Mapping{{Start: pageSize, End: maxUser, Prot: 7, Flags: checkpoint.MapHeap}}
		iv.Start[0].InCall = true
		e := checkpoint.Event{Kind: checkpoint.EventExit, TID: 1}
		for range 200 {
			e.Maps = append(e.Maps,
				checkpoint.MapOp{Kind: checkpoint.MapOpProtect, Start: pageSize, End: maxUser, Prot: 1},
				checkpoint.MapOp{Kind: checkpoint.MapOpMove, Start: pageSize, End: maxUser / 2 &^ (pageSize - 1), New: maxUser / 2 &^ (pageSize - 1), NewEnd: maxUser},
				checkpoint.MapOp{Kind: checkpoint.MapOpDrop, Start: pageSize, End: maxUser},
				checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: pageSize, End: maxUser, Map: checkpoint.Mapping{Prot: 7}})
		}
		iv.Events = []checkpoint.Event{e}
		return nil
	})
}

// forgeManyMappings changes all of 65,000 mappings 2,500,000 times in one event.
func forgeManyMappings(path string) error {
	return record(path, 1, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
		iv.Maps = append(append(iv.Maps[:1:1], mappings(65_000)...), iv.Maps[1])
		iv.Start[0].InCall = true
		e := checkpoint.Event{Kind: checkpoint.EventExit, TID: 1}
		for i := range 2_500_000 {
			e.Maps = append(e.Maps, checkpoint.MapOp{Kind: checkpoint.MapOpProtect, Start: 1 << 32, End: 1<<32 + 130_000*pageSize, Prot: uint8(1 + i%3)})
		}
		iv.Events = []checkpoint.Event{e}
		return nil
	})
}

func forgeObjects(path string) error {
	return record(path, 1, func(w *checkpoint.Writer, _ *checkpoint.Interval) error {
		if err := w.AddObject(checkpoint.Object{ID: 1, Kind: checkpoint.ObjectFile, Path: "/o", Size: 1 << 50}); err != nil {
			return err
		}
		for i := range uint64(8_000_000) {
			if err := w.AddObjectPage(checkpoint.ObjectPage{Object: 1, Index: i, Ref: checkpoint.PageRef{Kind: checkpoint.PageZero}}); err != nil {
				return err
			}
		}
		return nil
	})
}

// forgeThreads has 60,000 threads, and switches from one to the next of them.
func forgeThreads(path string) error {
	return record(path, 3, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
		first := iv.Start[0]
		first.InCall, first.XState = true, nil
		all := make([]checkpoint.Context, 60_000)
		for i := range all {
			all[i] = first
			all[i].TID = checkpoint.TID(1 + i)
		}
		hash := checkpoint.HashRegs(&first.Regs)
		iv.Start, iv.End.Contexts = all, all
		for i := range 300_000 {
			iv.Events = append(iv.Events, checkpoint.Event{Kind: checkpoint.EventSched, TID: checkpoint.TID(1 + (i+1)%len(all)), RegHash: hash, Why: checkpoint.SchedBlocked})
		}
		return nil
	})
}

// samePages is a table of n pages of the content that ref names, in memory that can be
// written.
func samePages(iv *checkpoint.Interval, n int, ref checkpoint.PageRef) []checkpoint.PageEntry {
	const at = 1 << 32
	iv.Maps = []checkpoint.Mapping{iv.Maps[0], {Start: at, End: at + uint64(n)*pageSize, Prot: 3}, iv.Maps[1]}
	t := zeros(n)
	for i := range t {
		t[i].Ref = ref
	}
	return t
}

// forgeEndPages says that a million pages, all of one content, were written in each of 10
// intervals.
func forgeEndPages(path string) error {
	return record(path, 10, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
		table := samePages(iv, 1_000_000, iv.Pages[0].Ref)
		iv.Pages = append(iv.Pages, table...)
		iv.End.Pages = table
		return nil
	})
}

// forgeMovedPages moves three million pages, all of one content, in one event.
func forgeMovedPages(path string) error {
	return record(path, 1, func(_ *checkpoint.Writer, iv *checkpoint.Interval) error {
		iv.Pages = append(iv.Pages, samePages(iv, 3_000_000, iv.Pages[0].Ref)...)
		from := iv.Maps[1]
		op := checkpoint.MapOp{Kind: checkpoint.MapOpMove, Start: from.Start, End: from.End, New: 1 << 40, NewEnd: 1<<40 + from.End - from.Start}
		iv.Start[0].InCall = true
		iv.Events = []checkpoint.Event{{Kind: checkpoint.EventExit, TID: 1, Maps: []checkpoint.MapOp{op}}}
		return nil
	})
}

// forgeModules maps an ELF file n times whose headers say that everything is
// 2^60 bytes long.
func forgeModules(path string, n int) error {
	return record(path, 1, func(w *checkpoint.Writer, iv *checkpoint.Interval) error {
		if err := w.AddObject(checkpoint.Object{ID: 1, Kind: checkpoint.ObjectFile, Path: "/forged", Size: 1 << 60}); err != nil {
			return err
		}
		ref, err := w.AddPage(elfPage(1<<30, 1<<30))
		if err != nil {
			return err
		}
		if err := w.AddObjectPage(checkpoint.ObjectPage{Object: 1, Index: 0, Ref: ref}); err != nil {
			return err
		}
		var maps []checkpoint.Mapping
		for i := range uint64(n) {
			at := 1<<32 + i*2*pageSize
			maps = append(maps, checkpoint.Mapping{Start: at, End: at + pageSize, Prot: 5, Object: 1, Name: fmt.Sprintf("/forged%d", i)})
			iv.Pages = append(iv.Pages, checkpoint.PageEntry{Addr: at, Ref: ref})
		}
		iv.Maps = append(append(iv.Maps[:1:1], maps...), iv.Maps[1])
		return nil
	})
}

// forgeLinkMap has one module of which r_debug and the list behind it go round.
func forgeLinkMap(path string) error {
	return record(path, 1, func(w *checkpoint.Writer, iv *checkpoint.Interval) error {
		if err := w.AddObject(checkpoint.Object{ID: 1, Kind: checkpoint.ObjectFile, Path: "/forged", Size: 1 << 20}); err != nil {
			return err
		}
		const at = 1 << 32
		page := elfPage(pageSize, pageSize)
		le := binary.LittleEndian
		le.PutUint64(page[0x400:], uint64(elf.DT_DEBUG))
		le.PutUint64(page[0x408:], at+0x500)
		le.PutUint64(page[0x508:], at+0x600) // r_map
		for i := range uint64(8) {           // link_map: addr, name, ld, next, prev
			le.PutUint64(page[0x600+i*0x40+0x18:], at+0x600+(i+1)%8*0x40)
		}
		ref, err := w.AddPage(page)
		if err != nil {
			return err
		}
		iv.Maps = []checkpoint.Mapping{iv.Maps[0], {Start: at, End: at + pageSize, Prot: 5, Object: 1, Name: "/forged"}, iv.Maps[1]}
		iv.Pages = append(iv.Pages, checkpoint.PageEntry{Addr: at, Ref: ref})
		return nil
	})
}

// elfPage is a page that begins as an ELF file for x86-64: 100 loaded segments of
// which the first has filesz and memsz bytes, notes, a dynamic section at 0x400,
// and a table of 65,535 sections.
func elfPage(filesz, memsz uint64) []byte {
	b := make([]byte, pageSize)
	copy(b, "\x7fELF\x02\x01\x01")
	le := binary.LittleEndian
	le.PutUint16(b[16:], uint16(elf.ET_DYN))
	le.PutUint16(b[18:], uint16(elf.EM_X86_64))
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[32:], 64)
	le.PutUint64(b[40:], 0x200)
	le.PutUint16(b[52:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], 0xffff)
	le.PutUint16(b[62:], 1)
	at := 64
	head := func(typ elf.ProgType, off, vaddr, filesz, memsz uint64) {
		le.PutUint32(b[at:], uint32(typ))
		le.PutUint32(b[at+4:], 5)
		for i, v := range []uint64{off, vaddr, vaddr, filesz, memsz, pageSize} {
			le.PutUint64(b[at+8+8*i:], v)
		}
		at += 56
		le.PutUint16(b[56:], le.Uint16(b[56:])+1)
	}
	head(elf.PT_LOAD, 0, 0, filesz, memsz)
	head(elf.PT_DYNAMIC, 0x400, 0x400, 0x100, 0x100)
	head(elf.PT_NOTE, 0x300, 0x300, 1<<60, 1<<60)
	head(elf.PT_GNU_EH_FRAME, 0x500, 0x500, 1<<60, 1<<60)
	head(elf.PT_TLS, 0x500, 0x500, 1<<60, 1<<60)
	for i := range 16 { // sections
		s := b[0x200+64*i:]
		if len(s) < 64 || 0x200+64*i >= 0x400 {
			break
		}
		le.PutUint32(s[4:], uint32(elf.SHT_STRTAB))
		le.PutUint64(s[24:], 1<<60)
		le.PutUint64(s[32:], 1<<60)
	}
	return b
}

// forgeManifest writes a manifest of 60 MB of which one list is nearly all.
func forgeManifest(path, list, element string) error {
	items := bytes.Repeat([]byte(element+","), max(1, 60_000_000/(len(element)+1)))
	items = items[:len(items)-1]
	var b bytes.Buffer
	b.WriteString(`{"format":"vplay-recording","recording":{"version":1,"intervals":0`)
	if list == "processes" || list == "args" {
		fmt.Fprintf(&b, `,%q:[%s]`, list, items)
	}
	b.WriteString(`},"interval_list":[`)
	if list == "interval_list" {
		b.Write(items)
	}
	b.WriteString(`],"members":[`)
	if list == "members" {
		b.Write(items)
	}
	b.WriteString("]}")
	return archive(path, []part{{name: "manifest.json", data: b.Bytes()}})
}

// part is a member of an archive made by hand.
type part struct {
	name, kind string
	data       []byte
	pages      int
	deflate    bool
}

// archive writes a ZIP file of members as they are.
func archive(path string, parts []part) error {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, p := range parts {
		h := &zip.FileHeader{Name: p.name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(p.data)}
		h.CompressedSize64, h.UncompressedSize64 = uint64(len(p.data)), uint64(len(p.data))
		var err error
		if p.deflate {
			h.Method = zip.Deflate
			w, create := z.CreateHeader(h)
			if create == nil {
				_, create = w.Write(p.data)
			}
			err = create
		} else {
			w, create := z.CreateRaw(h)
			if create == nil {
				_, create = w.Write(p.data)
			}
			err = create
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(z.Close(), os.WriteFile(path, b.Bytes(), 0o600))
}

// withManifest puts a manifest that lists the parts in front of them.
func withManifest(parts []part) ([]part, error) {
	type member struct {
		Name  string `json:"name"`
		Kind  string `json:"kind"`
		Size  int    `json:"size"`
		Hash  string `json:"sha256_128"`
		Pages int    `json:"pages,omitempty"`
	}
	var members []member
	for _, p := range parts {
		sum := sha256.Sum256(p.data)
		members = append(members, member{p.name, p.kind, len(p.data), hex.EncodeToString(sum[:16]), p.pages})
	}
	doc, err := json.Marshal(map[string]any{
		"format":        "vplay-recording",
		"recording":     checkpoint.Manifest{Version: 1, Start: time.Unix(0, 0)},
		"interval_list": []int{}, "members": members,
	})
	return append([]part{{name: "manifest.json", data: doc}}, parts...), err
}

// forgeIndexes has four indexes of 3,800,000 pages each, of zeros once compressed.
func forgeIndexes(path string) error {
	const blocks = 60_000
	var raw []byte
	raw = binary.AppendUvarint(raw, blocks)
	for range blocks {
		raw = append(raw, 1, 64)
		raw = append(raw, make([]byte, 17*64)...)
	}
	data, err := member("page-index", raw)
	if err != nil {
		return err
	}
	empty, err := member("page-pack", nil)
	if err != nil {
		return err
	}
	var parts []part
	for i := range 4 {
		parts = append(parts, part{name: fmt.Sprintf("pages/%04d.pack", i), kind: "page-pack", data: empty},
			part{name: fmt.Sprintf("pages/%04d.index", i), kind: "page-index", data: data, pages: blocks * 64})
	}
	if parts, err = withManifest(parts); err != nil {
		return err
	}
	return archive(path, parts)
}

// member makes a binary member, as FORMAT.md has it.
func member(kind string, raw []byte) ([]byte, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	head := binary.AppendUvarint(nil, uint64(len(kind)))
	out := frame(nil, 'H', append(append(head, kind...), 1))
	for rest := raw; len(rest) > 0; {
		n := min(len(rest), 1<<20)
		out = frame(out, 'B', enc.EncodeAll(rest[:n], binary.AppendUvarint(nil, uint64(n))))
		rest = rest[n:]
	}
	return frame(out, 'E', binary.AppendUvarint(nil, uint64(len(raw)))), enc.Close()
}

func frame(b []byte, typ byte, payload []byte) []byte {
	start := len(b)
	b = binary.AppendUvarint(b, uint64(len(payload)))
	b = append(append(b, typ), payload...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], crc32.MakeTable(crc32.Castagnoli)))
}

// forgeDirectory has half a million members.
func forgeDirectory(path string) error {
	parts := make([]part, 500_000)
	for i := range parts {
		parts[i].name = fmt.Sprint(i)
	}
	return archive(path, parts)
}

// forgeDeflated has members of a gigabyte that ZIP itself compresses.
func forgeDeflated(path string) error {
	return archive(path, []part{{name: "manifest.json", data: make([]byte, 256<<20), deflate: true}})
}
