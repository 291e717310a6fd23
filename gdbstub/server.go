package gdbstub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"vplay/replay/debug/api"
)

// The server: its options, how it serves one client, and what it tells another
// one. What is said in a conversation is in session.go, accepting connections in
// accept.go.

// ErrBusy means that another client is connected.
var ErrBusy = errors.New("gdbstub: another client is connected")

// Options configure a Server. The zero value serves for ever and logs nothing.
type Options struct {
	// Log receives what is worth knowing, every packet at debug level; nil
	// discards it.
	Log *slog.Logger
	// Once ends ServeListener after the first session in which a valid
	// packet came in.
	Once bool
	// AllowRemote lets Listen take addresses other machines can reach. The
	// protocol knows no authentication.
	AllowRemote bool
	// RR speaks to clients that have been made for rr's server, such as Delve, where
	// they expect something else than gdb does.
	RR bool
}

// Server serves one target to one client at a time.
type Server struct {
	target api.Target
	opt    Options
	log    *slog.Logger
	busy   sync.Mutex // held for the length of a session
}

// New makes a server for t. It does no I/O.
func New(t api.Target, opt Options) *Server {
	log := opt.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Server{target: t, opt: opt, log: log.With("component", "gdbstub")}
}

// Serve holds one conversation over conn and closes it: a socket, or standard
// input and output. It returns nil when the client is gone, ctx's error when
// ctx ended it, ErrBusy when another conversation is going on, ErrNotRSP for
// something that is no debugger, ErrPacketTooLong, ErrExit after a monitor
// command that asked for it.
func (v *Server) Serve(ctx context.Context, conn io.ReadWriteCloser) error {
	_, err := v.serve(ctx, conn)
	return err
}

// serve is Serve; heard tells whether the client sent a valid packet.
func (v *Server) serve(ctx context.Context, rwc io.ReadWriteCloser) (heard bool, err error) {
	if !v.busy.TryLock() {
		_ = rwc.Close()
		return false, ErrBusy
	}
	defer v.busy.Unlock()
	c := newConn(rwc, firstPacketTimeout)
	defer context.AfterFunc(ctx, c.close)()
	s := &session{srv: v, target: v.target, conn: c, ctx: ctx, inferiors: map[int]*inferior{}, taken: map[int]bool{}}
	err = s.run()
	heard = c.heard.Load()
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, ErrNotRSP), errors.Is(err, ErrPacketTooLong), errors.Is(err, api.ErrExit):
	default: // end of file, reset, closed: the client is gone
		err = nil
	}
	return heard, err
}

// ListenAndServe listens on addr as Listen does and serves until ctx ends.
// Errors: as Listen and ServeListener.
func (v *Server) ListenAndServe(ctx context.Context, addr string) error {
	l, err := v.Listen(addr)
	if err != nil {
		return err
	}
	return v.ServeListener(ctx, l)
}

// ServeListener accepts clients on l until ctx ends, a monitor command asks for
// the end, or with Once until the first debugger has left, and closes l. One
// client is served at a time; another that comes meanwhile is told so and let
// go. It returns nil at its ordinary end and an error when accepting fails.
func (v *Server) ServeListener(ctx context.Context, l net.Listener) error {
	a := Acceptor{
		Serve:  func(ctx context.Context, c net.Conn) (bool, error) { return v.serve(ctx, c) },
		Refuse: v.refuse, Handover: handover, Once: v.opt.Once, Log: v.log,
	}
	if err := a.Run(ctx, l); err != nil {
		return fmt.Errorf("gdbstub: accept: %w", err)
	}
	return nil
}

// handover is how long a new client waits for the one before to be gone: a
// debugger that reconnects can be here before its old connection's end is. gdb wants
// an answer within 2 s.
const handover = 1200 * time.Millisecond

// refuse tells a client that another is being served. It waits for the first
// packet, because gdb shows the text only as the reply to one.
func (v *Server) refuse(ctx context.Context, c net.Conn) {
	defer func() { _ = c.Close() }() // the client may be gone
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	v.log.Info("client refused", "from", c.RemoteAddr().String())
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	var f framer
	buf := make([]byte, 4096)
	for heard := false; !heard; {
		n, err := c.Read(buf)
		if f.push(buf[:n], func(ev event) { heard = heard || ev.kind == evPacket }) != nil || err != nil {
			return
		}
	}
	_, _ = c.Write(appendPacket([]byte{'+'}, []byte("E.another debugger is connected to this recording")))
	_ = c.SetDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = io.Copy(io.Discard, io.LimitReader(c, 64<<10)) // let the reply arrive before the reset
}
