package replay

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"testing"

	"vplay/checkpoint"
)

// demoTimeline opens the recording of the demonstration.
func demoTimeline(t testing.TB) *Timeline {
	t.Helper()
	return openTimeline(t, "../cmd/vplayd/demo/weather.vplay")
}

// rewritten returns the demonstration's recording with the same run and another file:
// slimming writes it anew like that.
func rewritten(t *testing.T) string {
	t.Helper()
	rec, err := checkpoint.Open("../cmd/vplayd/demo/weather.vplay")
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	path := filepath.Join(t.TempDir(), "again.vplay")
	o := checkpoint.RewriteOptions{Manifest: func(m *checkpoint.Manifest) { m.Notes = append(m.Notes, "slimmed") }}
	if err := checkpoint.Rewrite(rec, path, o); err != nil {
		t.Fatal(err)
	}
	return path
}

func openTimeline(t testing.TB, path string) *Timeline {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSession(rec)
	if err != nil {
		t.Fatal(err)
	}
	tl, err := NewTimeline(s, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tl.Close()
		s.Close()
		rec.Close()
	})
	return tl
}

// TestIndexFile reads an index back, and refuses what is not one.
func TestIndexFile(t *testing.T) {
	tl := demoTimeline(t)
	if err := tl.BuildIndex(context.Background()); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	written, err := tl.WriteIndex(&file)
	if err != nil || written != len(tl.Intervals()) {
		t.Fatalf("%d intervals of %d, %v", written, len(tl.Intervals()), err)
	}
	other := demoTimeline(t)
	if read, err := other.ReadIndex(bytes.NewReader(file.Bytes())); err != nil || read != written {
		t.Fatalf("read %d of %d intervals, %v", read, written, err)
	}
	if a, b := tl.Segments(), other.Segments(); !reflect.DeepEqual(a, b) || other.Progress() != tl.Progress() {
		t.Errorf("%+v written, %+v read", tl.Progress(), other.Progress())
	}
	for _, id := range tl.Intervals() {
		a, _ := tl.index.endOf(id)
		if b, ok := other.index.endOf(id); !ok || a != b {
			t.Errorf("interval %d ends at %s, and %s was read", id, a, b)
		}
	}
	again := openTimeline(t, rewritten(t))
	if read, err := again.ReadIndex(bytes.NewReader(file.Bytes())); err != nil || read != written || !reflect.DeepEqual(tl.Segments(), again.Segments()) {
		t.Errorf("written anew: read %d of %d intervals, %v", read, written, err)
	}
	damaged := demoTimeline(t)
	for i := range file.Len() {
		b := bytes.Clone(file.Bytes())
		b[i] ^= 1 << (i % 8)
		if _, err := damaged.ReadIndex(bytes.NewReader(b)); err == nil {
			t.Fatalf("bit %d of byte %d changed, and it was read", i%8, i)
		} else if (i < 40) != errors.Is(err, ErrOtherIndex) {
			t.Fatalf("byte %d: %v", i, err)
		}
		if _, err := damaged.ReadIndex(bytes.NewReader(file.Bytes()[:i])); err == nil {
			t.Fatalf("cut at %d, and it was read", i)
		}
	}
	if p := damaged.Progress(); p.Intervals != 0 {
		t.Errorf("damaged files left %+v", p)
	}
}

// TestIndexFileNothingTouched reads back segments that read or wrote nothing, behind others and
// at first: they are as they were.
func TestIndexFileNothingTouched(t *testing.T) {
	page := sorted(map[uint64]struct{}{0x1000: {}})
	none := sorted(map[uint64]struct{}{})
	w, in := indexWriter{}, []segment{{read: none, written: none}, {read: page, written: page}, {read: none, written: page}, {read: page, written: none}}
	for i := range in {
		w.segment(&in[i])
	}
	r := indexReader{b: w.b}
	for i := range in {
		if out := r.segment(); !reflect.DeepEqual(out.read, in[i].read) || !reflect.DeepEqual(out.written, in[i].written) {
			t.Errorf("segment %d: %#v and %#v written, %#v and %#v read", i, in[i].read, in[i].written, out.read, out.written)
		}
	}
	if r.err != nil || len(r.b) > 0 {
		t.Errorf("%d bytes left, %v", len(r.b), r.err)
	}
}

// FuzzIndexBody reads bodies whose check is right: no panic, and what is accepted
// has no holes.
func FuzzIndexBody(f *testing.F) {
	tl := demoTimeline(f)
	if err := tl.BuildIndex(context.Background()); err != nil {
		f.Fatal(err)
	}
	body, _ := tl.index.encodeIndex()
	f.Add(body)
	f.Add([]byte{1, 0, 0, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		known, err := tl.decodeIndex(body)
		if err != nil {
			return
		}
		for id, l := range known {
			at := checkpoint.Position{Interval: id}
			for _, s := range l.segments {
				if s.from != at || s.to.Compare(s.from) < 0 {
					t.Fatalf("a hole at %s", s.from)
				}
				at = s.to
			}
		}
	})
}
