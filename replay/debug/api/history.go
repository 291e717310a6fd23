package api

import "context"

// The history as a whole, for front ends that draw it: what happened when, on a scale from 0
// to 1 over the recorded time.

// A HistoryTarget can tell what its history holds without moving.
type HistoryTarget interface {
	// Moment tells where the target stands. It replays nothing.
	Moment() Moment

	// History tells what lies between two shares of the recorded time, from < to, in about
	// most turns, and as many marks of each kind for each thread: where there is more, some
	// stand for those behind them. Signals and faults have a mark each, unless they are
	// more than most; then those of a thread and a number stand for each other, and the
	// newest of all has its own.
	History(ctx context.Context, from, to float64, most int) (*History, error)
}

// Moment is a place in the history.
type Moment struct {
	Position string  `json:"position"` // what "seek" takes
	At       float64 `json:"at"`       // how much of the recorded time lies before, 0 to 1
	Event    int     `json:"event"`    // the number of the event that comes next, from the recording's beginning
	Place    string  `json:"place"`    // function and source line, as far as known
}

// History is what happened in a part of the recorded time. Its intervals have widths by
// their processor time, and the events of one are spread evenly over it: when exactly
// they happened only replay would tell.
type History struct {
	From      float64           `json:"from"`
	To        float64           `json:"to"`
	Intervals []HistoryInterval `json:"intervals"` // all of them
	Threads   []HistoryThread   `json:"threads"`   // those that do something from From to To
	Marks     []HistoryMark     `json:"marks"`     // in order
	Turns     []HistoryTurn     `json:"turns"`     // in order
}

// HistoryInterval is an interval of the recording.
type HistoryInterval struct {
	ID     uint32  `json:"id"`
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Events int     `json:"events"`
}

// HistoryThread is a thread by its number and the last name that it gave itself.
type HistoryThread struct {
	TID  int    `json:"tid"`
	Name string `json:"name,omitempty"`
}

// HistoryMark is an event, or the first of several that are close to each other.
type HistoryMark struct {
	At    float64 `json:"at"`
	Event int     `json:"event"` // its number, from the recording's beginning
	TID   int     `json:"tid"`
	Kind  string  `json:"kind"` // enter, signal, fault, instr, thread
	Text  string  `json:"text"`
	Count int     `json:"count"`
	Seek  string  `json:"seek"` // what "seek" takes to stand before it
}

// HistoryTurn is a stretch in which a thread ran and no other did.
type HistoryTurn struct {
	TID  int     `json:"tid"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}
