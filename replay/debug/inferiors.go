package debug

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/debug/api"
)

// Inferiors are the processes of a recording, for a front end that shows all of them. Each
// has a cursor, and is replayed by itself. All methods of a target are about the selected
// one: that is the cursor which is embedded here.
//
// A movement moves the selected process along its own log. The others stay where they are,
// or, when all are to be moved, are then shown at the same moment of the session (see
// sessionTime): each is replayed to there when it is selected, not before, whatever was moved
// alone meanwhile. One that is selected for the first time is shown at the moment of the
// one that was moved last. A process that has not begun stands at its beginning,
// one that has ended at its end.
//
// It is used by one goroutine.
type Inferiors struct {
	*Cursor
	first *Session
	all   map[int]*shown
	pids  []int
	now   sessionTime // of the process that was moved last
}

// shown is a process that has been selected.
type shown struct {
	session *Session
	cursor  *Cursor
	due     *sessionTime // to which it has been moved along with another process, nil once it is there
}

// NewInferiors returns the processes of the recording, with that of the session selected,
// at its end. Close gives them back. Errors: as NewCursor.
func (d *Session) NewInferiors() (*Inferiors, error) {
	g, err := d.NewCursor()
	if err != nil {
		return nil, err
	}
	v := &Inferiors{Cursor: g, first: d, all: map[int]*shown{g.pid(): {session: d, cursor: g}}, pids: []int{g.pid()}}
	for _, p := range d.s.Rec.Processes() {
		if pid := int(p.PID); pid != g.pid() {
			v.pids = append(v.pids, pid)
		}
	}
	if v.now, err = g.sessionTime(); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// Close gives back what the processes hold.
func (v *Inferiors) Close() {
	for _, i := range v.all {
		i.cursor.Close()
		if i.session != v.first {
			i.session.Close()
		}
	}
}

// PIDs implements api.ProcessTarget.
func (v *Inferiors) PIDs() []int { return v.pids }

// Select implements api.ProcessTarget.
func (v *Inferiors) Select(pid int) error {
	i := v.all[pid]
	if i == nil {
		var err error
		if i, err = v.open(pid); err != nil {
			return err
		}
		v.all[pid] = i
	}
	if i.due != nil {
		if err := i.cursor.place(context.Background(), *i.due); err != nil {
			return err
		}
		i.due = nil
	}
	v.Cursor = i.cursor
	return nil
}

// open opens a process. The memory of a session is for all processes together.
func (v *Inferiors) open(pid int) (*shown, error) {
	if !slices.Contains(v.pids, pid) {
		return nil, fmt.Errorf("process %d is not in the recording", pid)
	}
	d, err := OpenProcess(v.s, int32(pid), v.first.memory/int64(len(v.pids)), v.first.symbols)
	if err != nil {
		return nil, err
	}
	d.RunScript = v.first.RunScript
	g, err := d.NewCursor()
	if err != nil {
		d.Close()
		return nil, err
	}
	// It is at its end, which may be another time of the session than the recording's end.
	now := v.now
	return &shown{session: d, cursor: g, due: &now}, nil
}

// note says that the selected process was moved, and with all that the others are to
// be moved to the same moment. err is what is said of the movement.
func (v *Inferiors) note(all bool, err error) error {
	now, failed := v.sessionTime()
	if failed != nil {
		return errors.Join(err, failed)
	}
	v.now = now
	for _, i := range v.all {
		if all && i.cursor != v.Cursor {
			i.due = &now
		}
	}
	return err
}

// Resume implements api.Target.
func (v *Inferiors) Resume(ctx context.Context, r api.Resume) (stop api.Stop, err error) {
	stop, err = v.Cursor.Resume(ctx, r)
	return stop, v.note(r.All, err)
}

// Monitor implements api.Target. A command that moves a process moves all.
func (v *Inferiors) Monitor(ctx context.Context, line string, out io.Writer) error {
	if rest, ok := strings.CutPrefix(strings.TrimSpace(line), processFlag); ok {
		return v.monitorOf(ctx, rest, out)
	}
	image, was := v.image, v.position()
	err := v.Cursor.Monitor(ctx, line, out)
	if v.image == image && (v.position() == was || was == nowhere && v.cur.AtEnd()) {
		return err
	}
	return v.note(true, err)
}

// processFlag before a monitor command names the process that it is about, because gdb does
// not always say which inferior its user has selected.
const processFlag = "--process "

// monitorOf runs the command of a line that begins with a PID about that process.
func (v *Inferiors) monitorOf(ctx context.Context, line string, out io.Writer) error {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	pid, err := strconv.Atoi(word)
	if err != nil {
		return fmt.Errorf("%sPID COMMAND: %q is no process", processFlag, word)
	}
	if strings.HasPrefix(strings.TrimSpace(rest), processFlag) {
		return errors.New("name one process")
	}
	now := v.pid()
	if err := v.Select(pid); err != nil {
		return err
	}
	return errors.Join(v.Monitor(ctx, rest, out), v.Select(now))
}

// Rewind implements api.Target: the others are moved along.
func (v *Inferiors) Rewind() error { return v.note(true, v.Cursor.Rewind()) }

// Detached implements api.Target: the positions stay.
func (v *Inferiors) Detached() {
	for _, i := range v.all {
		i.cursor.Detached()
	}
}

// ProcessState is a process of the recording.
type ProcessState struct {
	PID     int      `json:"pid"`
	Parent  int      `json:"parent,omitempty"` // 0 when it is not known
	Program string   `json:"program,omitempty"`
	Args    []string `json:"args,omitempty"`
	Shown   bool     `json:"shown"` // the debugger is at this one
	End     string   `json:"end"`
}

// String implements fmt.Stringer.
func (p ProcessState) String() string {
	mark := " "
	if p.Shown {
		mark = "*"
	}
	return fmt.Sprintf("%s %d  %s  %s", mark, p.PID, p.Program, p.End)
}

// Processes returns the processes of the recording, the one that it is about first.
func (g *Cursor) Processes() []ProcessState {
	var out []ProcessState
	for _, p := range g.s.Rec.Processes() {
		out = append(out, ProcessState{
			PID: int(p.PID), Parent: int(p.Parent), Program: p.Program, Args: p.Args,
			Shown: int(p.PID) == g.pid(), End: EndText(g.s.Rec.Ending(p.PID)),
		})
	}
	return out
}

// EndText says in words how a process ended.
func EndText(e checkpoint.Ending) string {
	switch {
	case e.Kind == checkpoint.EndCrash && e.Signo == 0: // the recording does not say which
		return "killed by a signal"
	case e.Kind == checkpoint.EndCrash:
		return "killed by " + abi.Signal(e.Signo).String()
	case e.Kind == checkpoint.EndExit:
		return fmt.Sprintf("exited with code %d", e.ExitCode)
	default:
		return "recording stopped before the program ended"
	}
}
