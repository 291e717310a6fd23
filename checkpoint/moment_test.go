package checkpoint

import "testing"

// TestIsMoment: a recording with events, or an end that must be found, holds time; one without intervals holds
// nothing.
func TestIsMoment(t *testing.T) {
	for _, c := range []struct {
		list []IntervalInfo
		want bool
	}{
		{nil, false},
		{[]IntervalInfo{{}}, true},
		{[]IntervalInfo{{}, {}}, true},
		{[]IntervalInfo{{Events: 1}}, false},
		{[]IntervalInfo{{}, {Events: 1}}, false},
		{[]IntervalInfo{{Forced: true}}, false},
	} {
		r := &Recording{manifest: manifestFile{IntervalList: c.list}}
		if got := r.IsMoment(); got != c.want {
			t.Errorf("%+v: %t", c.list, got)
		}
	}
}
