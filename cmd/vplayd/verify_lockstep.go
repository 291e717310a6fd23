package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/debug/text"
	"vplay/replay/lockstep"
	"vplay/replay/observe"
)

// The verb verify with --lockstep: which stretches are run on this CPU beside the
// emulator, and how the first difference is shown. Running them is package
// replay/lockstep.

// lockstepFlags are the flags of verify --lockstep.
type lockstepFlags struct {
	on          bool
	interval    string
	from        string
	count       uint64
	noUndefined bool
}

func (f *lockstepFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.on, "lockstep", false, "execute each instruction on this CPU too, and stop at the first difference (finding bugs in vplay itself)")
	c.Flags().StringVar(&f.interval, "interval", "", "with --lockstep: the interval `I` only")
	c.Flags().StringVar(&f.from, "from", "", "with --lockstep: start at `POSITION`, I:N.S, and stay in its interval")
	c.Flags().Uint64Var(&f.count, "count", 0, "with --lockstep: no more than `N` instructions")
	c.Flags().BoolVar(&f.noUndefined, "no-undefined", false, "with --lockstep: leave out flags that the manuals leave undefined")
}

// check refuses flags that have no meaning together.
func (f *lockstepFlags) check(c *cobra.Command) error {
	if !f.on {
		for _, name := range []string{"interval", "from", "count", "no-undefined"} {
			if c.Flags().Changed(name) {
				return usageError{withHint(fmt.Errorf("--%s without --lockstep", name), exitUsage, "verify without --lockstep replays everything")}
			}
		}
		return nil
	}
	if c.Flags().Changed("process") && (f.from != "" || f.interval != "") {
		return usageError{withHint(errors.New("--process with --interval or --from"), exitUsage, "an interval is one process's: name the interval alone")}
	}
	if f.from != "" && f.interval != "" {
		return usageError{withHint(errors.New("--interval and --from"), exitUsage, "a position names its interval: --from is enough")}
	}
	return nil
}

// stretch is what is to be run in lockstep.
type stretch struct {
	from, to checkpoint.Position
	insns    uint64 // how long it is, 0 when that is not known
}

// lockstepVerify is verify --lockstep.
func lockstepVerify(c *cobra.Command, args []string, f verifyFlags) error {
	if !lockstep.Supported {
		return lockstepError(lockstep.ErrNotSupported)
	}
	s, path, done, err := openSession(c, args)
	if err != nil {
		return err
	}
	defer done()
	if unlike := lockstep.Unlike(&s.Rec.Manifest().CPU); unlike != "" {
		fmt.Fprintf(stderr, "vplayd: warning: %s: undefined flags are not compared, and other differences may be the CPUs'\n", unlike)
	}
	if err := f.choose(c, s.Rec); err != nil {
		return err
	}
	l := lockstepRun{c: c, s: s, f: f, path: path, left: f.lockstep.count, began: time.Now()}
	list, err := l.stretches()
	if err != nil {
		return err
	}
	for _, st := range list {
		done, err := l.run(st)
		if err != nil {
			return lockstepError(err)
		}
		if done {
			break
		}
	}
	return l.summary()
}

// lockstepError gives what this machine cannot do a hint and its code.
func lockstepError(err error) error {
	var host *lockstep.HostError
	var behind *lockstep.RangeError
	switch {
	case errors.As(err, &behind):
		return usageError{withHint(err, exitUsage, "vplayd verify -v says how many instructions each interval has")}
	case errors.Is(err, lockstep.ErrNotSupported):
		return withHint(err, exitMachine, "verify without --lockstep works here; --lockstep needs an x86-64 Linux machine")
	case errors.As(err, &host):
		return withHint(err, exitMachine, "it needs ptrace, as recording does: vplayd doctor tells")
	}
	return err
}

// lockstepRun is a command under way.
type lockstepRun struct {
	c     *cobra.Command
	s     *replay.Session
	f     verifyFlags
	path  string
	began time.Time
	left  uint64 // of --count, 0 when there is no limit

	steps, alone, approximate uint64
	took                      time.Duration
	diverged                  error // where replay went wrong
	difference                *lockstep.Difference
}

// stretches says what to run: what the flags name; else, where a replay diverges,
// the way there, the part behind the last event that was right first; else
// everything.
func (l *lockstepRun) stretches() ([]stretch, error) {
	f := &l.f.lockstep
	switch {
	case f.from != "":
		p, err := debug.ParsePosition(f.from)
		if err != nil {
			return nil, usageError{withHint(err, exitUsage, "--from 3:1200000.0")}
		}
		return []stretch{{from: p}}, l.known(p.Interval)
	case f.interval != "":
		n, err := strconv.ParseUint(f.interval, 10, 32)
		if err != nil {
			return nil, usageError{withHint(fmt.Errorf("--interval %s", f.interval), exitUsage, "it is a number; vplayd verify -v lists the intervals")}
		}
		return []stretch{{from: checkpoint.Position{Interval: uint32(n)}}}, l.known(uint32(n))
	}
	results, err := verifyAll(l.c.Context(), l.s, l.f)
	if err != nil {
		return nil, err
	}
	var list []stretch
	for _, r := range results {
		if at, ok := failedAt(r.Err); ok {
			return l.wayTo(at)
		}
		if r.Err != nil {
			return nil, r.Err
		}
		list = append(list, stretch{from: checkpoint.Position{Interval: r.Interval}, insns: r.Instructions})
	}
	return list, nil
}

// known refuses an interval that the recording does not have.
func (l *lockstepRun) known(id uint32) error {
	list := l.s.Rec.Intervals()
	for _, i := range list {
		if i.ID == id {
			return nil
		}
	}
	if len(list) == 0 {
		return errors.New("the recording holds no interval")
	}
	return usageError{withHint(fmt.Errorf("interval %d is not in the recording", id), exitUsage, "it has %d to %d", list[0].ID, list[len(list)-1].ID)}
}

// failedAt returns where a replay went wrong.
func failedAt(err error) (checkpoint.Position, bool) {
	var (
		d *replay.DivergenceError
		n *replay.NotCapturedError
		u *replay.UnsupportedError
	)
	switch {
	case errors.As(err, &d):
		return d.At, true
	case errors.As(err, &n):
		return n.At, true
	case errors.As(err, &u):
		return u.At, true
	}
	return checkpoint.Position{}, false
}

// wayTo returns the stretches of the way to at, where replay diverges: from
// the last event on whose registers were right, then what is before that.
func (l *lockstepRun) wayTo(at checkpoint.Position) ([]stretch, error) {
	begin := checkpoint.Position{Interval: at.Interval}
	last, now := begin, begin
	err := observeInterval(l.c.Context(), l.s, at.Interval, &observe.Observer{
		Event:   func(v *observe.View, _ *checkpoint.Event) { now = v.Position() },
		Applied: func(*observe.View, *checkpoint.Event) { last = now },
	})
	if err != nil && !replay.Unmatched(err) {
		return nil, err
	}
	behind := checkpoint.Position{Interval: at.Interval, Instr: at.Instr + 1}
	fmt.Fprintf(stderr, "vplayd: replay diverges at %s; the last event that was right is at %s\n", at, last)
	list := []stretch{{from: last, to: behind, insns: at.Instr - last.Instr}}
	if last.Instr > 0 {
		list = append(list, stretch{from: begin, to: last, insns: last.Instr})
	}
	return list, nil
}

// run runs one stretch and prints what came of it. done says that there is
// nothing more to find.
func (l *lockstepRun) run(st stretch) (done bool, err error) {
	line := newProgress(false)
	var sum uint64
	began := time.Now()
	res, err := lockstep.Run(l.c.Context(), l.s, lockstep.Options{
		From: st.from, To: st.to, Count: l.left, IgnoreUndefined: l.f.lockstep.noUndefined,
		Progress: func(n uint64) {
			sum += n
			rate := float64(sum) / 1e3 / time.Since(began).Seconds()
			if st.insns > 0 {
				line.show("lockstep [%s] interval %d, %s of %s steps, %.0f k/s", bar(float64(sum)/float64(st.insns)),
					st.from.Interval, text.Count(sum), text.Count(st.insns), rate)
			} else {
				line.show("lockstep interval %d, %s steps, %.0f k/s", st.from.Interval, text.Count(sum), rate)
			}
		},
	})
	line.done()
	if err != nil && !errors.Is(err, context.Canceled) {
		return false, err
	}
	l.steps, l.alone, l.approximate, l.took = l.steps+res.Steps, l.alone+res.Alone, l.approximate+res.Approximate, l.took+res.Took
	if perr := l.print(l.c.OutOrStdout(), &res); err == nil {
		err = perr
	}
	if err != nil {
		return false, err
	}
	if res.Err != nil && !replay.Unmatched(res.Err) {
		return false, res.Err
	}
	if res.Err != nil {
		l.diverged = res.Err
	}
	l.difference = res.Difference
	if n := l.left; n > 0 {
		l.left = n - min(n, res.Steps+res.Alone)
		done = l.left == 0
	}
	return done || res.Difference != nil, nil
}

// print writes the line of a stretch, or its object, and its difference.
func (l *lockstepRun) print(out io.Writer, res *lockstep.Result) error {
	if l.f.json {
		return encodeLine(out, l.object(res))
	}
	state := "no difference"
	switch {
	case res.Difference != nil:
		state = "a difference"
	case res.Err != nil:
		state = res.Err.Error()
	}
	if l.f.verbose || res.Err != nil {
		fmt.Fprintf(out, "%s to %s: %s steps, %.2f s: %s\n", res.From, res.To, text.Count(res.Steps), res.Took.Seconds(), state)
	}
	if d := res.Difference; d != nil {
		l.printDifference(out, d)
	}
	return nil
}

// printDifference writes a difference for people.
func (l *lockstepRun) printDifference(out io.Writer, d *lockstep.Difference) {
	fmt.Fprintf(out, "difference at %s, thread %d, rip %#x\n", d.At, d.TID, d.RIP)
	fmt.Fprintf(out, "  % x   %s   (%s)\n", d.Bytes, debug.DisassembleBytes(d.Bytes, d.RIP), d.Row)
	width := 0
	for _, v := range d.Before {
		width = max(width, len(v.Name))
	}
	for _, i := range d.Items {
		width = max(width, len(i.Name))
	}
	for i, v := range d.Before {
		fmt.Fprintf(out, "  %-8s  %-*s  %s\n", []string{"before", ""}[min(i, 1)], width, v.Name, v.Value)
	}
	for i, v := range d.Items {
		fmt.Fprintf(out, "  %-8s  %-*s  emulator %s\n", []string{"after", ""}[min(i, 1)], width, v.Name, v.Emulator)
		fmt.Fprintf(out, "  %-8s  %-*s  CPU      %s\n", "", width, "", v.CPU)
	}
	fmt.Fprintf(out, "  go there: %s\n", l.command(d))
}

// command is what takes a user to a difference, in gdb.
func (l *lockstepRun) command(d *lockstep.Difference) string {
	process := ""
	for _, in := range l.s.Rec.Intervals() {
		if in.ID == d.At.Interval {
			process = processOption(l.s.Rec, in.PID)
		}
	}
	return fmt.Sprintf("vplayd replay%s %s -- -ex 'monitor seek %s' -ex 'maintenance flush register-cache' -ex 'x/i $pc'", process, shellWord(l.path), d.At)
}

// shellWord quotes s for a shell where it has to be.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// object is the JSON form of a stretch.
func (l *lockstepRun) object(res *lockstep.Result) map[string]any {
	o := map[string]any{
		"interval": res.From.Interval, "from": res.From.String(), "to": res.To.String(), "steps": res.Steps,
		"emulator_alone": res.Alone, "approximate": res.Approximate, "seconds": res.Took.Seconds(),
	}
	if res.Err != nil {
		o["error"] = res.Err.Error()
		if at, ok := failedAt(res.Err); ok {
			o["position"] = at.String()
		}
	}
	if d := res.Difference; d != nil {
		before, after := []map[string]string{}, []map[string]string{}
		for _, v := range d.Before {
			before = append(before, map[string]string{"name": v.Name, "value": v.Value})
		}
		for _, i := range d.Items {
			after = append(after, map[string]string{"name": i.Name, "emulator": i.Emulator, "cpu": i.CPU})
		}
		o["difference"] = map[string]any{
			"position": d.At.String(), "thread": d.TID, "rip": fmt.Sprintf("%#x", d.RIP), "bytes": hex.EncodeToString(d.Bytes),
			"instruction": debug.DisassembleBytes(d.Bytes, d.RIP), "row": d.Row, "before": before, "after": after, "command": l.command(d),
		}
	}
	return o
}

// summary prints the last line and returns the exit code as an error.
func (l *lockstepRun) summary() error {
	out, differences := l.c.OutOrStdout(), 0
	if l.difference != nil {
		differences = 1
	}
	rate := float64(l.steps) / 1e3 / max(l.took.Seconds(), 1e-9)
	if l.f.json {
		if err := encodeLine(out, map[string]any{
			"steps": l.steps, "emulator_alone": l.alone, "approximate": l.approximate, "differences": differences,
			"seconds": l.took.Seconds(), "ksteps_per_s": rate,
		}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(out, "%s steps on both, %s by the emulator alone, %.0f k/s, %.2f s, %s\n", text.Count(l.steps), text.Count(l.alone), rate,
			l.took.Seconds(), text.Plural(differences, "difference"))
		if l.approximate > 0 {
			fmt.Fprintf(out, "%s differ by one unit in the last place, as they may\n", text.Plural(int(l.approximate), "x87 result"))
		}
		if l.diverged != nil && l.difference == nil {
			fmt.Fprintln(out, "the CPU does the same as the emulator up to where replay and recording differ: look at the recording, not at the emulator")
		}
	}
	if l.difference != nil || l.diverged != nil {
		return exitError{exitDiverged}
	}
	return nil
}
