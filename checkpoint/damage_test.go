package checkpoint

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// small returns a recording in memory and what it must hold.
func small(t testing.TB) ([]byte, *recording) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.vplay")
	rec := writeRandom(t, path, 3, 3, 2)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b, rec
}

// isClear reports whether an error is one that names what is wrong.
func isClear(err error) bool {
	var format *FormatError
	var version *VersionError
	return errors.As(err, &format) && format.What != "" || errors.As(err, &version) || errors.Is(err, ErrNotRecording)
}

// exactOrClear opens b and demands the exact content or a clear error. It
// reports whether the content was exact.
func (rec *recording) exactOrClear(t testing.TB, b []byte, what string, at int) bool {
	t.Helper()
	r, err := OpenReader(bytes.NewReader(b), int64(len(b)), "small.vplay")
	if err == nil {
		err = rec.compare(r)
	}
	if err != nil && !isClear(err) {
		t.Fatalf("%s at %d of %d: %v", what, at, len(b), err)
	}
	return err == nil
}

func TestEveryFlippedByte(t *testing.T) {
	b, rec := small(t)
	exact := 0
	for i := range b {
		flip := byte(1) << (i % 8)
		if i%9 == 0 {
			flip = 0xff
		}
		b[i] ^= flip
		if rec.exactOrClear(t, b, "flip", i) {
			exact++
		}
		b[i] ^= flip
	}
	t.Logf("%d cases, %d of them without effect (zip fields that carry nothing)", len(b), exact)
	if len(b) < 2000 || exact > len(b)/10 {
		t.Errorf("%d of %d flips had no effect", exact, len(b))
	}
}

func TestEveryCut(t *testing.T) {
	b, rec := small(t)
	for n := range b {
		if rec.exactOrClear(t, slices.Clip(b[:n]), "cut", n) {
			t.Fatalf("cut at %d of %d opened", n, len(b))
		}
	}
}

func TestCutFileSaysSo(t *testing.T) {
	b, _ := small(t)
	_, err := OpenReader(bytes.NewReader(b[:len(b)/2]), int64(len(b)/2), "half.vplay")
	if err == nil || !strings.Contains(err.Error(), "was cut") || !strings.Contains(err.Error(), "half.vplay") {
		t.Errorf("got %v", err)
	}
}

// place returns where a member's bytes are in b.
func place(t testing.TB, b []byte, name string) (from, to int64) {
	t.Helper()
	r, err := OpenReader(bytes.NewReader(b), int64(len(b)), "x")
	if err != nil {
		t.Fatal(err)
	}
	off, err := r.entries[name].DataOffset()
	if err != nil {
		t.Fatal(err)
	}
	return off, off + int64(r.entries[name].CompressedSize64)
}

func TestDamagedPartsSpareTheRest(t *testing.T) {
	tests := []struct {
		member string
		spared []uint32 // intervals that can still be read
		tables []uint32 // page tables that can still be read
	}{
		{nameHead(1), []uint32{2, 3, 4}, []uint32{3, 4}},
		{nameHead(2), []uint32{1, 3, 4}, []uint32{1, 3, 4}},
		{nameLog(1), []uint32{2, 3, 4}, []uint32{1, 2, 3, 4}},
		{nameHead(3), []uint32{1, 2, 4}, []uint32{1, 2}},
		{nameFinal, []uint32{1, 2, 3, 4}, []uint32{1, 2, 3, 4}},
		{namePack(0), []uint32{1, 2, 3, 4}, []uint32{1, 2, 3, 4}},
	}
	whole := deltaRecording(t)
	for _, tt := range tests {
		t.Run(tt.member, func(t *testing.T) {
			b := slices.Clone(whole)
			from, to := place(t, b, tt.member)
			b[(from+to)/2] ^= 4
			r, err := OpenReader(bytes.NewReader(b), int64(len(b)), "x")
			if err != nil {
				t.Fatal(err)
			}
			for id := uint32(1); id <= 4; id++ {
				_, err := r.Interval(id)
				demand(t, err, slices.Contains(tt.spared, id), tt.member)
				_, err = r.PageTable(id)
				demand(t, err, slices.Contains(tt.tables, id), tt.member)
			}
			_, err = r.Final()
			demand(t, err, tt.member != nameFinal, tt.member)
			if errs := r.Check(0); len(errs) != 1 {
				t.Errorf("Check found %v", errs)
			} else {
				demand(t, errs[0], false, tt.member)
			}
			var page [PageSize]byte
			_, err = r.Page(r.store.records[0].ref, &page)
			demand(t, err, tt.member != namePack(0), tt.member)
		})
	}
}

// demand checks that err is nil, or else names the damaged member.
func demand(t *testing.T, err error, ok bool, member string) {
	t.Helper()
	var format *FormatError
	switch {
	case ok && err != nil:
		t.Errorf("a part that is whole: %v", err)
	case !ok && (!errors.As(err, &format) || format.Member != member):
		t.Errorf("want an error that names %s, got %v", member, err)
	}
}

// deltaRecording has intervals 1, 2 (delta on 1), 3, 4 (delta on 3).
func deltaRecording(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "delta.vplay")
	w, err := Create(path, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var page [PageSize]byte
	page[1] = 1
	ref, err := w.AddPage(page[:])
	if err != nil {
		t.Fatal(err)
	}
	g := newGen(1)
	for id := uint32(1); id <= 4; id++ {
		iv := &Interval{ID: id, PID: 1, Delta: id%2 == 0, Pages: []PageEntry{{uint64(id) * PageSize, ref}}, Events: g.events(20)}
		if id == 3 {
			iv.Image = 1
		}
		if id == 4 {
			iv.Image = 1
		}
		if err := w.AddInterval(iv); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.SetFinal(&Final{Pages: []PageEntry{{PageSize, ref}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(Manifest{}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCheckWhole(t *testing.T) {
	for _, b := range [][]byte{deltaRecording(t), must(os.ReadFile(filepath.Join("testdata", "v1.vplay")))} {
		r := must(OpenReader(bytes.NewReader(b), int64(len(b)), "x"))
		if errs := r.Check(0); len(errs) != 0 {
			t.Errorf("found %v", errs)
		}
	}
}

func TestDamagedIndex(t *testing.T) {
	b := deltaRecording(t)
	from, to := place(t, b, nameIndex(0))
	b[(from+to)/2] ^= 1
	r, err := OpenReader(bytes.NewReader(b), int64(len(b)), "x")
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Interval(1)
	if err == nil || !strings.Contains(err.Error(), nameIndex(0)) {
		t.Errorf("got %v", err)
	}
}

func TestNotRecording(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"empty": "", "text": "hello\n", "elf": "\x7fELF", "zip": "PK\x05\x06" + strings.Repeat("\x00", 18)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, ErrNotRecording) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(dir); !errors.Is(err, ErrNotRecording) {
		t.Errorf("directory: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}
