//go:build linux && amd64

package record

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// Processes that are not recorded, no children of the program either, and store to what it has
// mapped shared: another program's process that has the same file mapped, an X server. They are
// looked for when the program maps something, and again at the end. From then on outsideWrites
// logs what they have stored.

// storers is the processes of the machine that can store to memory they share.
type storers struct {
	pids map[fileID]int // one that has the object mapped shared and writable
	read time.Time
	cost time.Duration // of reading it
}

// storersLast is how long the list of storers is taken to be true, at least; where reading it
// takes long, it is so much longer that reading takes no more than a small share of the time.
const storersLast = 100 * time.Millisecond

// storerOf returns a process that is not recorded and has an object mapped shared and writable,
// 0 when there is none that the recorder may look at.
func (s *session) storerOf(f fileID) int {
	if now := time.Now(); s.storers.pids == nil || now.Sub(s.storers.read) > max(storersLast, cutShare*s.storers.cost) {
		s.storers.pids = s.readStorers()
		s.storers.read, s.storers.cost = now, time.Since(now)
	}
	return s.storers.pids[f]
}

// readStorers looks at the mappings of all processes that are not recorded, but for the
// recorder and its shadows.
func (s *session) readStorers() map[fileID]int {
	ours := map[int]bool{os.Getpid(): true}
	for pid := range s.shadows {
		ours[pid] = true
	}
	for _, t := range s.threads {
		ours[t.proc.pid] = true
	}
	found := map[fileID]int{}
	entries, _ := os.ReadDir("/proc") // without it there are none to be found
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || ours[pid] {
			continue
		}
		list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid)) // it may have ended, or be another user's
		for line := range bytes.Lines(list) {
			f, ok := storedTo(string(line))
			if !ok {
				continue
			}
			if s.isTraced(pid) {
				break // a child that has not been seen yet
			}
			found[f] = pid
		}
	}
	return found
}

// isTraced reports whether a process is, or will be, recorded: the recorder traces it.
func (s *session) isTraced(pid int) bool {
	_, unrecorded := s.unrecorded[pid]
	return !unrecorded && tracerOf(pid) == unix.Gettid()
}

// storedTo returns what a line of a process's list of mappings lets it store to and share with
// others.
func storedTo(line string) (fileID, bool) {
	f := strings.Fields(line)
	if len(f) < 5 || len(f[1]) != 4 || f[1][1] != 'w' || f[1][3] != 's' {
		return fileID{}, false
	}
	return parseFileID(f[3], f[4])
}

// mayHaveStorers reports whether a mapping shows what a process that was not forked by the
// program may have mapped, too.
func (sp *space) mayHaveStorers(m *checkpoint.Mapping) bool {
	return m.Flags&checkpoint.MapShared != 0 && m.Object != 0 && sp.objects.at(m.Object).Path != sharedAnonymous
}

// The lease of fcntl(2) and the signal that tells of its end (linux/fcntl.h, asm-generic/fcntl.h).
const (
	fSetSig   = 10
	fSetLease = 1024
)

// noWriters reports whether nobody has the file that is mapped open for writing, and so has it mapped for that either, which
// saves a look at all processes: the kernel gives a read lease only then. False where it is not known, as for files of other users.
func (sp *space) noWriters(m *checkpoint.Mapping) bool {
	o := sp.objects.at(m.Object)
	for _, path := range []string{mapFile(sp.pid, m.Start, m.End), o.Path} { // the first is for root alone
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		same := unix.Fstat(fd, &st) == nil && st.Dev == o.Dev && st.Ino == o.Inode && st.Mode&unix.S_IFMT == unix.S_IFREG
		// Who opens the file meanwhile waits until it is closed here; the recorder is told by a signal that it does not pass on.
		_, err = unix.FcntlInt(uintptr(fd), fSetSig, int(unix.SIGURG))
		if same && err == nil {
			_, err = unix.FcntlInt(uintptr(fd), fSetLease, unix.F_RDLCK)
		}
		_ = unix.Close(fd) // ends the lease
		if same {
			return err == nil
		}
	}
	return false
}

// noteStorers looks for storers to what a call has mapped.
func (sp *space) noteStorers(ops []checkpoint.MapOp) {
	for i := range ops {
		m := &ops[i].Map
		if ops[i].Kind != checkpoint.MapOpMap || !sp.mayHaveStorers(m) || sp.stored[m.Object] || sp.noWriters(m) {
			continue
		}
		o := sp.objects.at(m.Object)
		pid := sp.session.storerOf(fileID{o.Dev, o.Inode})
		if pid == 0 {
			continue
		}
		sp.session.noteOnce(fmt.Sprintf("%s is shared with process %d, which is not recorded", o.Path, pid))
		if sp.stored == nil {
			sp.stored = map[uint32]bool{}
		}
		sp.stored[m.Object] = true
		if sp.outside == nil {
			sp.outside = map[uint64][]byte{}
		}
	}
}

// noteLateStorers notes, at the end, what others have mapped behind the program. Unlike what
// noteStorers found, their stores are not in the log.
func (sp *space) noteLateStorers() {
	sp.session.storers.pids = nil // look again: there is no later
	for m := range sp.maps.tree.From(0) {
		if !sp.mayHaveStorers(&m.Mapping) || sp.looksAfter(m) || sp.noWriters(&m.Mapping) {
			continue
		}
		o := sp.objects.at(m.Object)
		if pid := sp.session.storerOf(fileID{o.Dev, o.Inode}); pid != 0 {
			sp.session.noteOnce(fmt.Sprintf("process %d, which is not recorded, has %s mapped, too: replay may differ where the program read what it has stored", pid, o.Path))
		}
	}
}
