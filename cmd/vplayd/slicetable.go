package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/debug/text"
)

// The table of vplayd slice --table: of each recording how far the crash is from what caused it, and
// how much of that is in its slices.

// sliceLine is a line of the table.
type sliceLine struct {
	File         string               `json:"file"`
	Of           string               `json:"of,omitempty"` // what the program died of
	Crash        *checkpoint.Position `json:"crash,omitempty"`
	Instructions uint64               `json:"instructions"` // recorded, of the process
	Origin       *debug.SliceRow      `json:"origin,omitempty"`
	Window       uint64               `json:"window"` // instructions from Origin to Crash
	Slice        *sliceSize           `json:"slice,omitempty"`
	Values       *sliceSize           `json:"values,omitempty"`
	Error        string               `json:"error,omitempty"`
}

// sliceSize is how large a slice is.
type sliceSize struct {
	Rows         int     `json:"rows"`
	Instructions uint64  `json:"instructions"`
	Share        float64 `json:"share"` // of the window
}

// sliceTable prints a line for each recording. The error is that of the first recording that has one.
func sliceTable(c *cobra.Command, paths []string, f *sliceFlags) error {
	symbols, err := f.symbols.open()
	if err != nil {
		return err
	}
	var recs []*checkpoint.Recording
	defer func() {
		for _, rec := range recs {
			rec.Close()
		}
	}()
	var access sandbox.Access
	for _, path := range paths {
		rec, _, err := openRecording(c, []string{path})
		if err != nil {
			return err
		}
		recs = append(recs, rec)
		access.Read = append(access.Read, f.symbols.access(symbols, rec).Read...)
	}
	e, err := chooseEngine(c)
	if err != nil {
		return err
	}
	freeHeap()
	if err := enterSandbox(c, access); err != nil {
		return err
	}
	t := newSliceTable(c.OutOrStdout(), f.asJSON)
	var first error
	for _, rec := range recs {
		l, err := sliceLineOf(c, rec, symbols, e, f)
		if err := c.Context().Err(); err != nil {
			return err
		}
		if err != nil {
			l.Error = err.Error()
			if first == nil {
				first = exitError{codeOf(err)}
			}
		}
		if err := t.add(l); err != nil {
			return err
		}
	}
	if err := t.end(); err != nil {
		return err
	}
	return first
}

// sliceLineOf makes the line of a recording, as far as it can be made.
func sliceLineOf(c *cobra.Command, rec *checkpoint.Recording, symbols *image.Symbols, e engine, f *sliceFlags) (*sliceLine, error) {
	l := &sliceLine{File: rec.File()}
	pid, err := processOf(c, rec)
	if err != nil {
		return l, err
	}
	s, err := replay.NewSession(rec)
	if err != nil {
		return l, err
	}
	defer s.Close()
	e.use(s)
	progress := newProgress(false)
	defer progress.done()
	counts, err := countIntervals(c.Context(), s, intervalsOf(rec, pid))
	if err != nil {
		return l, err
	}
	for _, n := range counts {
		l.Instructions += n.n
	}
	d, err := debug.OpenProcess(s, pid, f.budget(), symbols.Of(rec))
	if err != nil {
		return l, err
	}
	defer d.Close()
	g, err := d.NewCursor()
	if err != nil {
		return l, err
	}
	defer g.Close()
	of := func(name string, q debug.SliceQuery) (*debug.Slice, error) {
		q.Most = maxSliceRows
		q.Progress = func(s string) {
			progress.show("%s: %s: %s", filepath.Base(l.File), name, s)
		}
		a, err := g.Slice(c.Context(), q)
		if err != nil {
			return nil, sliceError(err)
		}
		return a, nil
	}
	origin, err := of("origin", debug.SliceQuery{Copies: true})
	if err != nil {
		return l, err
	}
	all, err := of("slice", debug.SliceQuery{})
	if err != nil {
		return l, err
	}
	values, err := of("slice of values", debug.SliceQuery{Values: true})
	if err != nil {
		return l, err
	}
	l.fill(counts, origin, all, values)
	return l, nil
}

// intervalCount is how many instructions an interval has.
type intervalCount struct {
	id uint32
	n  uint64
}

// countIntervals replays intervals, and returns their lengths in their order.
func countIntervals(ctx context.Context, s *replay.Session, ids []uint32) ([]intervalCount, error) {
	results, err := replay.Verify(ctx, s, replay.VerifyOptions{Intervals: ids})
	if err != nil {
		return nil, err
	}
	out := make([]intervalCount, 0, len(results))
	for i := range results {
		if err := results[i].Err; err != nil {
			return nil, err
		}
		out = append(out, intervalCount{results[i].Interval, results[i].Instructions})
	}
	return out, nil
}

// fill fills in what the slices say.
func (l *sliceLine) fill(counts []intervalCount, origin, all, values *debug.Slice) {
	l.Of = all.What
	crash := origin.Rows[0].Position
	last := originRow(origin.Rows)
	l.Crash, l.Origin = &crash, last
	l.Window = before(counts, crash) - min(before(counts, last.Position), before(counts, crash))
	size := func(s *debug.Slice) *sliceSize {
		return &sliceSize{len(s.Rows) - 1 + s.Left, s.Instructions, float64(s.Instructions) / float64(max(l.Window, 1))}
	}
	l.Slice, l.Values = size(all), size(values)
}

// originRow returns the last row that has a moment: what was there when the recording began has none, if it was copied
// from there.
func originRow(rows []debug.SliceRow) *debug.SliceRow {
	for i := len(rows) - 1; i > 0; i-- {
		if rows[i].Kind != "start" {
			return &rows[i]
		}
	}
	return &rows[len(rows)-1]
}

// before returns how many instructions are before a position.
func before(counts []intervalCount, p checkpoint.Position) (n uint64) {
	for _, c := range counts {
		if c.id < p.Interval {
			n += c.n
		}
	}
	return n + p.Instr
}

// tableOfSlices writes lines, as text or JSON.
type tableOfSlices struct {
	out    io.Writer
	w      *tabwriter.Writer
	asJSON bool
}

func newSliceTable(out io.Writer, asJSON bool) *tableOfSlices {
	t := &tableOfSlices{out, tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight), asJSON}
	if !asJSON {
		fmt.Fprintln(t.w, "recording\tinstructions\twindow\trows\tin slice\tof window\trows of values\tin slice\tof window\t  the origin")
	}
	return t
}

func (t *tableOfSlices) add(l *sliceLine) error {
	if t.asJSON {
		return encodeLine(t.out, l)
	}
	name := text.Printable(filepath.Base(l.File))
	if l.Error != "" {
		_, err := fmt.Fprintf(t.w, "%s\t%s\t\t\t\t\t\t\t\t  %s\n", name, text.Count(l.Instructions), text.Printable(l.Error))
		return err
	}
	_, err := fmt.Fprintf(t.w, "%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\t%s\t  %s\n", name, text.Count(l.Instructions), text.Count(l.Window),
		l.Slice.Rows, text.Count(l.Slice.Instructions), share(l.Slice.Share), l.Values.Rows, text.Count(l.Values.Instructions), share(l.Values.Share), text.Printable(originText(l.Origin)))
	return err
}

func (t *tableOfSlices) end() error { return t.w.Flush() }

// share writes a share of a whole.
func share(s float64) string { return fmt.Sprintf("%.3g%%", 100*s) }

// originText names an origin.
func originText(r *debug.SliceRow) string {
	if r.At == nil {
		return r.Position.String() + " " + r.Source
	}
	return r.Position.String() + " " + r.At.String() + " " + r.At.Source()
}
