package replay

import (
	"maps"
	"path/filepath"
	"testing"

	"vplay/checkpoint"
	"vplay/replay/mem"
)

// lastInterval writes a recording with the demo's last interval alone, which is short.
func lastInterval(t *testing.T) string {
	t.Helper()
	old := open(t, fatten(t, checkpoint.LevelFast, true))
	path := filepath.Join(t.TempDir(), "last.vplay")
	o := checkpoint.RewriteOptions{Interval: func(_ *checkpoint.Writer, iv *checkpoint.Interval) (*checkpoint.Interval, error) {
		if iv.ID == 0 {
			return nil, nil
		}
		return iv, nil
	}}
	if err := checkpoint.Rewrite(old, path, o); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSlimFirstLoads slims a recording to first loads: it is less than half of a slim one, replays exactly, says
// what it is, and a byte that nothing needed is not known. To slim it again changes nothing.
func TestSlimFirstLoads(t *testing.T) {
	t.Parallel()
	path := lastInterval(t)
	plain, err := Slim(t.Context(), path, SlimOptions{})
	if err != nil || plain.Slimmed != 1 {
		t.Fatalf("%+v, %v", plain, err)
	}
	res, err := Slim(t.Context(), path, SlimOptions{FirstLoads: true})
	if err != nil {
		t.Fatal(err)
	}
	if res.Slimmed != 1 || res.Left != 0 || 2*res.After > plain.After {
		t.Errorf("slimming says %+v, and of pages %+v", res, plain)
	}
	rec := open(t, path)
	if v, i := rec.Manifest().Version, rec.Intervals()[0]; v != 3 || !i.Slim || !i.FirstLoads {
		t.Errorf("it is of version %d, with %+v", v, i)
	}
	s, err := NewSession(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	results, err := Verify(t.Context(), s, VerifyOptions{})
	if err != nil || results[0].Err != nil {
		t.Error(err, results[0].Err)
	}
	known, missing := comparePartial(t, s, rec.Intervals()[0].ID)
	if known < 100 || missing < 10_000 {
		t.Errorf("partial pages have %d bytes and lack %d", known, missing)
	}
	was := content(t, path)
	for _, o := range []SlimOptions{{FirstLoads: true}, {}} {
		if res, err := Slim(t.Context(), path, o); err != nil || res.Slimmed != 0 || res.Left != 0 {
			t.Errorf("slimming again gives %+v, %v", res, err)
		}
	}
	same(t, path, was)
}

// comparePartial reads each byte of the partial pages that an interval begins with: it is there where the
// file has it, and nowhere else. It returns how many are and are not.
func comparePartial(t *testing.T, s *Session, id uint32) (known, missing int) {
	t.Helper()
	m, err := s.Machine(id)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for r := range m.Mem.AddressMap().From(0) {
		for a := r.Start; a < r.End && r.Start < mem.MaxUser; a += mem.PageSize {
			ref, ok := m.Record(a)
			if !ok && r.Object != 0 {
				ref, ok = s.Rec.ObjectPage(r.Object, (a-r.Start+r.Offset)/mem.PageSize)
			}
			if !ok || ref.Kind != checkpoint.PagePartial {
				continue
			}
			var page mem.Page
			mask, err := s.Rec.Page(ref, &page)
			if err != nil {
				t.Fatal(err)
			}
			for i := range page {
				var b [1]byte
				n, f := m.Mem.Peek(a+uint64(i), b[:])
				switch has := (*mem.Mask)(mask).Has(i); {
				case has && n == 1 && b[0] == page[i]:
					known++
				case !has && f.Kind == mem.FaultNotCaptured:
					missing++
				default:
					t.Fatalf("the byte at %#x is in the file: %t, and reading it gives %x, %v", a+uint64(i), has, b, f)
				}
			}
		}
	}
	return known, missing
}

// TestSlimFirstLoadsProves forgets what is needed of code: the file stays as it was.
func TestSlimFirstLoadsProves(t *testing.T) {
	t.Parallel()
	path := lastInterval(t)
	was := content(t, path)
	err := withSlimmer(t, path, SlimOptions{FirstLoads: true}, func(sl *slimmer) error {
		for _, n := range sl.bytes {
			needs := mem.NewNeeds()
			maps.Insert(needs.Pages, n.needs.Pages())
			n.needs = needs.Pack()
		}
		_, err := sl.write(t.Context())
		return err
	})
	notReplaced(t, err, path, was)
}

// TestSlimJoinedApart joins an interval with itself, which does not replay: it stays apart, and nothing has failed.
func TestSlimJoinedApart(t *testing.T) {
	t.Parallel()
	err := withSlimmer(t, lastInterval(t), SlimOptions{FirstLoads: true}, func(sl *slimmer) error {
		if err := sl.learn(t.Context(), []uint32{1}); err != nil {
			return err
		}
		if len(sl.joined) != 0 || len(sl.away) != 0 || sl.learnt[1] == nil {
			t.Errorf("joined: %v, %v", sl.joined, sl.away)
		}
		clear(sl.touched)
		clear(sl.bytes)
		sl.joined[1] = []uint32{1, 1}
		err := sl.replayJoined(t.Context(), []uint32{1})
		if len(sl.failed) != 0 || len(sl.joined) != 0 || sl.touched[1] == nil || sl.bytes[1] == nil {
			t.Errorf("failed: %v, joined: %v", sl.failed, sl.joined)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
