package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/rs/zerolog"

	recorder "vplay/checkpoint/record"
	"vplay/replay/debug/text"
)

// What asks for recordings while a program is recorded. The command is in triggercommand_linux_amd64.go,
// the socket in triggerhttp_linux_amd64.go; lines on standard error are package checkpoint/record's, and
// here is only how often one counts.

// triggers are what may ask for recordings of one program.
type triggers struct {
	flags  triggerFlags
	keep   *keeper
	quiet  bool
	handle recorder.Handle
	log    zerolog.Logger
	wait   sync.WaitGroup
	ends   []func()

	mu     sync.Mutex
	status triggerStatus
	lineAt time.Time // of the last line that asked for one
}

// triggerStatus is what GET /status answers.
type triggerStatus struct {
	State     string       `json:"state"` // starting, recording or ended
	Program   string       `json:"program"`
	PID       int          `json:"pid,omitempty"`
	Recorder  int          `json:"recorder"`
	Since     *time.Time   `json:"since,omitempty"`
	Snapshots int          `json:"snapshots"`
	Last      *triggerFile `json:"last,omitempty"`
}

// triggerFile is a recording that was asked for.
type triggerFile struct {
	Path    string    `json:"path"`
	Trigger string    `json:"trigger"`
	Time    time.Time `json:"time"`
}

// startTriggers has the flags' triggers ask the recording with these options. The returned function, which is
// called when that is over, ends them.
func startTriggers(f *recordFlags, opt *recorder.Options, keep *keeper) (stop func(), err error) {
	if !f.trigger.wanted() {
		return func() {}, nil
	}
	g := &triggers{flags: f.trigger, keep: keep, quiet: f.quiet, log: opt.Logger}
	g.status = triggerStatus{State: "starting", Program: keep.program, Recorder: os.Getpid()}
	opt.Handle = &g.handle
	if g.flags.stderr != "" {
		opt.Stderr = &recorder.StderrTrigger{Pattern: regexp.MustCompile(g.flags.stderr), Fires: g.onLine}
	}
	if g.flags.http != "" {
		if err := g.listen(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.ends = append(g.ends, cancel)
	started := opt.Started
	opt.Started = func(pid int) {
		if started != nil {
			started(pid)
		}
		now := time.Now()
		g.mu.Lock()
		g.status.State, g.status.PID, g.status.Since = "recording", pid, &now
		g.mu.Unlock()
		if g.flags.command != "" {
			g.wait.Go(func() { g.watch(ctx, pid) })
		}
	}
	return g.stop, nil
}

// stop ends the triggers.
func (g *triggers) stop() {
	g.mu.Lock()
	g.status.State = "ended"
	g.mu.Unlock()
	for _, end := range g.ends {
		end()
	}
	g.wait.Wait()
}

// pid returns the program's process.
func (g *triggers) pid() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.status.PID
}

// take writes a recording.
func (g *triggers) take(trigger string) (string, error) {
	path := g.keep.path(g.pid())
	err := g.handle.Snapshot(path)
	g.wrote(path, trigger, "", err)
	return path, err
}

// mayRetry reports whether a recording that failed by err may be written a little later.
func mayRetry(err error) bool {
	return errors.Is(err, recorder.ErrBusy) || errors.Is(err, recorder.ErrNothingYet)
}

// wrote says what became of a recording, which line asked for.
func (g *triggers) wrote(path, trigger, line string, err error) {
	switch {
	case errors.Is(err, recorder.ErrOver):
		return // the program has ended meanwhile; record says how
	case mayRetry(err):
		g.log.Info().Err(err).Str("trigger", trigger).Msg("no recording for now")
		return
	case err != nil:
		printError(withHint(fmt.Errorf("--%s asked for a recording: %w", trigger, err), exitFailed, "is there space in %s? The program runs on", g.keep.store.dir))
		return
	}
	now := time.Now()
	g.mu.Lock()
	g.status.Snapshots++
	g.status.Last = &triggerFile{path, trigger, now}
	g.mu.Unlock()
	if st, err := os.Stat(path); err == nil && !g.quiet {
		fmt.Fprintf(stderr, "vplayd: %s: %s; asked for by --%s%s\n", path, size(st.Size()), trigger, line)
	}
	g.keep.tidy(path)
}

// onLine takes a line on standard error that matches.
func (g *triggers) onLine(line []byte) (path string, done func(error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if !g.lineAt.IsZero() && now.Sub(g.lineAt) < g.flags.pause {
		return "", nil
	}
	g.lineAt = now
	shown := ": " + text.Printable(shorten(string(line), maxCommand))
	path = g.keep.path(g.status.PID)
	g.wait.Add(1)
	return path, func(err error) {
		defer g.wait.Done()
		if mayRetry(err) {
			g.mu.Lock()
			g.lineAt = time.Time{} // the next line counts
			g.mu.Unlock()
		}
		g.wrote(path, "trigger-stderr", shown, err)
	}
}
