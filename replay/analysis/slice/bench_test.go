package slice

import (
	"flag"
	"testing"
	"time"

	"vplay/replay/x86"
)

var benchFile = flag.String("bench-recording", demo, "the recording of BenchmarkSlice")

// BenchmarkSlice is the slice of RAX at the end, back to the recording's start.
func BenchmarkSlice(b *testing.B) {
	tl := openTimeline(b, *benchFile)
	c, err := tl.NewCursor()
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ToEnd(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		began := time.Now()
		s, err := Of(b.Context(), tl, Options{At: c.Position(), TID: c.Machine().TID(), Want: []Location{{Reg: x86.RAX, Len: 8}, {Reg: x86.RDI, Len: 8}, {Reg: x86.RBX, Len: 8}}})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(s.Executed)/1e6/time.Since(began).Seconds(), "Minsn/s")
		b.ReportMetric(float64(s.Instances), "instances")
		b.ReportMetric(float64(s.Executed), "insn")
	}
}
