package export

import (
	"bufio"
	_ "embed"
	"encoding/xml"
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	"vplay/replay/debug/text"
)

// Flame graphs: one SVG file that needs no other. A frame's width is its share of all instructions; those it called are above it.

const (
	svgWidth  = 1200.0
	svgRow    = 16
	svgMargin = 10.0
	svgTop    = 48      // rows begin below the title
	leastPart = 0.0002  // of all instructions: a frame that is narrower is left out
	mostRects = 200_000 // a file of more would not be drawn
	charWidth = 6.6     // of the font, in pixels, about
)

//go:embed flamegraph.js
var flameScript string

// flameWriter writes the SVG.
type flameWriter struct {
	out    *bufio.Writer
	total  float64
	deep   int // rows
	rects  int
	omited int // frames that are too narrow
}

func writeFlamegraph(w *walk, out io.Writer) error {
	if err := w.count(); err != nil {
		return err
	}
	root := w.flames()
	f := &flameWriter{out: bufio.NewWriter(out), total: float64(max(root.total, 1))}
	f.measure(root, 0)
	program, _ := w.s.Rec.Process(w.o.PID)
	f.head(fmt.Sprintf("%s: %s instructions", printable(program.Program), text.Count(root.total)))
	f.frame(root, 0, 0)
	fmt.Fprintf(f.out, "</g>\n</svg>\n")
	if f.omited > 0 {
		w.note("%d frames with less than %g%% of the instructions are not drawn", f.omited, 100*leastPart)
	}
	return f.out.Flush()
}

// isDrawn reports whether a frame is wide enough.
func (f *flameWriter) isDrawn(x *flame) bool {
	return float64(x.total) >= leastPart*f.total && f.rects < mostRects
}

// measure finds out how many rows there are.
func (f *flameWriter) measure(x *flame, depth int) {
	f.deep = max(f.deep, depth+1)
	for _, c := range x.order {
		if f.isDrawn(c) {
			f.measure(c, depth+1)
		}
	}
}

func (f *flameWriter) height() int { return svgTop + svgRow*f.deep + 24 }

func (f *flameWriter) head(title string) {
	fmt.Fprintf(f.out, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%[1]g" height="%[2]d" viewBox="0 0 %[1]g %[2]d" font-family="monospace" font-size="11">
<style>rect{stroke:#fff;stroke-width:.5} g.f{cursor:pointer} g.f:hover rect{stroke:#000} g.f text{pointer-events:none} .dim{opacity:.35}</style>
<rect width="100%%" height="100%%" fill="#f8f8f8"/>
<text x="%[3]g" y="18" font-size="14">%[4]s</text>
<text id="told" x="%[3]g" y="36">click a frame to see it alone, the lowest for all</text>
`, svgWidth, f.height(), svgMargin, escapeXML(title))
	fmt.Fprintf(f.out, "<script><![CDATA[\n%s]]></script>\n<g id=\"frames\">\n", flameScript)
}

// frame draws a frame and those above it; from is how many instructions are left of it.
func (f *flameWriter) frame(x *flame, depth int, from uint64) {
	f.rects++
	scale := (svgWidth - 2*svgMargin) / f.total
	left, width := svgMargin+scale*float64(from), scale*float64(x.total)
	y := f.height() - 24 - svgRow*(depth+1)
	name := strings.TrimSuffix(x.name, inlinedMark)
	if name != x.name {
		name += " (inlined)"
	}
	name = printable(name)
	fmt.Fprintf(f.out, `<g class="f" data-d="%d"><title>%s: %s instructions, %.2f%%, %s in itself</title><rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"/>`,
		depth, escapeXML(name), text.Count(x.total), 100*float64(x.total)/f.total, text.Count(x.self), left, y, width, svgRow-1, colour(name))
	if fits := int((width - 6) / charWidth); fits >= 3 {
		fmt.Fprintf(f.out, `<text x="%.2f" y="%d">%s</text>`, left+3, y+11, escapeXML(cut(name, fits)))
	}
	fmt.Fprintf(f.out, "</g>\n")
	for _, c := range x.order {
		if f.isDrawn(c) {
			f.frame(c, depth+1, from)
		} else if c.total > 0 {
			f.omited++
		}
		from += c.total
	}
}

// cut shortens a name to n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-2]) + ".."
	}
	return s
}

// colour is a warm colour that is always the same for a name.
func colour(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it cannot fail
	v := h.Sum32()
	return fmt.Sprintf("rgb(%d,%d,%d)", 205+v%50, 90+v>>8%130, v>>16%70)
}

// escapeXML is text for XML; what XML has no character for is replaced.
func escapeXML(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes all
	return b.String()
}
