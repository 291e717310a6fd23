package main

import (
	"context"
	"fmt"
	"io"
	"sort"
	"strings"

	"vplay/checkpoint"
	"vplay/loader"
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

// pageTable tells of pages without loading them.
type pageTable struct {
	g     *target
	table []checkpoint.PageEntry
}

func (g *target) pageTable() (*pageTable, error) {
	src, err := loader.NewSource(g.s.Rec, g.t.Position().Interval)
	if err != nil {
		return nil, err
	}
	return &pageTable{g, src.Table()}, nil
}

// of returns the state of the page at a, which lies in r.
func (t *pageTable) of(r *mem.Region, a uint64) pageState {
	if t.g.mem().IsWritten(a) {
		return pageWritten
	}
	if !r.Fresh {
		i := sort.Search(len(t.table), func(i int) bool { return t.table[i].Addr >= a })
		if i < len(t.table) && t.table[i].Addr == a {
			return ofRecord[t.table[i].Ref.Kind]
		}
	}
	if r.Object == 0 || r.Zero {
		return pageZero
	}
	if ref, ok := t.g.s.Rec.ObjectPage(r.Object, (a-r.Start+r.Offset)/mem.PageSize); ok {
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
	if err := g.leaveFinal(ctx); err != nil {
		return err
	}
	t, err := g.pageTable()
	if err != nil {
		return err
	}
	if len(args) > 0 {
		return t.one(args[0], out)
	}
	maps := g.maps()
	for i, r := range g.mem().Regions() {
		if isDone(ctx) {
			return nil
		}
		var n [pageStates]int
		pages := (r.End - r.Start) / mem.PageSize
		for p := range min(pages, maxListedPages) {
			n[t.of(&r, r.Start+p*mem.PageSize)]++
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

// one prints what is known of the page at a place.
func (t *pageTable) one(where string, out io.Writer) error {
	at, err := t.g.addresses(where)
	if err != nil {
		return err
	}
	a := at[0] &^ (mem.PageSize - 1)
	r, ok := t.g.mem().Find(a)
	if !ok {
		fmt.Fprintf(out, "nothing is mapped at %#x\n", at[0])
		return nil
	}
	name := r.Name
	if o, ok := t.g.s.Rec.Object(r.Object); ok && name == "" {
		name = o.Path
	}
	if name == "" {
		name = "anonymous memory"
	}
	fmt.Fprintf(out, "the page at %#x, of %s at %#x-%#x: %s\n", a, printable(name), r.Start, r.End, pageWords[t.of(&r, a)])
	return nil
}
