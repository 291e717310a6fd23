package replay

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"vplay/checkpoint"
	"vplay/replay/mem"
)

// fatten writes a recording whose intervals hold, besides all that they need, pages
// that nobody uses, when junk is set. It returns its path; its mode is 0640.
func fatten(t *testing.T, level checkpoint.Level, junk bool) string {
	t.Helper()
	old := open(t, filepath.Join("..", "cmd", "vplayd", "demo", "weather.vplay"))
	path := filepath.Join(t.TempDir(), "fat.vplay")
	o := checkpoint.RewriteOptions{WriterOptions: checkpoint.WriterOptions{Level: level}}
	o.Interval = func(w *checkpoint.Writer, iv *checkpoint.Interval) (*checkpoint.Interval, error) {
		iv.Slim = false
		if !junk {
			return iv, nil
		}
		const at = 0x10000000000 // nothing is mapped there
		for i := range uint64(64) {
			page := make([]byte, checkpoint.PageSize)
			r := rand.New(rand.NewPCG(i, 1))
			for i := range page {
				page[i] = byte(r.Uint32())
			}
			ref, err := w.AddPage(page)
			if err != nil {
				return nil, err
			}
			iv.Pages = append(iv.Pages, checkpoint.PageEntry{Addr: at + i*checkpoint.PageSize, Ref: ref})
		}
		return iv, nil
	}
	if err := checkpoint.Rewrite(old, path, o); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	return path
}

// open opens a recording for the length of a test.
func open(t *testing.T, path string) *checkpoint.Recording {
	t.Helper()
	r, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// notReplaced holds that slimming has found, with err, that what it made does not replay, and left the file as it was.
func notReplaced(t *testing.T, err error, path string, was []byte) {
	t.Helper()
	var bad *SlimCheckError
	if !errors.As(err, &bad) || !Unmatched(err) {
		t.Errorf("slimming gives %v", err)
	}
	same(t, path, was)
}

// same checks that a file has its content still, and that nothing is beside it.
func same(t *testing.T, path string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file is not what it was (%v)", err)
	}
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 1 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSlim holds that a file is replaced by a smaller one that replays, with the
// permissions of the old one and through a symbolic link, and that who has the
// old one open goes on reading it.
func TestSlim(t *testing.T) {
	t.Parallel()
	path := fatten(t, checkpoint.LevelFast, true)
	link := filepath.Join(t.TempDir(), "link.vplay")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	reader := open(t, path)
	res, err := Slim(t.Context(), link, SlimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Slimmed != 2 || res.Left != 0 || res.After >= res.Before || res.Larger != 0 {
		t.Errorf("slimming says %+v", res)
	}
	st, err := os.Lstat(path)
	if err != nil || st.Size() != res.After || st.Mode() != 0o640 {
		t.Errorf("the file is %v with %d bytes, %v", st.Mode(), st.Size(), err)
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	for _, r := range []*checkpoint.Recording{reader, open(t, path)} {
		s, err := NewSession(r)
		if err != nil {
			t.Fatal(err)
		}
		results, err := Verify(t.Context(), s, VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range results {
			if v.Err != nil {
				t.Error(v.Err)
			}
		}
		s.Close()
	}
}

// TestSlimKeepsTheFile holds that the old file stays where slimming does no better.
func TestSlimKeepsTheFile(t *testing.T) {
	t.Parallel()
	t.Run("larger", func(t *testing.T) {
		t.Parallel()
		path := fatten(t, checkpoint.LevelSmall, false)
		was := content(t, path)
		res, err := Slim(t.Context(), path, SlimOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if res.Larger <= res.Before || res.After != res.Before || res.Slimmed != 0 || res.Left != 2 {
			t.Errorf("slimming says %+v", res)
		}
		same(t, path, was)
	})
	t.Run("does not replay", func(t *testing.T) {
		t.Parallel()
		path := fatten(t, checkpoint.LevelFast, true)
		was := content(t, path)
		err := withSlimmer(t, path, SlimOptions{}, func(sl *slimmer) error {
			for _, n := range sl.touched {
				clear(n.pages) // as if nothing had been touched
			}
			_, err := sl.write(t.Context())
			return err
		})
		notReplaced(t, err, path, was)
	})
	for what, checking := range map[string]bool{"stopped while it replays": false, "stopped while it checks": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			path := fatten(t, checkpoint.LevelFast, true)
			was := content(t, path)
			ctx, cancel := context.WithCancel(t.Context())
			_, err := Slim(ctx, path, SlimOptions{Progress: func(p SlimProgress) {
				if p.Checking == checking {
					cancel()
				}
			}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("it gives %v", err)
			}
			same(t, path, was)
		})
	}
	t.Run("out of time", func(t *testing.T) {
		t.Parallel()
		path := fatten(t, checkpoint.LevelFast, true)
		was := content(t, path)
		res, err := Slim(t.Context(), path, SlimOptions{Time: 1})
		if err != nil || !res.OutOfTime || res.Slimmed != 0 || res.Left != 2 {
			t.Errorf("slimming says %+v, %v", res, err)
		}
		same(t, path, was)
	})
}

// withSlimmer runs f with a slimmer that knows what the intervals need.
func withSlimmer(t *testing.T, path string, o SlimOptions, f func(*slimmer) error) error {
	t.Helper()
	rec := open(t, path)
	was, err := rec.Stat()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSession(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sl := &slimmer{s: s, o: o, path: path, was: was, touched: map[uint32]*touched{}, bytes: map[uint32]*neededBytes{}}
	if err := sl.replay(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f(sl)
}

// TestSlimReplacedFile holds that a recording that was moved or deleted meanwhile
// does not come back, and that one that took its place stays.
func TestSlimReplacedFile(t *testing.T) {
	t.Parallel()
	for what, other := range map[string]string{"moved": "", "replaced": "another"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			path := fatten(t, checkpoint.LevelFast, true)
			was, moved := content(t, path), filepath.Join(t.TempDir(), "moved.vplay")
			var once sync.Once
			_, err := Slim(t.Context(), path, SlimOptions{Progress: func(p SlimProgress) {
				if !p.Checking {
					return
				}
				once.Do(func() {
					err := os.Rename(path, moved)
					if err == nil && other != "" {
						err = os.WriteFile(path, []byte(other), 0o600)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}})
			if !errors.Is(err, ErrReplaced) {
				t.Errorf("slimming gives %v", err)
			}
			switch got, err := os.ReadFile(path); {
			case other == "" && !errors.Is(err, os.ErrNotExist), string(got) != other:
				t.Errorf("there are %d bytes, %v", len(got), err)
			}
			same(t, moved, was)
		})
	}
}

// TestTouchedCharge: what short intervals touch is charged as what it takes, of which a recording may have thousands.
func TestTouchedCharge(t *testing.T) {
	b := checkpoint.NewBudget(t.Context(), 1<<20)
	var all []*touched
	for range 200 {
		n := newTouched(b)
		for i := range uint64(50) {
			n.addPage(i * mem.PageSize)
		}
		if all = append(all, n); n.err != nil {
			t.Fatalf("interval %d: %v", len(all), n.err)
		}
	}
	n := newTouched(b)
	for i := range uint64(1 << 16) {
		n.addPage(i * mem.PageSize)
	}
	if n.err == nil {
		t.Error("a long one is charged nothing")
	}
	runtime.KeepAlive(all)
}
