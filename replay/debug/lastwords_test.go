package debug

import (
	"slices"
	"testing"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// TestLastMessage: the last message is what was written near the end of the log, with the
// search for debug information in between, and without what was written long before.
func TestLastMessage(t *testing.T) {
	words := checkpoint.Event{Kind: checkpoint.EventEnter, NR: abi.SYS_WRITE, Args: [6]uint64{stderr}}
	output := checkpoint.Event{Kind: checkpoint.EventEnter, NR: abi.SYS_WRITE, Args: [6]uint64{1}}
	brk := checkpoint.Event{Kind: checkpoint.EventEnter, NR: abi.SYS_BRK}
	end := checkpoint.Event{Kind: checkpoint.EventEnd}
	for _, c := range []struct {
		name        string
		events      [][]checkpoint.Event
		first, last int
	}{
		{"none", [][]checkpoint.Event{{output, output, end}}, 0, 0},
		{"the first event", [][]checkpoint.Event{{words, end}}, 0, 1},
		{"one", [][]checkpoint.Event{{output, words, output, end}}, 1, 2},
		{"two writes", [][]checkpoint.Event{{output, words, output, words, end}}, 1, 4},
		{"with a search", [][]checkpoint.Event{{words}, slices.Repeat([]checkpoint.Event{brk}, 1000), {words, end}}, 0, 1002},
		{"another before", [][]checkpoint.Event{{words}, slices.Repeat([]checkpoint.Event{output}, wordsGap+1), {words, words, end}}, wordsGap + 2, wordsGap + 4},
		{"long before the end", [][]checkpoint.Event{{words}, slices.Repeat([]checkpoint.Event{output}, 1000), {end}}, 0, 1},
	} {
		if first, last := lastMessage(slices.Concat(c.events...)); first != c.first || last != c.last {
			t.Errorf("%s: %d to %d, want %d to %d", c.name, first, last, c.first, c.last)
		}
	}
}

// TestWordLines: of a long message there are its beginning and its end.
func TestWordLines(t *testing.T) {
	for text, want := range map[string][]string{
		"":                        nil,
		"\n \n":                   nil,
		"one\n\n  two\r\n":        {"one", "  two"},
		"\tframe\n":               {"    frame"},
		"a\nb\nc\nd\ne":           {"a", "b", "c", "d", "e"},
		"a\nb\nc\nd\ne\nf\n\ng\n": {"a", "b", "...", "f", "g"},
	} {
		if got := wordLines(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
