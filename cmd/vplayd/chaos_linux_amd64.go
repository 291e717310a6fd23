package main

import (
	"context"
	"fmt"
	"os"

	recorder "vplay/checkpoint/record"
)

// The flag --tries of record: a program is recorded again and again until it fails. The
// schedules are made by package record.

// tryToCrash records the program once, or, with --tries, until it crashes: each time with
// the next seed. What a run that did not crash has left is removed, but for the last one's.
func tryToCrash(ctx context.Context, f recordFlags, opt recorder.Options) (recorder.Result, error) {
	for n := 1; ; n++ {
		res, err := recorder.Run(context.WithoutCancel(ctx), opt)
		// A crash of another process than the first is one that was recorded.
		crashed := res.Signal != 0 || opt.Keep == recorder.KeepCrash && res.Recorded || opt.Keep == recorder.KeepAlways && res.ExitCode != 0
		if n == f.chaos.tries || crashed || err != nil || res.Err != nil || ctx.Err() != nil {
			if f.chaos.tries > 1 && !f.quiet {
				fmt.Fprintf(stderr, "vplayd: %s\n", triesText(n, f.chaos.tries, crashed, &opt))
			}
			return res, err
		}
		if res.Recorded {
			if err := os.Remove(res.Path); err != nil {
				return res, err
			}
		}
		opt.ChaosSeed++
	}
}

// triesText says which try was the last of at most so many, and what came of it.
func triesText(n, most int, crashed bool, opt *recorder.Options) string {
	text := fmt.Sprintf("try %d of %d", n, most)
	if opt.Chaos {
		text += fmt.Sprintf(", seed %d", opt.ChaosSeed)
	}
	if !crashed {
		return text + ": no crash"
	}
	return text + ": a crash"
}
