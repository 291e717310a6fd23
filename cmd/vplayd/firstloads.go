package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/analysis/windows"
	"vplay/replay/debug/text"
)

// What vplayd windows --first-loads prints: logs of first loads beside what this file takes.

// firstLoadsReport is what is printed.
type firstLoadsReport struct {
	File string `json:"file"`
	PID  int32  `json:"pid"`
	*windows.FirstLoads
	Sizes checkpoint.Sizes `json:"sizes"` // of the file, of all its processes
}

// firstLoads measures a process.
func firstLoads(ctx context.Context, s *replay.Session, path string, pid int32, progress func(uint64)) (*firstLoadsReport, error) {
	x, err := windows.MeasureFirstLoads(ctx, s, intervalsOf(s.Rec, pid), progress)
	if err != nil {
		return nil, err
	}
	return &firstLoadsReport{File: path, PID: pid, FirstLoads: x, Sizes: s.Rec.Sizes()}, nil
}

// write writes the report in the form asked for.
func (r *firstLoadsReport) write(out io.Writer, asJSON bool) error {
	if asJSON {
		return encodeLine(out, r)
	}
	fmt.Fprintf(out, "%s: %s instructions in %s, %s loads\n\n", text.Printable(filepath.Base(r.File)), text.Count(r.Instructions), text.Plural(r.Intervals, "interval"), text.Count(r.Loads))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "first loads of\tloads\tin dictionary\tBugNet's bits\tcompressed\tno dictionary\tcompressed\t")
	for _, l := range []struct {
		name string
		log  *windows.LoadLog
	}{{"each interval", &r.Each}, {"the recording", &r.Whole}} {
		fmt.Fprintf(w, "%s\t%s\t%.1f%%\t%s\t%s\t%s\t%s\t\n", l.name, text.Count(l.log.Loads), 100*float64(l.log.InDictionary)/float64(max(l.log.Values, 1)),
			size(l.log.BugNet), size(l.log.BugNetStored), size(l.log.Plain), size(l.log.PlainStored))
	}
	fmt.Fprintf(w, "code\t\t\t\t\t%s\t%s\t\n", size(r.Code), size(r.CodeStored))
	fmt.Fprintf(w, "pages, for replay alone\t\t\t\t\t%s\t%s\t\n", size(r.Pages), size(r.PagesStored))
	if err := w.Flush(); err != nil {
		return err
	}
	z := &r.Sizes
	_, err := fmt.Fprintf(out, "\nthis file: %s of pages, %s of their indexes and lists, %s of other parts, as it is on disk (intervals: %d fat, %d slim)\n",
		size(z.Pages), size(z.Index+z.Objects), size(z.File-z.Pages-z.Index-z.Objects), z.Fat, z.Slim)
	return err
}
