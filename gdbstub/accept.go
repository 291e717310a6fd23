package gdbstub

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"vplay/replay/debug/api"
)

// Acceptor serves the clients of a listener, one at a time, whatever protocol
// they speak. All fields must be set.
type Acceptor struct {
	// Serve holds the conversation with a client and closes its connection. heard
	// tells whether the client spoke the protocol; ErrExit ends Run.
	Serve func(ctx context.Context, c net.Conn) (heard bool, err error)
	// Refuse tells a client that another is being served, and closes its connection.
	Refuse   func(ctx context.Context, c net.Conn)
	Handover time.Duration // how long a new client waits for the one before to be gone
	Once     bool          // Run ends when the first client that was heard has left
	Log      *slog.Logger
}

// acceptor is what the goroutines of a Run share.
type acceptor struct {
	*Acceptor
	ctx     context.Context
	finish  context.CancelFunc
	slot    chan struct{} // one token: the client being served
	waiting chan struct{} // one token per client that waits for the slot
}

// maxWaiting bounds the clients that wait to be served or to be told that the
// server is busy. More are closed without a word.
const maxWaiting = 8

// Run accepts clients on l until ctx ends, Serve says ErrExit, or with Once the
// first client has left, and closes l. The error is that of accepting; nil is the
// ordinary end.
func (o *Acceptor) Run(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	defer func() { _ = l.Close() }() // the end of ctx may have closed it
	a := acceptor{
		Acceptor: o, ctx: ctx, finish: cancel,
		slot: make(chan struct{}, 1), waiting: make(chan struct{}, maxWaiting),
	}
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default: // out of descriptors, a client that is gone already
			a.Log.Warn("accept", "err", err)
			a.pause()
			continue
		}
		wg.Go(func() { a.client(c) })
	}
}

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
	case <-time.After(a.Handover):
		a.Refuse(a.ctx, c)
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
	a.Log.Info("client connected", "from", c.RemoteAddr().String())
	heard, err := a.Serve(a.ctx, c)
	a.Log.Info("client gone", "err", err)
	if heard && a.Once || errors.Is(err, api.ErrExit) {
		a.finish()
	}
}
