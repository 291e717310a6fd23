package debug

import (
	"fmt"
	"time"

	"vplay/replay"
	"vplay/replay/debug/text"
)

// How far a long search is, and how long it may still take, in words.

// searchProgress returns what tells show how far a search is, and how long a search
// of everything would still take at the rate since start. A search ends earlier when it finds
// what it looks for: it begins with the newest interval.
func searchProgress(start replay.Progress, show func(string)) func(replay.Progress) {
	began := time.Now()
	return func(p replay.Progress) {
		text := fmt.Sprintf("searching, %d of %s known", p.Intervals, text.Plural(p.Of, "interval"))
		if left, ok := timeLeft(p.CPU-start.CPU, p.OfCPU-p.CPU, time.Since(began)); ok {
			text += fmt.Sprintf(", at most about %s left", left)
		}
		show(text)
	}
}

// timeLeft returns how long the rest of a work takes, when done of it took so long;
// ok is false as long as nothing is done. It is rounded to what people read.
func timeLeft(done, rest, took time.Duration) (left time.Duration, ok bool) {
	if done <= 0 || rest < 0 {
		return 0, false
	}
	left = time.Duration(float64(rest) / float64(done) * float64(took))
	if left < 10*time.Second {
		return left.Round(time.Second), true
	}
	return left.Round(5 * time.Second), true
}
