package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"vplay/checkpoint"
	"vplay/replay/mem"
)

// pageState is what is known of a page at the present position.
type pageState uint8

const (
	pageCaptured pageState = iota
	pageZero
	pagePartly
	pageWritten // by the program or the kernel since the interval's start
	pageRedacted
	pageUnknown
	pageStates
)

var pageWords = [pageStates]string{"captured", "zero", "partly captured", "written in this interval", "redacted", "not captured"}

// ofRecord is the state of a page with a record of a kind.
var ofRecord = map[checkpoint.PageKind]pageState{
	checkpoint.PageFull: pageCaptured, checkpoint.PageZero: pageZero, checkpoint.PagePartial: pagePartly,
	checkpoint.PageRedacted: pageRedacted, checkpoint.PageAbsent: pageUnknown,
}

// stateOf returns the state of the page at a, which lies in r.
func (g *target) stateOf(r *mem.Region, a uint64) pageState {
	find := g.final.Record
	switch {
	case g.final == nil:
		if g.mem().IsWritten(a) {
			return pageWritten
		}
		find = g.cur.Machine().Record
	case g.final.Written(a):
		return pageWritten
	}
	if !r.Fresh {
		if ref, ok := find(a); ok {
			return ofRecord[ref.Kind]
		}
	}
	if r.Object == 0 || r.Zero {
		return pageZero
	}
	if ref, ok := g.s.Rec.ObjectPage(r.Object, (a-r.Start+r.Offset)/mem.PageSize); ok {
		return ofRecord[ref.Kind]
	}
	return pageUnknown
}

// maxListedPages bounds the pages of a mapping that are counted one by one: a
// program may reserve terabytes.
const maxListedPages = 1 << 20

// monitorPages prints how many pages of each mapping are known, or what is known
// of one page.
func monitorPages(ctx context.Context, g *target, args []string, out io.Writer) error {
	if len(args) > 0 {
		return g.onePage(args[0], out)
	}
	maps := g.maps()
	for i, r := range g.mem().Regions() {
		if isDone(ctx) {
			return nil
		}
		var n [pageStates]int
		pages := (r.End - r.Start) / mem.PageSize
		for p := range min(pages, maxListedPages) {
			n[g.stateOf(&r, r.Start+p*mem.PageSize)]++
		}
		var parts []string
		for s, word := range pageWords {
			if n[s] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n[s], word))
			}
		}
		if pages > maxListedPages {
			parts = append(parts, "the rest not counted")
		}
		fmt.Fprintf(out, "%#x-%#x %s %d pages: %s  %s\n", r.Start, r.End, perms(maps[i]), pages, strings.Join(parts, ", "), printable(maps[i].Name))
	}
	return nil
}

// onePage prints what is known of the page at a place.
func (g *target) onePage(where string, out io.Writer) error {
	at, err := g.addresses(where)
	if err != nil {
		return err
	}
	a := at[0] &^ (mem.PageSize - 1)
	r, ok := g.mem().Find(a)
	if !ok {
		fmt.Fprintf(out, "nothing is mapped at %#x\n", at[0])
		return nil
	}
	name := r.Name
	if o, ok := g.s.Rec.Object(r.Object); ok && name == "" {
		name = o.Path
	}
	if name == "" {
		name = "anonymous memory"
	}
	fmt.Fprintf(out, "the page at %#x, of %s at %#x-%#x: %s\n", a, printable(name), r.Start, r.End, pageWords[g.stateOf(&r, a)])
	return nil
}
