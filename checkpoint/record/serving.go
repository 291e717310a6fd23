//go:build linux && amd64

package record

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Programs that the kernel asks before others get at files: those that serve a file system (FUSE), and those that
// allow each opening of a file (fanotify). The recorder reads the files of the programs that it records, and while it waits in
// the kernel for such a program's answer it answers none of its stops: both would wait for ever. So such a program is let go, unrecorded.
//
// One that serves a file system is recorded as long as no other process that is recorded makes a call: what is asked of it comes from outside
// then. Its forked children may be those that serve (a daemon's), and count as it does until they execute a program. One that allows
// openings is asked for its own files, too.

// Reasons why a process is let go.
const (
	servesFiles = "it serves a file system (FUSE) to processes that are recorded, and the recorder reads its files, too"
	allowsFiles = "it decides which files are opened (fanotify), those too that the recorder reads"
)

// fanClasses are the classes of fanotify_init(2) whose events wait for an answer (linux/fanotify.h: FAN_CLASS_CONTENT, FAN_CLASS_PRE_CONTENT).
const fanClasses = unix.FAN_CLASS_CONTENT | unix.FAN_CLASS_PRE_CONTENT

// beforeServing looks at a call's entry for programs that serve.
func (t *thread) beforeServing() error {
	s, c := t.session, &t.call
	switch c.nr {
	case unix.SYS_FANOTIFY_INIT:
		if c.args[0]&fanClasses != 0 {
			return t.giveUp(allowsFiles)
		}
	case unix.SYS_MOUNT:
		t.noteServes(c.args[2])
	case unix.SYS_FSOPEN:
		t.noteServes(c.args[0])
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT:
		s.servers = slices.DeleteFunc(s.servers, func(p *process) bool { return p == t.proc })
		t.noteServesBy()
	case unix.SYS_EXIT_GROUP, unix.SYS_EXIT:
		return nil
	}
	if len(s.servers) == 0 || slices.Contains(s.servers, t.proc) {
		return nil
	}
	return s.letServersGo(t)
}

// noteServes notes that the thread's process serves files if it mounts a file system of such a type.
func (t *thread) noteServes(fstype uint64) {
	if name, ok := t.space().readString(fstype); ok && strings.HasPrefix(name, "fuse") {
		t.session.noteServer(t.proc)
	}
}

// noteServesBy does it for a process that has another mount the file system: a program without privileges executes fusermount, which sends
// it the descriptor.
func (t *thread) noteServesBy() {
	name, ok := t.execName()
	if !ok || !strings.HasPrefix(filepath.Base(name), "fusermount") {
		return
	}
	argv := t.call.args[1]
	if t.call.nr == unix.SYS_EXECVEAT {
		argv = t.call.args[2]
	}
	var word [8]byte
	for ; t.space().readMem(argv, word[:]) == len(word); argv += uint64(len(word)) {
		arg, ok := t.space().readString(le64(word[:]))
		if !ok {
			break
		}
		if arg == "-u" {
			return // it unmounts
		}
	}
	if by := t.session.threads[t.proc.parent]; by != nil {
		t.session.noteServer(by.proc)
	}
}

// noteServer notes that a process serves files.
func (s *session) noteServer(p *process) {
	if !slices.Contains(s.servers, p) {
		s.servers = append(s.servers, p)
	}
}

// inheritServing notes what a new process has of the one that has forked it.
func (s *session) inheritServing(of, p *process) {
	if slices.Contains(s.servers, of) {
		s.noteServer(p)
	}
}

// letServersGo ends the recording of processes that serve files: t, of another group, makes a call.
func (s *session) letServersGo(t *thread) error {
	list := s.servers
	s.servers = nil
	for _, p := range list {
		g := p.space.group
		if p.over || p.detached || g.done || g == t.group() {
			continue
		}
		if p == s.first {
			s.endEarly(servesFiles)
		} else {
			s.noteOnce(fmt.Sprintf("process %d runs on unrecorded: %s", p.pid, servesFiles))
		}
		if err := g.letGoFor(servesFiles); err != nil {
			return err
		}
	}
	return nil
}
