package gdbstub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"vplay/replay/debug/api"
)

// A debugger cannot interrupt a monitor command: gdb 13 sends nothing when
// Ctrl-C is pressed while it waits for the reply of qRcmd; it stops listening,
// and takes what comes later for the answers to other packets. So a command that
// may take long is also to be had in pieces. "monitor & COMMAND" starts it and
// "monitor &" asks how it goes; both answer within jobPatience, in one packet, so
// that a debugger whose user has lost patience has nothing to wait for. The first
// line of the answer is "running", perhaps with what is known of the progress
// behind it, or "done", and what the command has written since follows. Any other
// packet ends the job before it is looked at: the target is never asked two
// things at once.

// jobPatience is how long a piece may take.
const jobPatience = 250 * time.Millisecond

// maxJobOutput bounds what a job may have written ahead of its client, in bytes.
const maxJobOutput = 1 << 20

// errTooMuch ends a job that was cancelled before its client has read what it wrote, or that writes too much at once.
var errTooMuch = errors.New("gdbstub: output is not read")

// job is a monitor command that runs while its client does something else.
type job struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	room     sync.Cond // out was read, or the job is cancelled
	over     bool      // it is cancelled
	out      []byte    // written and not yet read
	progress string
	err      error
	panicked any
}

// Write implements io.Writer for the command. It waits while there is much that the client has not read.
func (j *job) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(b) > maxJobOutput {
		return 0, errTooMuch
	}
	for len(j.out)+len(b) > maxJobOutput {
		if j.over {
			return 0, errTooMuch
		}
		j.room.Wait()
	}
	j.out = append(j.out, b...)
	return len(b), nil
}

// Progress implements Progress.
func (j *job) Progress(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.progress = text
}

// isJobPacket reports whether a packet is about the job: qRcmd with a command
// that begins with &.
func isJobPacket(packet string) bool { return strings.HasPrefix(packet, "qRcmd,26") }

// jobCommand answers "monitor & COMMAND", and "monitor &" with command empty.
func (s *session) jobCommand(command string) reply {
	if command != "" {
		s.endJob()
		s.startJob(command)
	}
	if s.job == nil {
		return text(hexText("done\n"))
	}
	wait := time.NewTimer(jobPatience)
	defer wait.Stop()
	select {
	case <-s.job.done:
	case <-wait.C:
	case <-s.conn.done:
	}
	return text(hexText(s.pieceOfJob()))
}

// startJob runs a command on a goroutine of its own.
func (s *session) startJob(command string) {
	ctx, cancel := context.WithCancel(s.ctx)
	j := &job{cancel: cancel, done: make(chan struct{})}
	j.room.L = &j.mu
	context.AfterFunc(ctx, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.over = true
		j.room.Broadcast()
	})
	s.job = j
	go func() {
		defer close(j.done)
		defer func() { j.panicked = recover() }()
		j.err = s.target.Monitor(ctx, command, j)
	}()
}

// pieceOfJob says how the job goes and returns what it has written since. A job
// that is done and wholly read is over.
func (s *session) pieceOfJob() string {
	j := s.job
	over := false
	select {
	case <-j.done:
		over = true
	default:
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	const most = MaxPacket/2 - 4096
	n := min(len(j.out), most)
	piece := string(j.out[:n])
	j.out = append(j.out[:0], j.out[n:]...)
	j.room.Broadcast()
	if !over || len(j.out) > 0 {
		return strings.TrimRight("running "+clip(j.progress, 200), " ") + "\n" + piece
	}
	s.job = nil
	j.cancel()
	s.forget()
	switch {
	case j.panicked != nil:
		s.panicked("monitor", j.panicked)
		piece += "error: internal error, see the log of the server\n"
	case errors.Is(j.err, api.ErrExit):
		s.exit = true
	case j.err != nil:
		piece += fmt.Sprintf("error: %s\n", clip(j.err.Error(), 2000))
	}
	return "done\n" + piece
}

// endJob cancels the job and waits for its end.
func (s *session) endJob() {
	j := s.job
	if j == nil {
		return
	}
	s.job = nil
	j.cancel()
	<-j.done
	if j.panicked != nil {
		s.panicked("monitor", j.panicked)
	}
	s.forget()
}
