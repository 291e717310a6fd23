package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"vplay/checkpoint"
)

// TestDumpJSON reads the log of the demo as JSON: every interval and event is there, once
// and in order, and nothing that is not documented.
func TestDumpJSON(t *testing.T) {
	rec, err := checkpoint.Open(filepath.Join("demo", demoRecording))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for name, f := range map[string]dumpFlags{
		"all":     {last: ^uint32(0), json: true},
		"one":     {first: 1, last: 1, json: true},
		"strings": {last: ^uint32(0), strings: true, json: true},
		"raw":     {last: ^uint32(0), raw: true, json: true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := dump(t.Context(), &out, rec, f); err != nil {
				t.Fatal(err)
			}
			d := json.NewDecoder(&out)
			d.DisallowUnknownFields()
			for _, info := range rec.Intervals() {
				if info.ID < f.first || info.ID > f.last {
					continue
				}
				iv, err := rec.Interval(info.ID)
				if err != nil {
					t.Fatal(err)
				}
				var x intervalObject
				if err := d.Decode(&x); err != nil || x.Interval != info.ID || x.Events != len(iv.Events) || x.End != iv.End.Kind.String() || len(x.Threads) != 1 || x.PID != iv.PID {
					t.Fatalf("interval %d is %+v, %v", info.ID, x, err)
				}
				if iv.End.Kind == checkpoint.EndCrash && x.Signal != iv.End.Signo {
					t.Errorf("the signal is %d", x.Signal)
				}
				for i := range iv.Events {
					want := &iv.Events[i]
					var e eventObject
					if err := d.Decode(&e); err != nil || e.Interval != info.ID || e.Event != i || e.Kind != want.Kind.String() || e.TID != want.TID || e.Text == "" {
						t.Fatalf("event %d is %+v, %v", i, e, err)
					}
					if want.Kind == checkpoint.EventEnter && (*e.NR != want.NR || e.Args[1] != want.Args[1]) || want.Kind == checkpoint.EventExit && *e.Result != want.Result {
						t.Errorf("event %d is %+v, want %+v", i, e, want)
					}
				}
			}
			if d.More() {
				t.Error("there is more")
			}
		})
	}
}
