package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/debug/text"
)

// The verb schedule: which thread ran when, and why the next one did. What the log tells is
// found in stretches.go.

func newSchedule() *cobra.Command {
	var f scheduleFlags
	c := &cobra.Command{
		Use:   "schedule [flags] [RECORDING] [INTERVALS]",
		Short: "print which thread ran when, and why it switched",
		Long: `Schedule prints, for each process of a recording, a line for each stretch that a
thread ran without another in between: from where and to where, how many events
of the log it has, the thread with the name that it has given itself, and why the
next one ran. Behind that each thread has a line with its sums. INTERVALS is one ID,
or a range A-B.

A place is INTERVAL/EVENT, as vplayd dump numbers them. With --replay it is a
position, to which "vplay seek" goes in gdb, and instructions are counted, too: that
takes as long as vplayd verify with -j 1.

The reasons are:

  waits in CALL   it waits in a system call that may block
  slice           others had waited for long enough
  forced end      the same, where it made no call: the interval ends there
  yield           it called sched_yield
  exit            it has ended
  start           a thread that it made goes first
  unknown         the log does not say, as those of older recorders

A thread has the name of the end of the interval, or that of who made it: the log
does not say when it changed. --replay knows. With --json each stretch is a line
of JSON, and each thread one behind them.

Once the file is open, schedule can open no other file and start no other program,
where the kernel has Landlock and seccomp (vplayd doctor tells).`,
		Example: `  vplayd schedule server-1.vplay
  vplayd schedule --replay --thread worker server-1.vplay 10-20
  vplayd schedule --json server-1.vplay | jq -r 'select(.kind == "stretch" and .why == "forced") | .tid'`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if f.engine, err = chooseEngine(c); err != nil {
				return err
			}
			rec, first, last, err := openIntervals(c, args)
			if err != nil {
				return err
			}
			defer rec.Close()
			f.first, f.last = first, last
			if f.pid, _, err = chosenProcess(c, rec); err != nil {
				return err
			}
			w := bufio.NewWriter(c.OutOrStdout())
			if err := schedule(c.Context(), w, rec, f); err != nil {
				return err
			}
			return w.Flush()
		},
	}
	c.Flags().StringVarP(&f.thread, "thread", "t", "", "only the thread with this `NUMBER` or name")
	addProcessFlag(c, "all of them")
	c.Flags().BoolVar(&f.replay, "replay", false, "replay, to show positions and count instructions")
	c.Flags().BoolVar(&f.json, "json", false, "one JSON object per stretch, and then per thread")
	addSandboxFlag(c)
	return c
}

// scheduleFlags say what to print.
type scheduleFlags struct {
	first, last uint32 // intervals
	thread      string
	pid         int32 // 0 for all
	replay      bool
	json        bool
	engine      engine
}

// wants reports whether a thread is to be printed.
func (f *scheduleFlags) wants(tid checkpoint.TID, name string) bool {
	return f.thread == "" || f.thread == name || f.thread == strconv.Itoa(int(tid))
}

func schedule(ctx context.Context, w io.Writer, rec *checkpoint.Recording, f scheduleFlags) error {
	p := &schedulePrinter{w: untilDone{ctx, w}, f: f, rec: rec}
	if f.replay {
		var err error
		if p.session, err = replay.NewSession(rec); err != nil {
			return err
		}
		defer p.session.Close()
		f.engine.use(p.session)
	}
	for _, row := range rec.Processes() {
		if f.pid == 0 || f.pid == row.PID {
			if err := p.process(ctx, row.PID); err != nil {
				return err
			}
		}
	}
	switch infos := rec.Intervals(); {
	case len(infos) == 0 || p.printed:
		return nil
	case !p.found:
		return usageError{withHint(fmt.Errorf("no interval %d in the recording", f.first), exitUsage, "it has %d to %d", infos[0].ID, infos[len(infos)-1].ID)}
	default:
		return usageError{withHint(fmt.Errorf("no thread %q there", f.thread), exitUsage, "without --thread all of them are printed")}
	}
}

// schedulePrinter prints stretches, and keeps the sums.
type schedulePrinter struct {
	w       io.Writer
	f       scheduleFlags
	rec     *checkpoint.Recording
	session *replay.Session
	found   bool // an interval that was asked for
	printed bool // a stretch
	headed  bool // the process has its line
	sums    map[checkpoint.TID]*threadSum
}

// threadSum is what the stretches of a thread add up to.
type threadSum struct {
	Kind         string         `json:"kind"`
	PID          int32          `json:"pid"`
	TID          checkpoint.TID `json:"tid"`
	Name         string         `json:"name,omitempty"`
	Stretches    int            `json:"stretches"`
	Events       uint64         `json:"events"`
	Instructions *uint64        `json:"instructions,omitempty"`
	Share        float64        `json:"share"` // of the process's instructions, or else of its events
	Why          map[string]int `json:"why"`   // its stretches ended, and how many
}

// sumBytes is the memory that the sums of a thread take, about.
const sumBytes = 1000

// process prints a process.
func (p *schedulePrinter) process(ctx context.Context, pid int32) error {
	p.headed, p.sums = false, map[checkpoint.TID]*threadSum{}
	walk := newStretches(pid, p.stretch)
	for _, i := range p.rec.Intervals() {
		if i.PID != pid || i.ID < p.f.first || i.ID > p.f.last {
			continue
		}
		p.found = true
		iv, err := p.rec.Interval(i.ID)
		if err != nil {
			return err
		}
		var at []switchPoint
		if p.session != nil {
			if at, err = switchPoints(ctx, p.session, i.ID); err != nil {
				return err
			}
		}
		if err := walk.add(iv, at); err != nil {
			return err
		}
	}
	if err := walk.finish(); err != nil {
		return err
	}
	return p.summary()
}

// stretch counts a stretch and prints it.
func (p *schedulePrinter) stretch(x *threadStretch) error {
	sum := p.sums[x.TID]
	if sum == nil {
		if err := p.rec.Budget().Take(sumBytes, "threads"); err != nil {
			return err
		}
		sum = &threadSum{Kind: "thread", PID: x.PID, TID: x.TID, Why: map[string]int{}}
		p.sums[x.TID] = sum
	}
	if x.Name != "" {
		sum.Name = x.Name
	}
	sum.Stretches++
	sum.Events += uint64(x.Events)
	sum.Why[x.Why]++
	if x.Instructions != nil {
		if sum.Instructions == nil {
			sum.Instructions = new(uint64)
		}
		*sum.Instructions += *x.Instructions
	}
	if !p.f.wants(x.TID, x.Name) {
		return nil
	}
	p.printed = true
	if p.f.json {
		return encodeLine(p.w, struct {
			Kind string `json:"kind"`
			*threadStretch
		}{"stretch", x})
	}
	if err := p.head(x.PID); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.w, "  %s %s%s %8d  %-24s %s\n", p.column(x.From.String()), p.column(x.To.String()), p.instructions(x.Instructions), x.Events, threadText(x.TID, x.Name), whyText(x.Why, x.Call))
	return err
}

// head prints the line of a process, and the names of the columns, once.
func (p *schedulePrinter) head(pid int32) error {
	if p.headed {
		return nil
	}
	p.headed = true
	row, _ := p.rec.Process(pid)
	name := ""
	if row.Program != "" {
		name = " " + text.Printable(row.Program)
	}
	_, err := fmt.Fprintf(p.w, "process %d%s\n  %s %s%s %8s  %-24s %s\n", pid, name, p.column("from"), p.column("to"), p.title(), "events", "thread", "why it switched")
	return err
}

// column pads a place.
func (p *schedulePrinter) column(s string) string {
	if p.session != nil {
		return fmt.Sprintf("%-18s", s)
	}
	return fmt.Sprintf("%-12s", s)
}

// title is the name of the column of instructions, where they are counted.
func (p *schedulePrinter) title() string {
	if p.session == nil {
		return ""
	}
	return fmt.Sprintf(" %14s", "instructions")
}

// instructions writes a count, where instructions are counted.
func (p *schedulePrinter) instructions(n *uint64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf(" %14d", *n)
}

// threadText is a thread's number and its name.
func threadText(tid checkpoint.TID, name string) string {
	if name == "" {
		return strconv.Itoa(int(tid))
	}
	return fmt.Sprintf("%d %s", tid, text.Printable(name))
}

// whyText says for people why a stretch has ended.
func whyText(why, call string) string {
	switch {
	case call != "":
		return "waits in " + call
	case why == checkpoint.SchedBlocked.String():
		return "waits in a call"
	case why == whyForced:
		return "forced end"
	}
	return why
}

// summary prints the sums of the threads of a process, by number.
func (p *schedulePrinter) summary() error {
	defer p.rec.Budget().Give(int64(len(p.sums)) * sumBytes)
	var all float64
	for _, s := range p.sums {
		all += s.share()
	}
	headed := p.f.json
	for _, s := range slices.SortedFunc(maps.Values(p.sums), func(a, b *threadSum) int { return cmp.Compare(a.TID, b.TID) }) {
		if !p.f.wants(s.TID, s.Name) {
			continue
		}
		if all > 0 {
			s.Share = s.share() / all
		}
		if p.f.json {
			if err := encodeLine(p.w, s); err != nil {
				return err
			}
			continue
		}
		if !headed {
			headed = true
			fmt.Fprintf(p.w, "  %-24s %9s%s %8s %6s  %s\n", "thread", "stretches", p.title(), "events", "share", "why they ended")
		}
		if _, err := fmt.Fprintf(p.w, "  %-24s %9d%s %8d %5.1f%%  %s\n", threadText(s.TID, s.Name), s.Stretches, p.instructions(s.Instructions), s.Events, 100*s.Share, whysText(s.Why)); err != nil {
			return err
		}
	}
	return nil
}

// share is what the thread's share is counted in.
func (s *threadSum) share() float64 {
	if s.Instructions != nil {
		return float64(*s.Instructions)
	}
	return float64(s.Events)
}

// whysText lists the reasons, the commonest first.
func whysText(why map[string]int) string {
	var words []string
	for _, w := range slices.SortedFunc(maps.Keys(why), func(a, b string) int { return cmp.Or(cmp.Compare(why[b], why[a]), cmp.Compare(a, b)) }) {
		words = append(words, fmt.Sprintf("%s %d", whyText(w, ""), why[w]))
	}
	return strings.Join(words, ", ")
}
