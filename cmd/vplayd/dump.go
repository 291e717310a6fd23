package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/debug/text"
	"vplay/replay/observe"
)

// The verb dump: the log of a recording as text, with system calls as strace(1) prints
// them. The JSON form is in dumpjson.go, and the text of an event in package checkpoint.

func newDump() *cobra.Command {
	var raw, strs, asJSON bool
	c := &cobra.Command{
		Use:   "dump [flags] [RECORDING] [INTERVALS]",
		Short: "print the log of a recording, system calls as strace does",
		Long: `Dump prints, for each interval, the threads, the memory map, each event of the
log and how the interval ended. System calls are printed from the same table
that recorded them. The log alone holds no argument strings: with --strings the
intervals are replayed, and paths and buffers are shown as strace shows them.
INTERVALS is one ID, or a range A-B; --process chooses the intervals of one process
of several, whose events are numbered in one order by seq. With --json each
interval is a line of JSON, and so is each of its events, behind it. More than a
gigabyte of text, and more than ten times the file's size, needs --limit.

Once the file is open, dump can open no other file and start no other program,
where the kernel has Landlock and seccomp (vplayd doctor tells).`,
		Example: "  vplayd dump sort-1.vplay\n  vplayd dump --strings sort-1.vplay 3-5\n  vplayd dump --json sort-1.vplay | jq 'select(.kind == \"enter\") | .text'\n  vplayd dump --process 4711 make-1.vplay",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			rec, first, last, err := openIntervals(c, args)
			if err != nil {
				return err
			}
			defer rec.Close()
			f := dumpFlags{first: first, last: last, raw: raw, strings: strs, json: asJSON}
			pid, ok, err := chosenProcess(c, rec)
			if err != nil {
				return err
			}
			if ok {
				f.process = &pid
			}
			w := bufio.NewWriter(c.OutOrStdout())
			if err := dump(c.Context(), w, rec, f); err != nil {
				return err
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVarP(&raw, "raw", "r", false, "every byte, and system calls by number")
	c.Flags().BoolVarP(&strs, "strings", "s", false, "replay, to show paths and buffers")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per interval, and then per event")
	addProcessFlag(c, "all")
	addSandboxFlag(c)
	return c
}

// dumpFlags say what to print.
type dumpFlags struct {
	first, last  uint32 // intervals
	process      *int32 // of this process; nil: of all
	raw, strings bool
	json         bool
}

// openIntervals opens the recording of a verb with the arguments [RECORDING] [INTERVALS], and
// enters the sandbox.
func openIntervals(c *cobra.Command, args []string) (rec *checkpoint.Recording, first, last uint32, err error) {
	last = ^uint32(0)
	if rec, _, err = openRecording(c, args[:min(len(args), 1)]); err != nil {
		return nil, 0, 0, err
	}
	if err = enterSandbox(c, sandbox.Access{}); err == nil && len(args) == 2 {
		first, last, err = intervalRange(args[1])
	}
	if err != nil {
		rec.Close()
		return nil, 0, 0, err
	}
	return rec, first, last, nil
}

// intervalRange reads an ID, or a range A-B of them.
func intervalRange(s string) (first, last uint32, err error) {
	a, b, found := strings.Cut(s, "-")
	lo, err := strconv.ParseUint(a, 10, 32)
	hi := lo
	if err == nil && found {
		hi, err = strconv.ParseUint(b, 10, 32)
	}
	if err != nil || lo > hi {
		return 0, 0, usageError{withHint(fmt.Errorf("bad interval %q", s), exitUsage, "INTERVALS is an ID or a range: 3 or 3-5")}
	}
	return uint32(lo), uint32(hi), nil
}

func dump(ctx context.Context, w io.Writer, rec *checkpoint.Recording, f dumpFlags) error {
	var s *replay.Session
	if f.strings {
		var err error
		if s, err = replay.NewSession(rec); err != nil {
			return err
		}
		defer s.Close()
	}
	found := false
	for _, i := range rec.Intervals() {
		if i.ID < f.first || i.ID > f.last || f.process != nil && i.PID != *f.process {
			continue
		}
		found = true
		iv, err := rec.Interval(i.ID)
		if err != nil {
			return err
		}
		o := checkpoint.TextOptions{Full: f.raw}
		if !f.raw {
			o.Call = callText
		}
		if f.strings {
			if o.Call, err = replayedCalls(ctx, s, i.ID); err != nil {
				return err
			}
		}
		write := checkpoint.WriteText
		if f.json {
			write = dumpJSON
		}
		if err := write(charged{untilDone{ctx, w}, rec}, iv, o); err != nil {
			return err
		}
	}
	if infos := rec.Intervals(); !found && len(infos) > 0 {
		if f.process != nil {
			ids := intervalsOf(rec, *f.process)
			return usageError{withHint(fmt.Errorf("no interval of process %d from %d to %d", *f.process, f.first, f.last), exitUsage,
				"it has %s from %d to %d", text.Plural(len(ids), "interval"), ids[0], ids[len(ids)-1])}
		}
		return usageError{withHint(fmt.Errorf("no interval %d in the recording", f.first), exitUsage,
			"it has %d to %d", infos[0].ID, infos[len(infos)-1].ID)}
	}
	return nil
}

// untilDone is a writer that refuses once its context has ended: an interval may
// have millions of events.
type untilDone struct {
	ctx context.Context
	w   io.Writer
}

// Write implements io.Writer.
func (u untilDone) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(p)
}

// printWork is how many times as long as a byte is decoded it takes to print one.
const printWork = 3

// charged is a writer that charges a recording's budget for what is written: what decodes
// as little may print as gigabytes.
type charged struct {
	w   io.Writer
	rec *checkpoint.Recording
}

// Write implements io.Writer.
func (c charged) Write(p []byte) (int, error) {
	if err := c.rec.Budget().Spend(printWork*int64(len(p)), "its text"); err != nil {
		var limit *checkpoint.LimitError
		if errors.As(err, &limit) {
			limit.File = c.rec.File()
		}
		return 0, err
	}
	return c.w.Write(p)
}

// noMemory is a guest of which nothing is known: the log holds no argument
// strings, so that pointers print as addresses.
type noMemory struct{}

func (noMemory) ReadAt(uint64, []byte) int { return 0 }

// callText prints a system call's entry or result, or a signal.
func callText(e *checkpoint.Event) string {
	switch e.Kind {
	case checkpoint.EventEnter:
		return abi.Format(noMemory{}, e.NR, e.Args)
	case checkpoint.EventSignal, checkpoint.EventFault:
		return debug.SignalText(e)
	default:
		return abi.FormatResult(e.NR, e.Result)
	}
}

// replayedCalls replays an interval and returns a printer of its system calls
// with what their arguments point to. Calls behind a divergence print as without
// replay.
func replayedCalls(ctx context.Context, s *replay.Session, id uint32) (func(*checkpoint.Event) string, error) {
	var texts []string
	event := func(v *observe.View, e *checkpoint.Event) {
		switch e.Kind {
		case checkpoint.EventEnter:
			texts = append(texts, abi.Format(debug.ReadAt{Memory: debug.Memory{Space: v.Machine().Mem}}, e.NR, e.Args))
		case checkpoint.EventExit:
			texts = append(texts, abi.FormatResult(e.NR, e.Result))
		default: // No call.
		}
	}
	if err := observeInterval(ctx, s, id, &observe.Observer{Event: event}); err != nil && !replay.Unmatched(err) {
		return nil, err
	}
	return func(e *checkpoint.Event) string {
		isCall := e.Kind == checkpoint.EventEnter || e.Kind == checkpoint.EventExit
		if len(texts) == 0 || !isCall {
			return callText(e)
		}
		t := texts[0]
		texts = texts[1:]
		return t
	}, nil
}
