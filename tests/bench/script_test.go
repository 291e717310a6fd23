package bench

import (
	"context"
	"os"
	"testing"
	"time"

	"vplay/loader"
	"vplay/replay/analysis/script"
	"vplay/tests/internal/tool"
)

// TestScriptFigures measures a script that is called at each malloc and at its return, on the recording that
// VPLAY_OBSERVE names: what the rationales have.
func TestScriptFigures(t *testing.T) {
	path := os.Getenv("VPLAY_OBSERVE")
	if path == "" {
		return
	}
	heap, _ := script.Shipped("heap")
	for _, c := range []struct{ name, text string }{
		{"heap", string(heap)},
		{"a changing set", "gone = ranges()\nsizes = {}\ndef allocated(m):\n    gone.remove(m.result, m.result + m.arg(0))\n    sizes[m.result] = m.arg(0)\n" +
			"def freed(m):\n    a = m.arg(0)\n    if a in sizes:\n        gone.add(a, a + sizes.pop(a))\non_return(\"malloc\", allocated)\non_call(\"free\", freed)\n" +
			"on_access(gone, lambda m: None, kind=\"w\")\n"},
		{"calls", "n = [0]\ndef f(m):\n    n[0] += m.arg(0)\non_call(\"malloc\", f)\non_end(lambda m: print(n))\n"},
		{"calls and results", "n = [0, 0]\ndef f(m):\n    n[0] += m.arg(0)\n    n[1] ^= m.result\non_return(\"malloc\", f)\non_end(lambda m: print(n))\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := script.Read("bench.star", []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			s := tool.OpenSession(t, path)
			began := time.Now()
			err = p.Run(context.Background(), s, script.Options{PID: s.Rec.Processes()[0].PID, Symbols: loader.NewSymbols(nil, true), Print: func(line string) { t.Log(line) }})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%-20s %.2f s", c.name, time.Since(began).Seconds())
		})
	}
}
