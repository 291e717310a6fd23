package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"vplay/tests/bench/meter"
)

// A server that is measured: it is started, natively or below what records it, waited for, and ended in order.

// patience is how long a server may take to start, and to end.
const patience = time.Minute

// FreePort returns a port of the loopback that nobody listens at.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// Record returns the command line that records a program into dir, up to the program, with the agent or without it. The recorder says on standard
// error what it does and, at its end, what it did.
func Record(vplayd, dir string, agent bool, flags ...string) []string {
	on := map[bool]string{true: "on", false: "off"}[agent]
	line := []string{vplayd, "--log", "record=debug", "--log-format", "json", "record", "--keep", "crash", "--agent", on, "-o", filepath.Join(dir, "crash.vplay")}
	return append(append(line, flags...), "--")
}

// Server is a server with what it runs below.
type Server struct {
	*meter.Tree
	ended chan struct{}
	err   error // of its end
}

// Start starts a server.
func Start(c meter.Command) (*Server, error) {
	t, err := meter.Start(c)
	if err != nil {
		return nil, err
	}
	s := &Server{Tree: t, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		u, err := t.Wait()
		if err == nil && u.Code != 0 {
			err = fmt.Errorf("the server ends with exit code %d", u.Code)
		}
		s.err = err
	}()
	return s, nil
}

// Listening waits until somebody listens at an address. It fails when the server ends before.
func (s *Server) Listening(ctx context.Context, address string) error {
	late := time.After(patience)
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		select {
		case <-s.ended:
			return errors.New("the server ended before it listened")
		case <-late:
			return fmt.Errorf("nobody listens at %s", address)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// End has the oldest process that executes a program end by a signal, and waits for the end of all. The error is that of an end
// that is not in order.
func (s *Server) End(program string, by os.Signal) error {
	p, ok := s.Oldest(program)
	if !ok {
		return errors.Join(fmt.Errorf("no process executes %s", program), s.Stop())
	}
	if err := p.Signal(by); err != nil {
		return errors.Join(err, s.Stop())
	}
	select {
	case <-s.ended:
		return s.err
	case <-time.After(patience):
		return errors.Join(errors.New("the server does not end"), s.Stop())
	}
}

// Stop kills all of it, and returns the error of its end.
func (s *Server) Stop() error {
	s.Kill()
	<-s.ended
	return s.err
}
