package bench

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"vplay/loader"
	"vplay/replay/analysis/export"
	"vplay/tests/internal/tool"
)

// TestExportFigures measures package export on the recording that VPLAY_EXPORT names: what
// replay/analysis/export/RATIONALE.md has. VPLAY_EXPORT_TO names formats.
func TestExportFigures(t *testing.T) {
	path := os.Getenv("VPLAY_EXPORT")
	if path == "" {
		return // it takes minutes
	}
	for _, f := range export.Formats {
		if only := os.Getenv("VPLAY_EXPORT_TO"); only != "" && !strings.Contains(only, f.Name) {
			continue
		}
		s := tool.OpenSession(t, path)
		n := &counter{}
		began := time.Now()
		r, err := f.Write(context.Background(), s, export.Options{PID: s.Rec.Processes()[0].PID, Symbols: loader.NewSymbols(nil, true).Of(s.Rec)}, n)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began).Seconds()
		t.Logf("%-10s %8.2f s  %8.1f M insn/s  %12d bytes", f.Name, took, float64(r.Instructions)/1e6/took, n.n)
	}
}

// counter counts what is written.
type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) { c.n += int64(len(b)); return len(b), nil }

var _ io.Writer = (*counter)(nil)
