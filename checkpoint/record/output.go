//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"vplay/checkpoint"
)

// The file that is written. What goes into it, and in which order, for a ring is in ring.go.

// output is the file being written. Before the crash, or without KeepAlways,
// there is none.
type output struct {
	w     *checkpoint.Writer
	path  string
	known knownPages // those that are in it
	held  heldPages  // while there is none
	// builds are the build-ids of files that were looked at.
	builds map[fileVersion]string

	reused uint64 // of the known pages

	mu      sync.Mutex
	started time.Time // of the final write; zero before
	stopped bool
}

// errStopped says that the user has stopped the writing.
var errStopped = errors.New("writing was stopped by a second interrupt")

// graceInterrupt is how long after the start of the final write an interrupt
// is taken for the one that ended the program.
const graceInterrupt = 200 * time.Millisecond

func (o *output) open() bool { return o.w != nil }

func (o *output) create(path string) error {
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{Overwrite: true})
	if err == nil {
		o.w, o.path, o.known, o.held = w, path, nil, heldPages{}
	}
	return err
}

// interrupt is called for each SIGINT the recorder gets: one that comes while
// the recording is written stops that.
func (o *output) interrupt() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.started.IsZero() && time.Since(o.started) > graceInterrupt {
		o.stopped = true
	}
}

func (o *output) begin() {
	o.mu.Lock()
	o.started = time.Now()
	o.mu.Unlock()
}

// pause says that what is written next is no end: an interrupt is meant for the program again.
func (o *output) pause() {
	o.mu.Lock()
	o.started = time.Time{}
	o.mu.Unlock()
}

func (o *output) check() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return errStopped
	}
	return nil
}

func (o *output) page(b []byte) (checkpoint.PageRef, error) { return o.w.AddPage(b) }

func (o *output) objectPage(k pageKey, data []byte) (checkpoint.PageRef, error) {
	ref, err := o.w.AddPage(data)
	if err != nil {
		return ref, err
	}
	return ref, o.w.AddObjectPage(checkpoint.ObjectPage{Object: k.object, Index: k.index, Ref: ref})
}

func (o *output) interval(iv *checkpoint.Interval) error { return o.w.AddInterval(iv) }

func (o *output) abort() {
	if o.w != nil {
		_ = o.w.Abort()
		o.w = nil
	}
}

func sortEntries(p []checkpoint.PageEntry) {
	slices.SortFunc(p, func(a, b checkpoint.PageEntry) int {
		switch {
		case a.Addr < b.Addr:
			return -1
		case a.Addr > b.Addr:
			return 1
		}
		return 0
	})
}

// streams reports whether intervals are written as they end, and not kept in a ring.
func (s *session) streams() bool { return s.opt.Keep == KeepAlways && s.out.open() }

// hasWritten reports whether an earlier process of that number is in the file: what they leave
// could not be told apart.
func (s *session) hasWritten(pid int) bool {
	had := slices.ContainsFunc(s.written, func(p *process) bool { return p.pid == pid })
	if had {
		s.noteOnce(fmt.Sprintf("process %d runs on unrecorded: an earlier process of the recording had this number", pid))
	}
	return had
}

// noteWritten notes that intervals of the process are in the file.
func (s *session) noteWritten(p *process) {
	if !slices.Contains(s.written, p) {
		s.written = append(s.written, p)
	}
}

// writeEnd writes the last that is recorded of a process: with a ring everything that stands
// in it, and the final image. While others end, too, most of it is left to writeLate.
func (g *group) writeEnd(m *snapshot, final *checkpoint.Final) error {
	s := g.session
	s.out.begin()
	defer s.out.pause()
	p, err := g.takePast(m, final)
	if err != nil {
		return err
	}
	if p.ring == nil {
		return s.writePast(&p)
	}
	if s.ending {
		g.ring, g.prev = nil, nil
		s.late = append(s.late, p)
		return nil
	}
	err = s.writePast(&p)
	g.ring = p.ring
	return err
}

// writeLate writes the pasts of the processes that were let go before.
func (s *session) writeLate() error {
	if len(s.late) == 0 {
		return nil
	}
	s.out.begin()
	defer s.out.pause()
	defer s.dropLate()
	for i := range s.late {
		p := &s.late[i]
		switch err := s.writePast(p); {
		case errors.Is(err, ErrLost): // nothing of it is written yet, and the others count
			s.noteOnce(fmt.Sprintf("process %d is left out: %v", p.group.of.pid, err))
		case err != nil:
			return err
		}
	}
	return nil
}

// dropLate gives up those that are not written.
func (s *session) dropLate() {
	for i := range s.late {
		for _, iv := range s.late[i].ring {
			iv.close()
			s.dropLog(iv)
		}
	}
	s.late = nil
	s.logMemory.trim()
}

// crashPath returns the file for the crash of a process. With OnCrashEach there may be
// several: those behind the first have the process's number in their names, unless Options.Name
// names them.
func (s *session) crashPath(p *process) string {
	switch {
	case s.opt.Name != nil:
		return s.opt.Name(p.pid)
	case s.result.Path == "":
		return s.opt.Path
	}
	base, isVplay := strings.CutSuffix(s.opt.Path, ".vplay")
	path := fmt.Sprintf("%s-%d", base, p.pid)
	if isVplay {
		path += ".vplay"
	}
	return path
}

// finishWhenOver makes the recording whole once there is nothing more to come, and all are let go that go on.
func (s *session) finishWhenOver() error {
	if !s.out.open() || s.ending || len(s.unrecorded) > 0 || s.anyLeaves() {
		return nil
	}
	for _, g := range s.groups {
		if !g.done {
			return nil
		}
	}
	return s.finish()
}

// finish makes the recording whole.
func (s *session) finish() error {
	if err := s.writeLate(); err != nil {
		return err
	}
	if err := s.out.check(); err != nil {
		return err
	}
	wrote := len(s.written) > 0
	if err := s.writeManifest(); err != nil || !wrote {
		return err
	}
	s.result.recorded(s.out.path)
	s.result.Stats.KnownPages = s.out.reused
	s.written, s.crashed = nil, nil
	return nil
}

// writeManifest writes what makes the file whole; without any interval there is none.
func (s *session) writeManifest() error {
	w := s.out.w
	s.out.w = nil
	if len(s.written) == 0 {
		return w.Abort()
	}
	main := s.about()
	if s.cpuOf != nil {
		s.manifest.CPU, s.cpuOf = s.cpuOf.identity(), nil
	}
	m := s.manifest
	m.PID, m.Parent, m.Program, m.Args, m.Env = main.about.PID, main.about.Parent, main.about.Program, main.about.Args, main.about.Env
	m.Cwd, m.Auxv, m.Signo, m.ExitCode = main.about.Cwd, main.about.Auxv, main.about.Signo, main.about.ExitCode
	m.Crash = main == s.crashed
	for _, p := range s.written {
		if p != main {
			m.Processes = append(m.Processes, p.about)
		}
	}
	return w.Finish(m)
}

// about returns the process that the recording is about: the first that crashed, else the
// program that was started, if there is anything of it.
func (s *session) about() *process {
	for _, p := range []*process{s.crashed, s.first} {
		if p != nil && slices.Contains(s.written, p) {
			return p
		}
	}
	return s.written[0]
}
