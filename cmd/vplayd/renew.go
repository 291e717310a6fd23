package main

import (
	"context"
	"io"
	"net"

	"vplay/checkpoint"
)

// A debugger's session may last for days, so the work that a recording's budget allows
// is what one request may cost: it begins anew with what the client sends.

// listenerServer is a server of gdbstub or gdbstub/dap.
type listenerServer interface {
	ServeListener(ctx context.Context, l net.Listener) error
}

// serveOn serves the clients of l; what each asks renews the recording's budget.
func serveOn(ctx context.Context, server listenerServer, l net.Listener, budget *checkpoint.Budget) error {
	return server.ServeListener(ctx, renewingListener{l, budget})
}

// renewingListener gives out connections that renew a budget.
type renewingListener struct {
	net.Listener
	budget *checkpoint.Budget
}

func (l renewingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return renewingConn{c, renewingReader{c, l.budget}}, nil
}

type renewingConn struct {
	net.Conn
	in renewingReader
}

func (c renewingConn) Read(b []byte) (int, error) { return c.in.Read(b) }

// renewingReader renews a budget with each read.
type renewingReader struct {
	io.ReadCloser
	budget *checkpoint.Budget
}

func (r renewingReader) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	r.budget.Renew()
	return n, err
}
