package gdbstub

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"

	"vplay/replay/debug/api"
)

// Monitor commands (qRcmd), and the console output that goes to the user before the
// reply (gdb manual, appendix "Remote Serial Protocol", "General Query Packets"). What
// the commands do is the target's business. Commands in pieces are in job.go.

// maxMonitorLine bounds a monitor command, in bytes.
const maxMonitorLine = 4096

// console shows a text to the user: an O packet, which clients take while they
// wait for the reply to a resume or a monitor command.
func (s *session) console(msg string) {
	_, _ = consoleWriter{s}.Write([]byte(msg)) // a lost connection shows at the next read
}

// consoleWriter sends what is written to it as O packets.
type consoleWriter struct{ s *session }

func (w consoleWriter) Write(b []byte) (int, error) {
	const most = (MaxPacket - 1) / 2
	for done := 0; done < len(b); {
		part := b[done:min(len(b), done+most)]
		if err := w.s.conn.packet(appendHexBytes([]byte{'O'}, part)); err != nil {
			return done, err
		}
		done += len(part)
	}
	return len(b), nil
}

// monitorWriter is the output of a monitor command. While the command is silent
// it sends empty O packets, for clients wait no more than two seconds ("set
// remotetimeout") for the next packet.
type monitorWriter struct {
	mu       sync.Mutex
	w        consoleWriter
	progress string // not yet shown
	// abandoned says that the client sent something else before it had the
	// reply: its user has pressed Ctrl-C, and nothing more is read.
	abandoned bool
}

// abandon ends the output.
func (m *monitorWriter) abandon() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.abandoned = true
}

// Progress implements Progress: keepAlive shows it.
func (m *monitorWriter) Progress(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress = text
}

func (m *monitorWriter) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.abandoned {
		return len(b), nil
	}
	return m.w.Write(b)
}

// alive shows how the command goes on, if only that it does.
func (m *monitorWriter) alive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	say := m.progress
	if m.progress = ""; say != "" {
		say = "vplay: " + say + "\n"
	}
	if !m.abandoned {
		_ = m.w.s.conn.packet(appendHexBytes([]byte{'O'}, []byte(say))) // a lost connection shows at the next read
	}
}

// keepAlive begins sending and returns what ends it.
func (m *monitorWriter) keepAlive() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				m.alive()
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// monitor answers qRcmd,HEX. The command's output goes ahead of the reply as it
// comes; so does its error, because clients show nothing of an error reply.
func (s *session) monitor(arg string) reply {
	b, err := hex.DecodeString(arg)
	if err != nil || len(b) > maxMonitorLine {
		return replyError
	}
	s.withheld = withheld{} // the command may move
	line := strings.TrimSpace(string(b))
	if command, ok := strings.CutPrefix(line, "&"); ok {
		return s.jobCommand(strings.TrimSpace(command))
	}
	out := &monitorWriter{w: consoleWriter{s}}
	s.onPacket = out.abandon
	defer func() { s.onPacket = nil }()
	ok := s.await("monitor", func(ctx context.Context) {
		defer out.keepAlive()()
		err := s.target.Monitor(ctx, line, out)
		switch {
		case errors.Is(err, api.ErrExit):
			s.exit = true
		case err != nil:
			_, _ = out.Write([]byte("error: " + err.Error() + "\n")) // a lost connection shows at the next read
		}
	})
	s.forget()
	if out.abandoned {
		return reply{silent: true}
	}
	if !ok {
		return s.fail("internal error, see the log of the server")
	}
	return replyOK
}
