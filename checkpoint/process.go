package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// The processes of a recording. Each is recorded, and replayed, by itself: its intervals
// have its PID, and its image at the end is a member of its own. One of them is what the
// recording is about. Its row is in the manifest's own fields and its image at the end is
// the member that recordings of one process have, so that readers which know of one
// process only show that one.

// Process is one process of the session, at its last execve. How it ended is in the End of
// its last interval.
type Process struct {
	PID      int32    `json:"pid"`
	Parent   int32    `json:"parent"` // 0 when it is not in the session
	Image    uint32   `json:"image"`
	Program  string   `json:"program"`
	Args     []string `json:"args,omitempty"`
	Env      []string `json:"env,omitempty"`
	Cwd      string   `json:"cwd"`
	Auxv     []byte   `json:"auxv,omitempty"`
	Signo    int32    `json:"signo"`
	ExitCode int32    `json:"exit_code"`
}

// nameFinalOf names the image at the end of a process that the manifest is not about.
func nameFinalOf(pid int32) string { return fmt.Sprintf("processes/%d/final", pid) }

// mainProcess returns the PID of the process that the manifest is about: pid, or that of the
// last interval when no interval is pid's. ok is false when there are no intervals.
func mainProcess(list []IntervalInfo, pid int32) (main int32, ok bool) {
	if len(list) == 0 {
		return 0, false
	}
	if slices.ContainsFunc(list, func(in IntervalInfo) bool { return in.PID == pid }) {
		return pid, true
	}
	return list[len(list)-1].PID, true
}

// process returns the row of the manifest's process.
func (m *Manifest) process() Process {
	return Process{
		PID: m.PID, Parent: m.Parent, Program: m.Program, Args: m.Args, Env: m.Env, Cwd: m.Cwd,
		Auxv: m.Auxv, Signo: m.Signo, ExitCode: m.ExitCode,
	}
}

// checkProcesses says what is wrong in the manifest's list of processes.
func (m *Manifest) checkProcesses() error {
	seen := map[int32]bool{m.PID: true}
	for _, p := range m.Processes {
		if p.PID < 1 {
			return fmt.Errorf("process %d: a PID is a positive number", p.PID)
		}
		if seen[p.PID] {
			return fmt.Errorf("process %d is listed twice", p.PID)
		}
		seen[p.PID] = true
	}
	return nil
}

// readProcesses makes the list of processes from the manifest, and checks that each
// member with the image at the end of a process is that of one of them.
func (r *Recording) readProcesses() error {
	m := r.Manifest()
	if err := m.checkProcesses(); err != nil {
		return r.damage(nameManifest, err)
	}
	list := r.manifest.IntervalList
	rows := make(map[int32]*Process, len(m.Processes))
	for i := range m.Processes {
		rows[m.Processes[i].PID] = &m.Processes[i]
	}
	r.byPID = make(map[int32]*processRow)
	finals := make(map[string]bool)
	main, _ := mainProcess(list, m.PID)
	for i := range list {
		pid := list[i].PID
		of := r.byPID[pid]
		if of == nil {
			row := rows[pid]
			of = &processRow{row: len(r.processes), isManifest: row == nil && pid == main}
			r.byPID[pid] = of
			p := Process{PID: pid}
			switch {
			case of.isManifest:
				p = m.process()
				p.PID = pid
			case row != nil:
				p = *row
			}
			r.processes = append(r.processes, p)
			finals[nameFinalOf(pid)] = pid != main
		}
		of.intervals = append(of.intervals, i)
		r.processes[of.row].Image = list[i].Image
	}
	if of := r.byPID[main]; of != nil {
		p := r.processes[of.row]
		r.processes = slices.Insert(slices.Delete(r.processes, of.row, of.row+1), 0, p)
		for i := range r.processes[:of.row+1] {
			r.byPID[r.processes[i].PID].row = i
		}
	}
	for name, info := range r.listed {
		if info.Kind == kindProcessFinal && !finals[name] {
			return r.damage(nameManifest, fmt.Errorf("the member %q is of no process that has an interval", name))
		}
	}
	return nil
}

// processRow says where a process is in the lists of a recording.
type processRow struct {
	row        int   // in Recording.processes
	intervals  []int // indexes of its intervals, in order
	isManifest bool  // the manifest's own fields are about it
}

// Processes lists the processes of the session that have an interval: the one that the
// manifest is about first, then the others by their first interval. Of a process that the
// manifest says nothing about only PID and Image are known. Image is that of the process's
// last interval. The slice must not be changed.
func (r *Recording) Processes() []Process { return r.processes }

// Process returns the row of a process; ok is false when none of the intervals is its.
func (r *Recording) Process(pid int32) (p Process, ok bool) {
	of := r.byPID[pid]
	if of == nil {
		return Process{}, false
	}
	return r.processes[of.row], true
}

// Ending is how a process ended.
type Ending struct {
	// Kind is the end of its last interval: EndCrash, EndExit, EndStop where the recorder
	// stopped, or any other where it is not known.
	Kind     EndKind
	Signo    int32 // EndCrash: the signal that killed it
	ExitCode int32 // EndExit
}

// Ending says how a process ended. The zero Ending is of one that has no interval.
func (r *Recording) Ending(pid int32) Ending {
	of := r.byPID[pid]
	if of == nil {
		return Ending{}
	}
	m, p := r.Manifest(), &r.processes[of.row]
	e := Ending{r.manifest.IntervalList[of.intervals[len(of.intervals)-1]].End, p.Signo, p.ExitCode}
	if of.isManifest && m.Crash {
		e.Kind = EndCrash
	}
	return e
}

// mainPID is the PID of the process that the manifest is about, 0 in a recording without
// intervals.
func (r *Recording) mainPID() int32 {
	if len(r.processes) == 0 {
		return 0
	}
	return r.processes[0].PID
}

// LastImage lists the intervals that a debugger is shown, in order: those of the
// process that the manifest is about, since its last execve. Other processes and
// earlier images of this one have memory of their own, whatever the order of their
// intervals. A manifest whose process has no interval means that of the last one.
func (r *Recording) LastImage() []IntervalInfo { return r.LastImageOf(r.mainPID()) }

// LastImageOf is LastImage for any process, nil for one that has no interval.
func (r *Recording) LastImageOf(pid int32) []IntervalInfo {
	images := r.ImagesOf(pid)
	if len(images) == 0 {
		return nil
	}
	return images[len(images)-1]
}

// Images lists the intervals of that process, those of each image together, in order.
func (r *Recording) Images() [][]IntervalInfo { return r.ImagesOf(r.mainPID()) }

// ImagesOf is Images for any process, nil for one that has no interval.
func (r *Recording) ImagesOf(pid int32) [][]IntervalInfo {
	of := r.byPID[pid]
	if of == nil {
		return nil
	}
	var out [][]IntervalInfo
	for _, i := range of.intervals {
		in := r.manifest.IntervalList[i]
		n := len(out) - 1
		if n < 0 || out[n][0].Image != in.Image {
			out = append(out, nil)
			n++
		}
		out[n] = append(out[n], in)
	}
	return out
}

// Final reads the image at the end of the last interval of the process that the manifest
// is about. Errors: ErrNoFinal, *FormatError.
func (r *Recording) Final() (*Final, error) { return r.readFinal(nameFinal, kindFinal) }

// FinalOf is Final for any process. The error is ErrNoFinal also for one that has no
// interval.
func (r *Recording) FinalOf(pid int32) (*Final, error) {
	if r.byPID[pid] == nil {
		return nil, ErrNoFinal
	}
	if pid == r.mainPID() {
		return r.Final()
	}
	return r.readFinal(nameFinalOf(pid), kindProcessFinal)
}

func (r *Recording) readFinal(name, kind string) (*Final, error) {
	if info, ok := r.listed[name]; !ok || info.Kind != kind {
		return nil, ErrNoFinal
	}
	ch := r.charge(name)
	defer ch.drop()
	raw, err := r.decoded(name, kind, maxHeadRaw, ch)
	if err != nil {
		return nil, err
	}
	f, err := decodeWhole(raw, r.version(), &r.store, ch, codeFinal)
	if err == nil {
		err = ch.add(int64(len(f.Maps)) * regionBytes)
	}
	if err == nil {
		err = r.spendOn(ch)
	}
	if err != nil {
		return nil, r.damage(name, err)
	}
	keep(ch, f)
	return f, nil
}

// SetFinal sets the image at the end of the last interval of the process that the
// manifest is about; a later call replaces it. The pages of its table must have been
// added. f is not changed nor kept. Errors: ErrFinished, and one that names a page that
// was not added.
func (w *Writer) SetFinal(f *Final) error {
	return w.setFinal(f, "final image", func(body []byte) { w.final = body })
}

// SetFinalOf is SetFinal for any process. Finish fails when a process with a final image
// has no interval, and when the manifest's process has one from SetFinal, too.
func (w *Writer) SetFinalOf(pid int32, f *Final) error {
	return w.setFinal(f, fmt.Sprintf("final image of process %d", pid), func(body []byte) { w.finals[pid] = body })
}

// setFinal encodes a final image at once: as a part of the file it takes a fraction of
// what its table takes, and there may be many. Which member it becomes the manifest tells
// at the end, so that set gets the member without its header frame.
func (w *Writer) setFinal(f *Final, what string, set func(body []byte)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	copied := *f
	var err error
	if copied.Pages, err = w.table(f.Pages, what); err != nil {
		return err
	}
	member, _, err := encodeMember(kindProcessFinal, w.version, w.opts.Level, &w.store, func(c *coder) { codeFinal(c, &copied) })
	if err != nil {
		return fmt.Errorf("checkpoint: %s: %w", what, err)
	}
	set(member[len(appendHeader(nil, kindProcessFinal, w.version)):])
	return nil
}

// writeFinals writes the images at the end of the processes.
func (w *Writer) writeFinals(m *Manifest) error {
	if err := m.checkProcesses(); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	main, _ := mainProcess(w.intervals, m.PID)
	present := make(map[int32]bool)
	for i := range w.intervals {
		present[w.intervals[i].PID] = true
	}
	for _, pid := range slices.Sorted(maps.Keys(w.finals)) {
		if !present[pid] {
			return fmt.Errorf("checkpoint: process %d has a final image and no interval", pid)
		}
		if pid != main {
			if err := w.member(nameFinalOf(pid), kindProcessFinal, append(appendHeader(nil, kindProcessFinal, w.version), w.finals[pid]...), 0); err != nil {
				return err
			}
			w.members[len(w.members)-1].Optional = true // those who know of one process skip it
			continue
		}
		if w.final != nil {
			return errors.New("checkpoint: the manifest's process has two final images")
		}
		w.final = w.finals[pid]
	}
	if w.final == nil {
		return nil
	}
	return w.member(nameFinal, kindFinal, append(appendHeader(nil, kindFinal, w.version), w.final...), 0)
}
