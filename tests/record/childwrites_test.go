//go:build linux && amd64

package record

import (
	"strings"
	"testing"

	"vplay/checkpoint"
)

// TestChildWritesMappedFile: what a child writes to a file that the
// program maps is in the log, or a note says that it is not.
func TestChildWritesMappedFile(t *testing.T) {
	prog := compile(t, "childwrites")
	for _, how := range []string{"read", "private", "later"} {
		t.Run(how, func(t *testing.T) {
			r := run{args: []string{prog, how}, dir: t.TempDir()}
			want := r.native(t)
			got, res := r.recorded(t)
			same(t, got, want)
			rec, err := checkpoint.Open(res.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer rec.Close()
			notes := strings.Join(rec.Manifest().Notes, "\n")
			if how != "read" {
				verify(t, res.Path)
			} else if !strings.Contains(notes, "was changed by another process") {
				t.Errorf("notes: %s", notes)
			}
		})
	}
}
