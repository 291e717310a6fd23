package gdbstub

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vplay/replay/debug/api"
)

// What clients of rr expect of a stub beyond gdb's protocol, for [Options.RR]. Delve is
// one: "dlv replay" starts rr and talks to it (its pkg/proc/gdbserial, v1.27.2). It differs
// from gdb in this:
//
//   - The end of history is a stop by SIGKILL, its beginning one by signal 0.
//   - It reads registers from the files that target.xml includes, and none that
//     stand in target.xml itself.
//   - qRRCmd:NAME:THREAD:HEX… runs one of rr's commands: when, checkpoint,
//     info checkpoints, delete checkpoint. What they print is parsed.
//   - vRun;;HEX restarts at a position, or at checkpoint N, written cN. The first
//     resume after it goes nowhere and reports where the process is.
//   - A reply to m that is shorter than asked for is taken for the whole, so memory that
//     is not there to its end is an error.
//
// Positions are those of "monitor when", where rr has the numbers of its events.

// Signals by which a client of rr knows the ends of history.
const (
	rrEnd   = 9
	rrBegin = 0
)

// rrCheckpoint is a position that a client has named.
type rrCheckpoint struct {
	id          int
	when, where string
}

// Bounds on what a client may have remembered.
const (
	maxRRCheckpoints = 1024
	maxRRNote        = 256 // bytes
)

// rrState is what a session keeps for a client of rr.
type rrState struct {
	checkpoints []rrCheckpoint
	last        int  // the newest checkpoint's number
	restarted   bool // and not resumed since
	calling     bool // the client calls a function
}

var rrCommands = map[string]func(s *session, arg string) (string, error){
	"when":              (*session).rrWhen,
	"checkpoint":        (*session).rrCheckpoint,
	"info checkpoints":  (*session).rrCheckpoints,
	"delete checkpoint": (*session).rrDelete,
}

// rrCommand answers qRRCmd:NAME:THREAD[:HEX].
func (s *session) rrCommand(arg string) reply {
	if !s.srv.opt.RR {
		return reply{}
	}
	f := strings.Split(arg, ":")
	command := rrCommands[f[0]]
	if command == nil || len(f) < 2 {
		return replyError
	}
	var text []byte
	if len(f) > 2 {
		var err error
		if text, err = hex.DecodeString(f[2]); err != nil {
			return replyError
		}
	}
	out, err := command(s, string(text))
	if err != nil {
		out = err.Error()
	}
	return reply{data: appendHexBytes(nil, []byte(clip(out, (MaxPacket-1)/2-8)+"\n"))}
}

// rrWhen returns the present position in rr's words.
func (s *session) rrWhen(string) (string, error) {
	at, err := s.position()
	return "Current event: " + at, err
}

// position returns the present position as "monitor when" writes it.
func (s *session) position() (string, error) { return s.ask("when") }

// ask runs a monitor command and returns what it prints.
func (s *session) ask(line string) (string, error) {
	var out bytes.Buffer
	err := errors.New("internal error, see the log of the server")
	s.await("monitor", func(ctx context.Context) { err = s.target.Monitor(ctx, line, &out) })
	return strings.TrimSpace(out.String()), err
}

// rrCheckpoint remembers the present position; where is the client's note.
func (s *session) rrCheckpoint(where string) (string, error) {
	if len(s.rr.checkpoints) >= maxRRCheckpoints {
		return "", fmt.Errorf("there are %d checkpoints: delete some", maxRRCheckpoints)
	}
	at, err := s.position()
	if err != nil {
		return "", err
	}
	where = strings.Map(func(r rune) rune { // the list is lines with tabs between fields
		if r < ' ' {
			return ' '
		}
		return r
	}, clip(where, maxRRNote))
	s.rr.last++
	s.rr.checkpoints = append(s.rr.checkpoints, rrCheckpoint{s.rr.last, at, where})
	return fmt.Sprintf("Checkpoint %d at %s", s.rr.last, where), nil
}

func (s *session) rrCheckpoints(string) (string, error) {
	out := "ID\tWhen\tWhere"
	for _, c := range s.rr.checkpoints {
		out += fmt.Sprintf("\n%d\t%s\t%s", c.id, c.when, c.where)
	}
	return out, nil
}

func (s *session) rrDelete(id string) (string, error) {
	i, err := s.rrFind(id)
	if err != nil {
		return "", err
	}
	s.rr.checkpoints = slices.Delete(s.rr.checkpoints, i, i+1)
	return "Deleted checkpoint " + id + ".", nil
}

// rrFind returns the index of the checkpoint with a number.
func (s *session) rrFind(id string) (int, error) {
	n, err := strconv.Atoi(id)
	i := slices.IndexFunc(s.rr.checkpoints, func(c rrCheckpoint) bool { return c.id == n })
	if err != nil || i < 0 {
		return 0, fmt.Errorf("no checkpoint %s", clip(id, maxRRNote))
	}
	return i, nil
}

// rrRun answers vRun;;HEX.
func (s *session) rrRun(arg string) reply {
	where := ""
	if i := strings.LastIndexByte(arg, ';'); i >= 0 {
		b, err := hex.DecodeString(arg[i+1:])
		if err != nil || len(b) > maxMonitorLine {
			return replyError
		}
		where = strings.TrimSpace(string(b))
	}
	if where == "" {
		s.undivert()
		if err := s.target.Rewind(); err != nil {
			return s.refuse(err.Error())
		}
	} else if err := s.rrSeek(where); err != nil {
		return s.refuse(err.Error())
	}
	s.take(s.inferior.pid)
	s.rr.restarted = true
	return s.plainStop(s.stop)
}

// rrRestarted answers the first resume after vRun, in whichever direction Delve went
// before. It reports false for any other.
func (s *session) rrRestarted(r *api.Resume) (reply, bool) {
	if !s.rr.restarted {
		return reply{}, false
	}
	s.rr.restarted = false
	return s.plainStop(s.stop), r.Kind == api.Continue
}

// rrSeek moves to a position, or to checkpoint N, written cN.
func (s *session) rrSeek(where string) error {
	if id, ok := strings.CutPrefix(where, "c"); ok {
		i, err := s.rrFind(id)
		if err != nil {
			return err
		}
		where = s.rr.checkpoints[i].when
	}
	s.undivert()
	_, err := s.ask("seek " + where)
	return err
}

// rrCalled ends a call of a function of the program. A client of rr reads siginfo before a
// call and writes it after, and all that it does in between is done to the copy.
func (s *session) rrCalled() {
	s.rr.calling = false
	s.undivert()
	s.stoppedAt(s.target.Stop())
}

// rrTarget is the target description in pieces: the parts are files of their own.
func (d *description) rrTarget() []byte {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\"?>\n<!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n<target>\n<architecture>i386:x86-64</architecture>\n<osabi>GNU/Linux</osabi>\n")
	for _, name := range d.files {
		fmt.Fprintf(&b, "<xi:include href=%q/>\n", name)
	}
	b.WriteString("</target>\n")
	return []byte(b.String())
}

// rrFeature returns a file that rrTarget includes.
func (d *description) rrFeature(name string) ([]byte, error) {
	if !slices.Contains(d.files, name) {
		return nil, errNoAnnex
	}
	return featureFiles.ReadFile("features/" + name)
}
