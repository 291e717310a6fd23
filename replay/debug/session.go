package debug

import (
	"errors"
	"slices"
	"sync"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay"
)

// Session is a recording that is open for debuggers. Each front end moves about in it
// with a [Cursor] of its own; what is learnt of the past on one's way (the timeline's
// index) serves all. It is safe for concurrent use; a cursor is used by one goroutine.
//
// It is of one process of the recording; [Inferiors] are all of them. A process that calls
// execve becomes another program, with memory of its own: an image. The recording of a
// whole run has the intervals of all of them, and a timeline is of one of them. That of
// the last image stays as long as the session; the others are there while a cursor is in
// them.
type Session struct {
	s       *replay.Session
	symbols *image.Symbols
	memory  int64 // the budget of a timeline

	// RunScript, when set, runs scripts for the monitor command run; it is set before there are cursors.
	RunScript ScriptRunner

	process checkpoint.Process
	ending  checkpoint.Ending

	mu     sync.Mutex
	images []programImage // in order
}

// programImage is one program that the process was.
type programImage struct {
	infos []checkpoint.IntervalInfo
	program

	files    *loader.ModuleFiles
	timeline *replay.Timeline // nil when no cursor is there
	cursors  int              // in it
}

// program is what is known of an image's program; the zero program is not known yet.
type program struct {
	path string
	args []string
	auxv []byte
}

// Open opens a recording for debuggers, which then begin with NewCursor, at the process
// that the recording is about. memory bounds the snapshots of a timeline, in bytes. Close
// ends it, the replay session stays open.
func Open(s *replay.Session, memory int64, symbols *image.Symbols) (*Session, error) {
	list := s.Rec.Processes()
	if len(list) == 0 {
		return nil, errors.New("debug: the recording holds no interval")
	}
	return OpenProcess(s, list[0].PID, memory, symbols)
}

// OpenProcess is Open for any process of the recording: a session shows one process, and
// there may be one for each over the same replay session. The error wraps
// checkpoint.ErrNoProcess for a process that has no interval.
func OpenProcess(s *replay.Session, pid int32, memory int64, symbols *image.Symbols) (*Session, error) {
	t, err := replay.NewProcessTimeline(s, pid, memory)
	if err != nil {
		return nil, err
	}
	d := &Session{s: s, symbols: symbols, memory: memory, ending: s.Rec.Ending(pid)}
	d.process, _ = s.Rec.Process(pid) // it has a timeline
	for _, infos := range s.Rec.ImagesOf(pid) {
		d.images = append(d.images, programImage{infos: infos, files: loader.NewModuleFiles(symbols)})
	}
	// Of the last image the manifest tells what it is; the others are asked when they
	// are entered.
	last, p := &d.images[d.last()], &d.process
	last.program, last.timeline, last.cursors = program{p.Program, p.Args, p.Auxv}, t, 1
	return d, nil
}

// Close gives back what the session holds. Its cursors are closed before.
func (d *Session) Close() { d.leave(d.last()) }

// Recording returns the recording.
func (d *Session) Recording() *checkpoint.Recording { return d.s.Rec }

// Process returns the process that the session shows.
func (d *Session) Process() checkpoint.Process { return d.process }

// Timeline returns the timeline of the last program that the process was.
func (d *Session) Timeline() *replay.Timeline {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.images[d.last()].timeline
}

// last is the index of the last image.
func (d *Session) last() int { return len(d.images) - 1 }

// imageOf returns the index of the image that has an interval; ok is false where none
// has.
func (d *Session) imageOf(id uint32) (n int, ok bool) {
	for n := range d.images {
		if slices.ContainsFunc(d.images[n].infos, func(i checkpoint.IntervalInfo) bool { return i.ID == id }) {
			return n, true
		}
	}
	return 0, false
}

// enter returns the timeline of image n for one more cursor, which leaves it again.
func (d *Session) enter(n int) (*replay.Timeline, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := &d.images[n]
	if i.timeline == nil {
		t, err := replay.NewImageTimeline(d.s, i.infos, d.memory)
		if err != nil {
			return nil, err
		}
		i.timeline = t
	}
	i.cursors++
	return i.timeline, nil
}

// leave says that a cursor is no longer in image n.
func (d *Session) leave(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := &d.images[n]
	if i.cursors--; i.cursors == 0 {
		i.timeline.Close()
		i.timeline, i.files = nil, loader.NewModuleFiles(d.symbols)
	}
}

// filesOf returns the files of the modules of image n.
func (d *Session) filesOf(n int) *loader.ModuleFiles {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.images[n].files
}

// programOf returns what is known of the program of image n.
func (d *Session) programOf(n int) program {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.images[n].program
}

// identified says what the program of image n is.
func (d *Session) identified(n int, p program) {
	d.mu.Lock()
	d.images[n].program = p
	d.mu.Unlock()
}
