package debug

import (
	"path/filepath"
	"strings"
	"testing"

	"vplay/checkpoint"
)

// TestWhy changes what a recording holds of pages of the crash, and asks why their
// bytes cannot be read.
func TestWhy(t *testing.T) {
	t.Parallel()
	rec, err := checkpoint.Open(filepath.Join(demo, "weather.vplay"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	for name, c := range map[string]struct {
		kind checkpoint.PageKind
		slim bool
		want string
	}{
		"redacted":       {checkpoint.PageRedacted, true, "was redacted: its page was taken out of the recording on purpose"},
		"slim":           {checkpoint.PageAbsent, true, "was not captured: the program did not use its page in the recorded time, nor write it, so slimming dropped it"},
		"fat":            {checkpoint.PageAbsent, false, "was not captured: its page was not in the program's memory"},
		"partly":         {checkpoint.PagePartial, true, "was not captured: the recording holds other bytes of its page"},
		"all of it zero": {checkpoint.PageZero, true, "is known: 0x00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "changed.vplay")
			var at uint64
			o := checkpoint.RewriteOptions{
				Interval: func(_ *checkpoint.Writer, iv *checkpoint.Interval) (*checkpoint.Interval, error) {
					iv.Slim = c.slim
					return iv, nil
				},
				Final: func(w *checkpoint.Writer, _ int32, f *checkpoint.Final) (*checkpoint.Final, error) {
					e := &f.Pages[0]
					at, e.Ref = e.Addr, checkpoint.PageRef{Kind: c.kind}
					if c.kind != checkpoint.PagePartial {
						return f, nil
					}
					var page [checkpoint.PageSize]byte
					var err error
					e.Ref, err = w.AddPartialPage(&[512]byte{511: 0x80}, page[:])
					return f, err
				},
			}
			if err := checkpoint.Rewrite(rec, path, o); err != nil {
				t.Fatal(err)
			}
			g := openFile(t, path)
			var said string
			var b [1]byte
			if _, err := g.ReadMemory(at, b[:]); err != nil {
				said = err.Error()
			} else {
				said = "is known: 0x00"
			}
			if !strings.Contains(said, c.want) {
				t.Errorf("%q is said, not %q", said, c.want)
			}
		})
	}
}
