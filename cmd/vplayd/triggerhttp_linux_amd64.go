package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	recorder "vplay/checkpoint/record"
	"vplay/gdbstub"
)

// The socket of --trigger-http. Only its user may connect (mode 0600); still, whatever is sent there
// must not cost the recorder more than a few kilobytes, and no more than a few connections.

// Bounds of what a client may do.
const (
	httpPatience = 10 * time.Second // for a request to come, and between two
	httpHeader   = 8 << 10          // bytes; net/http adds 4 KiB
	httpBody     = 1 << 10          // bytes, of what nobody reads
	httpClients  = 16               // at a time; others wait
	httpGoodbye  = time.Second      // for answers to be sent at the end
)

// listen makes the socket and serves it.
func (g *triggers) listen() error {
	l, err := gdbstub.Listen("unix:"+g.flags.http, false)
	if err != nil {
		return withHint(err, exitRecorder, "--trigger-http takes the path of a socket to make, in a folder that is there")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /snapshot", g.serveSnapshot)
	mux.HandleFunc("GET /status", g.serveStatus)
	server := &http.Server{
		Handler:           http.MaxBytesHandler(mux, httpBody),
		ReadTimeout:       httpPatience, // not WriteTimeout: a snapshot takes what it takes
		ReadHeaderTimeout: httpPatience, IdleTimeout: httpPatience, MaxHeaderBytes: httpHeader,
		ErrorLog: log.New(g.log, "", 0),
	}
	g.ends = append(g.ends, func() {
		ctx, cancel := context.WithTimeout(context.Background(), httpGoodbye)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // who has not read its answer by now does not get it
		}
	})
	g.wait.Go(func() { _ = server.Serve(fewClients{l, make(chan struct{}, httpClients)}) }) // until stop
	return nil
}

// fewClients accepts no more connections at a time than free has room for.
type fewClients struct {
	net.Listener
	free chan struct{}
}

// Accept implements net.Listener.
func (l fewClients) Accept() (net.Conn, error) {
	l.free <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &oneClient{Conn: c, free: l.free}, nil
}

// oneClient is a connection that makes room when it is closed.
type oneClient struct {
	net.Conn
	once sync.Once
	free chan struct{}
}

// Close implements net.Conn.
func (c *oneClient) Close() error {
	c.once.Do(func() { <-c.free })
	return c.Conn.Close()
}

// serveSnapshot writes a recording.
func (g *triggers) serveSnapshot(w http.ResponseWriter, _ *http.Request) {
	path, err := g.take("trigger-http")
	switch {
	case err == nil:
		writeJSON(w, http.StatusOK, map[string]string{"path": path})
	case mayRetry(err), errors.Is(err, recorder.ErrOver):
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"error": err.Error()})
	default:
		writeJSON(w, http.StatusInternalServerError, map[string]string{"error": err.Error()})
	}
}

// serveStatus tells what is recorded.
func (g *triggers) serveStatus(w http.ResponseWriter, _ *http.Request) {
	g.mu.Lock()
	s := g.status
	g.mu.Unlock()
	writeJSON(w, http.StatusOK, s)
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // nobody may wait for it
}
