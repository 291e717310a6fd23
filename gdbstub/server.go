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
)

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
}

// Server serves one target to one client at a time.
type Server struct {
	target Target
	opt    Options
	log    *slog.Logger
	busy   sync.Mutex // held for the length of a session
}

// New makes a server for t. It does no I/O.
func New(t Target, opt Options) *Server {
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
	s := &session{srv: v, target: v.target, conn: c, ctx: ctx, breaks: map[breakKey]Breakpoint{}}
	err = s.run()
	heard = c.heard.Load()
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, ErrNotRSP), errors.Is(err, ErrPacketTooLong), errors.Is(err, ErrExit):
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
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	defer func() { _ = l.Close() }() // the end of ctx may have closed it
	a := acceptor{
		v: v, ctx: ctx, finish: cancel,
		slot: make(chan struct{}, 1), waiting: make(chan struct{}, maxWaiting),
	}
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("gdbstub: accept: %w", err)
		default: // out of descriptors, a client that is gone already
			v.log.Warn("accept", "err", err)
			a.pause()
			continue
		}
		wg.Go(func() { a.client(c) })
	}
}

// acceptor is what ServeListener's goroutines share.
type acceptor struct {
	v       *Server
	ctx     context.Context
	finish  context.CancelFunc
	slot    chan struct{} // one token: the client being served
	waiting chan struct{} // one token per client that waits for the slot
}

// maxWaiting bounds the clients that wait to be served or to be told that the
// server is busy. More are closed without a word.
const maxWaiting = 8

// handover is how long a new client waits for the one before to be gone: a
// debugger that reconnects can be here before its old connection's end is. gdb wants
// an answer within 2 s.
const handover = 1200 * time.Millisecond

// client serves c, or refuses it when another client stays.
func (a *acceptor) client(c net.Conn) {
	select {
	case a.waiting <- struct{}{}:
	default:
		_ = c.Close()
		return
	}
	select {
	case a.slot <- struct{}{}:
		<-a.waiting
		defer func() { <-a.slot }()
		a.session(c)
	case <-time.After(handover):
		a.refuse(c)
		<-a.waiting
	case <-a.ctx.Done():
		_ = c.Close()
		<-a.waiting
	}
}

// pause waits a moment after a failed accept.
func (a *acceptor) pause() {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-a.ctx.Done():
	}
}

// session serves one client.
func (a *acceptor) session(c net.Conn) {
	a.v.log.Info("client connected", "from", c.RemoteAddr().String())
	heard, err := a.v.serve(a.ctx, c)
	a.v.log.Info("client gone", "err", err)
	if heard && a.v.opt.Once || errors.Is(err, ErrExit) {
		a.finish()
	}
}

// refuse tells a client that another is being served. It waits for the first
// packet, because gdb shows the text only as the reply to one.
func (a *acceptor) refuse(c net.Conn) {
	defer func() { _ = c.Close() }() // the client may be gone
	defer context.AfterFunc(a.ctx, func() { _ = c.Close() })()
	a.v.log.Info("client refused", "from", c.RemoteAddr().String())
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
