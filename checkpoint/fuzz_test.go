package checkpoint

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
)

// The seeds are made by the writer from fixed random numbers, so the corpus
// always fits the format.
//
// go test minimises each input that reaches something new, for up to a minute, and does not
// count what it executes for that: with inputs of kilobytes, as FuzzOpen's and
// FuzzManifest's, a short run then does nothing else. With -fuzzminimizetime 100x they
// execute thousands of inputs a second.

func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, frameBlock, []byte("hello")))
	f.Add(appendFrame(nil, frameEnd, nil))
	f.Add([]byte{0x80, 0x00, 'B'})
	f.Fuzz(func(t *testing.T, b []byte) {
		typ, payload, n, err := readFrame(b)
		if err != nil {
			return
		}
		if again := appendFrame(nil, typ, payload); !bytes.Equal(again, b[:n]) {
			t.Errorf("frame %x written again is %x", b[:n], again)
		}
	})
}

func FuzzMember(f *testing.F) {
	b, _, err := encodeLog(newGen(1).events(40), FormatVersion, LevelFast)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(appendFrame(appendHeader(nil, kindLog, FormatVersion), frameEnd, []byte{0}))
	f.Fuzz(func(t *testing.T, b []byte) {
		raw, err := decodeMember(b, kindLog, FormatVersion, 1<<22, nil)
		var at *offsetError
		if err != nil && !errors.As(err, &at) {
			t.Errorf("error without an offset: %v", err)
		}
		if len(raw) > 1<<22 {
			t.Errorf("%d bytes", len(raw))
		}
	})
}

// FuzzBlock gives the decompressor what no check protects it from.
func FuzzBlock(f *testing.F) {
	f.Add(compressBlock(nil, bytes.Repeat([]byte("abc"), 999), LevelFast))
	f.Fuzz(func(t *testing.T, b []byte) {
		prefix := []byte("before")
		raw, err := decompressBlock(prefix, b)
		if err == nil && (!bytes.HasPrefix(raw, prefix) || len(raw) > maxBlock+len(prefix)) {
			t.Errorf("%d bytes", len(raw))
		}
	})
}

func FuzzEvents(f *testing.F) {
	g := newGen(2)
	for kind := EventEnter; kind <= lastEvent; kind++ {
		e := g.event(kind)
		c := newEncoder(nil)
		encodeEvent(c, newEncoder(nil), &e)
		f.Add(c.b, 1)
	}
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		events, err := decodeEvents(b, n, FormatVersion, nil)
		if err != nil {
			return
		}
		c, scratch := newEncoder(nil), newEncoder(nil)
		for i := range events {
			encodeEvent(c, scratch, &events[i])
		}
		if c.err != nil || !bytes.Equal(c.b, b) {
			t.Errorf("%x written again is %x, error %v", b, c.b, c.err)
		}
	})
}

// fakeStore has the first thousand numbers.
type fakeStore struct{}

func (fakeStore) number(r PageRef) (uint64, bool) {
	n := uint64(r.Hash[0]) | uint64(r.Hash[1])<<8
	return n, n < 1000 && r == fakePage(n)
}

func (fakeStore) ref(n uint64) (PageRef, error) {
	if n >= 1000 {
		return PageRef{}, errors.New("no such page")
	}
	return fakePage(n), nil
}

func fakePage(n uint64) PageRef {
	r := PageRef{Kind: PageFull, Hash: PageHash{byte(n), byte(n >> 8), 15: 0xcc}}
	if n%5 == 0 {
		r.Kind = PagePartial
	}
	return r
}

// fuzzStructure decodes arbitrary bytes and demands that what is accepted is
// the same after being written and read again.
func fuzzStructure[T any](f *testing.F, seeds []*T, code func(*coder, *T)) {
	for _, s := range seeds {
		c := newEncoder(fakeStore{})
		code(c, s)
		if c.err != nil {
			f.Fatal(c.err)
		}
		f.Add(c.b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decodeWhole(b, FormatVersion, fakeStore{}, nil, code)
		if err != nil {
			return
		}
		c := newEncoder(fakeStore{})
		code(c, v)
		if c.err != nil {
			t.Fatalf("accepted %x, refused to write it: %v", b, c.err)
		}
		again, err := decodeWhole(c.b, FormatVersion, fakeStore{}, nil, code)
		if err != nil || !reflect.DeepEqual(v, again) {
			t.Errorf("%+v became %+v, error %v", v, again, err)
		}
	})
}

func fakeRecording() *recording {
	rec := &recording{refs: []PageRef{{Kind: PageZero}, {Kind: PageFull, Hash: PageHash{9: 1}}}}
	for n := range uint64(30) {
		rec.refs = append(rec.refs, fakePage(n*n))
	}
	return rec
}

func FuzzPageTable(f *testing.F) {
	var seeds []*[]PageEntry
	for i := range uint64(5) {
		t := fakeRecording().table(newGen(i), int(i)*9, true)
		seeds = append(seeds, &t)
	}
	fuzzStructure(f, seeds, func(c *coder, t *[]PageEntry) { codePageTable(c, t, true) })
}

func FuzzInterval(f *testing.F) {
	var seeds []*Interval
	for i := range uint32(5) {
		seeds = append(seeds, fakeRecording().interval(newGen(uint64(i)), i))
	}
	fuzzStructure(f, seeds, codeInterval)
}

func FuzzObjects(f *testing.F) {
	fuzzStructure(f, []*[]Object{{}, {{ID: 1, Path: "/bin/true"}, {ID: 7, Kind: ObjectShared}}}, codeObjects)
}

func FuzzObjectPages(f *testing.F) {
	fuzzStructure(f, []*[]ObjectPage{{}, {{1, 2, fakePage(3)}, {1, 9, fakePage(4)}, {2, 0, PageRef{Kind: PageZero}}}}, codeObjectPages)
}

func FuzzPageIndex(f *testing.F) {
	fuzzStructure(f, []*[]blockIndex{{}, {{99, []pageRecord{{fakePage(1), PageSize}, {fakePage(5), 600}}}}}, codeBlockIndexes)
}

func FuzzManifest(f *testing.F) {
	b, _ := small(f)
	zr, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		f.Fatal(err)
	}
	m, err := zr.Open(nameManifest)
	if err != nil {
		f.Fatal(err)
	}
	doc, err := io.ReadAll(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(doc)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeManifest(t.Context(), b)
		if err != nil {
			return
		}
		doc, err := encodeManifest(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeManifest(t.Context(), doc)
		if err != nil || again.Manifest.ID != m.Manifest.ID || len(again.Members) != len(m.Members) {
			t.Errorf("written again: %v", err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	b, rec := small(f)
	f.Add(b)
	f.Add(deltaRecording(f))
	f.Add(family(f, 10))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := OpenReader(bytes.NewReader(b), int64(len(b)), "fuzz")
		if err == nil {
			_ = rec.compare(r) // reads all of it; another recording's content differs, and may
			r.Sizes()
			return
		}
		if !isClear(err) {
			t.Errorf("error names nothing: %v", err)
		}
	})
}
