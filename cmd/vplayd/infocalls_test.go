package main

import (
	"testing"

	"vplay/loader"
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
}
