//go:build linux && amd64

package record

import (
	"context"
	"sync"

	"github.com/rs/zerolog"

	"vplay/checkpoint"
)

// session is one recording in progress. All of it, and all that it leads to, belongs to
// the tracer's thread, except preempt and relay, which have their own mutexes.
type session struct {
	opt    Options
	log    zerolog.Logger
	ctx    context.Context
	result Result
	done   bool // the recording is over; only the program's end is awaited

	relay     relay
	inherited inheritance // of the program
	threads   map[int]*thread
	groups    []*group

	manifest checkpoint.Manifest
	out      *output
	objects  objectStore
	reaped   sync.WaitGroup // of killed shadows
}

func newSession(ctx context.Context, opt Options) *session {
	out := &output{}
	return &session{opt: opt, log: opt.Logger, ctx: ctx, out: out, objects: newObjectStore(out), threads: map[int]*thread{}}
}

// newThread returns the first thread of a new process in a group of its own.
func (s *session) newThread(pid int) *thread {
	g := &group{session: s}
	p := &process{session: s, space: newSpace(g, pid), pid: pid}
	t := &thread{session: s, proc: p, tid: pid}
	g.procs = append(g.procs, p)
	s.groups = append(s.groups, g)
	s.threads[pid] = t
	return t
}
