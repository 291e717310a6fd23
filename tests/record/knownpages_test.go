//go:build linux && amd64

package record

import (
	"os"
	"path/filepath"
	"testing"
)

// TestKnownPages: the second process that runs a program gets the pages of its file that the
// recording has, and one that runs it after the file was written to, in place, gets what is there by then.
func TestKnownPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, v := range []string{"one", "two"} {
		if err := os.Rename(compile(t, "version", `-DVERSION="`+v+`"`), filepath.Join(dir, v)); err != nil {
			t.Fatal(err)
		}
	}
	// A file that was changed just now might change again without its time telling.
	const script = "sleep 2.5; ./one; ./one; cat two >one; sleep 2.5; ./one; ./one"
	r := run{args: installed(t, []string{"sh", "-c", script}), dir: dir}
	got, res := r.recorded(t)
	same(t, got, outcome{out: "one\none\ntwo\ntwo\n"})
	if n := res.Stats.KnownPages; n < 50 {
		t.Errorf("%d pages were known", n)
	}
	t.Log(res.Stats.KnownPages, "pages known;", verify(t, res.Path))
}
