package uninit

import (
	"flag"
	"testing"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

var benchFile = flag.String("bench-recording", "../../../cmd/vplayd/demo/weather.vplay", "the recording of BenchmarkUninit")

// BenchmarkUninit follows what is undefined through a recording, without models of functions.
func BenchmarkUninit(b *testing.B) {
	rec, err := checkpoint.Open(*benchFile)
	if err != nil {
		b.Fatal(err)
	}
	defer rec.Close()
	s, err := replay.NewSession(rec)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	instructions, uses := uint64(0), 0
	for b.Loop() {
		var at *observe.View
		c := New(func(*Report) { uses++ }, func() checkpoint.Position { return at.Position() })
		err := observe.Run(b.Context(), s, observe.Options{Ordered: true, Begin: func(*observe.View) (*observe.Observer, error) {
			return &observe.Observer{
				Pending:  &c.Engine.Pending,
				Start:    func(v *observe.View) { at = v; c.Engine.Begin(v.Machine()) },
				Instr:    func(v *observe.View, in *x86.Inst) { c.Engine.Before(v.CPU(), in) },
				Executed: func(v *observe.View, in *x86.Inst, e x86.Exit) { c.Engine.After(v.CPU(), in, e) },
				Event:    func(v *observe.View, e *checkpoint.Event) { c.Engine.Event(v.Machine(), e) },
				Done:     func(v *observe.View) { instructions += v.CPU().Retired },
			}, nil
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(instructions)/1e6/b.Elapsed().Seconds(), "MIPS")
	b.ReportMetric(float64(uses)/float64(b.N), "uses")
}
