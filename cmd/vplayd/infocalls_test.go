package main

import (
	"bytes"
	"strings"
	"testing"

	"vplay/loader"
	"vplay/replay/debug"
)

// TestShownCalls: info lists what led to a signal also when the handler of a runtime calls many functions before it aborts.
func TestShownCalls(t *testing.T) {
	plain := make([]loader.Location, 40)
	if got := shownCalls(plain); got != shownFrames {
		t.Errorf("%d calls without a signal", got)
	}
	plain[12].Function = loader.SignalFrame
	if got := shownCalls(plain); got != 12+shownFrames {
		t.Errorf("%d calls with a signal's handler", got)
	}
	thrown := make([]loader.Location, 40)
	for i := range thrown {
		thrown[i].Module = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"
	}
	thrown[10].Module = "/srv/server"
	if got := shownCalls(thrown); got != 10+ownFrames-1 {
		t.Errorf("%d calls of an exception that is thrown in a library", got)
	}
}

// TestMoreCalls: a deep recursion is not cut to the frames that info has the names of.
func TestMoreCalls(t *testing.T) {
	for _, c := range []struct {
		named, calls int
		want         string
	}{{12, 0, "3 more"}, {debug.BacktraceLimit, 14975, "14,966 more"}, {debug.BacktraceLimit, maxCalls, "more than 99,991 more"}} {
		in := &info{Backtrace: make([]loader.Location, c.named), Calls: c.calls}
		if got := in.moreCalls(9); got != c.want {
			t.Errorf("%d named of %d: %q, want %q", c.named, c.calls, got, c.want)
		}
	}
}

// TestInfoOfGoroutine: where the calls end in the runtime's own stack, info says what has the goroutine's.
func TestInfoOfGoroutine(t *testing.T) {
	for function, want := range map[string]bool{"runtime.systemstack": true, "main.main": false} {
		in := &info{File: "x.vplay", Backtrace: []loader.Location{{Function: "runtime.exit"}, {Function: function}}}
		var out bytes.Buffer
		if err := in.print(&out); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "vplayd goroutines -t x.vplay\n") != want {
			t.Errorf("%s:\n%s", function, out.Bytes())
		}
	}
}
