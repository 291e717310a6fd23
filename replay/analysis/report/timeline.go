package report

import (
	"context"
	"fmt"

	"vplay/checkpoint"
	"vplay/replay/debug/api"
	"vplay/replay/debug/text"
)

// The picture of the threads over the recorded time, as SVG: coordinates are computed here, and
// drawn by the template. What happened when is known as History has it.

// timeline is the picture.
type timeline struct {
	Width, Height int
	LaneBottom    int
	Title         string // for who does not see it
	Intervals     []bar
	Lanes         []lane
	Turns         []bar
	Marks         []mark
	Here          bar // X is where the page's moment is
	HereText      string
	HereAnchor    string
	Notes         []string
	HasCalls      bool
	HasSignals    bool
	HasOthers     bool
}

// bar is a rectangle, with a text in or on it.
type bar struct {
	X, Y, W, H   string
	Text         string
	TextX, TextY string
	IsOdd        bool
}

// lane is the line of a thread.
type lane struct {
	Y, TextY int
	Text     string
	IsThis   bool
}

// mark is an event, or several.
type mark struct {
	X, Y  string
	Kind  string // call, signal or other
	Title string
}

// Measures of the picture, in the units of its coordinates.
const (
	pictureWidth = 1000
	labelWidth   = 150
	rightMargin  = 20
	laneHeight   = 30
	laneTop      = 40
	barHeight    = 10
)

// Bounds of what is drawn.
const (
	maxLanes     = 24
	maxMarks     = 1200
	maxIntervals = 200
	marksWanted  = 160 // of a kind, for a thread
	minLabel     = 34  // the width from which on an interval has its number in it
)

// makeTimeline makes the picture.
func (m *maker) makeTimeline(ctx context.Context) error {
	wanted := marksWanted
	h, err := m.g.History(ctx, 0, 1, wanted)
	for err == nil && len(h.Marks)+len(h.Turns) > maxMarks && wanted > 10 {
		wanted /= 2
		h, err = m.g.History(ctx, 0, 1, wanted)
	}
	if err != nil {
		return err
	}
	if len(h.Threads) == 0 {
		return sentence("Nothing happens in the recorded time.")
	}
	t := &timeline{Width: pictureWidth}
	y := t.lanes(m, h.Threads)
	t.Height = t.LaneBottom + 24
	t.intervals(h.Intervals)
	for _, u := range h.Turns[:min(len(h.Turns), maxMarks)] {
		if at, ok := y[u.TID]; ok {
			t.Turns = append(t.Turns, bar{X: number(x(u.From)), Y: fmt.Sprint(at - barHeight/2), W: number(max(x(u.To)-x(u.From), 1)), H: fmt.Sprint(barHeight)})
		}
	}
	t.marks(m, h.Marks, y)
	t.here(m, len(h.Intervals), len(h.Threads))
	m.page.Timeline = t
	return nil
}

// lanes gives the threads their lanes, and returns where the middle of each is.
func (t *timeline) lanes(m *maker, list []api.HistoryThread) map[int]int {
	y := map[int]int{}
	for _, this := range []bool{true, false} {
		for _, th := range list {
			if (th.TID == m.tid) != this || len(y) >= maxLanes {
				continue
			}
			at := laneTop + len(y)*laneHeight + laneHeight/2
			y[th.TID] = at
			t.Lanes = append(t.Lanes, lane{Y: at, TextY: at + 4, Text: m.most(fmt.Sprintf("%d %s", th.TID, th.Name), 20), IsThis: this})
		}
	}
	t.LaneBottom = laneTop + len(y)*laneHeight
	if n := len(list) - len(y); n > 0 {
		t.Notes = append(t.Notes, text.Plural(n, "thread")+" more are not drawn.")
	}
	return y
}

// intervals draws the intervals, as stripes behind the lanes.
func (t *timeline) intervals(list []api.HistoryInterval) {
	step := (len(list) + maxIntervals - 1) / maxIntervals
	for i := 0; i < len(list); i += step {
		last := min(i+step, len(list)) - 1
		from, to := x(list[i].From), x(list[last].To)
		b := bar{X: number(from), Y: fmt.Sprint(laneTop - 18), W: number(max(to-from, 0.5)), H: fmt.Sprint(t.LaneBottom - laneTop + 18), IsOdd: i/step%2 == 1}
		if to-from >= minLabel {
			b.Text, b.TextX, b.TextY = fmt.Sprint(list[i].ID), number(from+4), fmt.Sprint(laneTop-6)
		}
		t.Intervals = append(t.Intervals, b)
	}
	if step > 1 {
		t.Notes = append(t.Notes, fmt.Sprintf("A stripe stands for %d intervals.", step))
	}
}

// markKinds are the kinds of marks, by the kinds of events.
var markKinds = map[string]string{
	checkpoint.EventEnter.String(): "call", checkpoint.EventSignal.String(): "signal", checkpoint.EventFault.String(): "signal",
}

// marks draws the events.
func (t *timeline) marks(m *maker, list []api.HistoryMark, y map[int]int) {
	list = list[max(0, len(list)-maxMarks):]
	for i := range list {
		k := &list[i]
		at, ok := y[k.TID]
		if !ok {
			continue
		}
		out := mark{X: number(x(k.At)), Y: fmt.Sprint(at), Kind: markKinds[k.Kind], Title: m.most(k.Text, 100)}
		if k.Count > 1 {
			out.Title += fmt.Sprintf(" and %d more", k.Count-1)
		}
		switch out.Kind {
		case "call":
			t.HasCalls = true
		case "signal":
			t.HasSignals = true
		default:
			out.Kind, t.HasOthers = "other", true
		}
		t.Marks = append(t.Marks, out)
	}
}

// here draws the moment of the page, and says in words what is drawn.
func (t *timeline) here(m *maker, intervals, threads int) {
	at := m.g.Moment().At
	t.Here = bar{X: number(x(at)), Y: fmt.Sprint(laneTop - 22), H: fmt.Sprint(t.LaneBottom + 4), TextY: fmt.Sprint(t.LaneBottom + 18)}
	t.HereText, t.HereAnchor = "this moment", "middle"
	if m.o.IsEnd {
		if t.HereText = "end"; m.o.IsCrash {
			t.HereText = "crash"
		}
	}
	switch {
	case at > 0.9:
		t.HereAnchor = "end"
	case at < 0.1:
		t.HereAnchor = "start"
	}
	t.Title = fmt.Sprintf("%s over %s; %s at %.1f %% of the recorded time", text.Plural(threads, "thread"), text.Plural(intervals, "interval"), t.HereText, 100*at)
}

// x is where a share of the recorded time is drawn.
func x(share float64) float64 {
	return labelWidth + min(max(share, 0), 1)*(pictureWidth-labelWidth-rightMargin)
}

// number writes a coordinate.
func number(v float64) string { return fmt.Sprintf("%.1f", v) }

// times says how often something happened.
func times(n uint64) string { return text.Count(n) + " times" }
