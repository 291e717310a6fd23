package dap

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	godap "github.com/google/go-dap"

	"vplay/gdbstub"
	"vplay/replay/debug/api"
)

// The server: its options, the clients it accepts and refuses, and the form of
// the answers and events that it sends. What a client is answered is in session.go and
// in the files of the requests.

// ErrBusy means that another client is connected.
var ErrBusy = errors.New("dap: another client is connected")

// Options configure a Server. The zero value serves for ever and logs nothing.
type Options struct {
	Log  *slog.Logger // nil discards
	Once bool         // ServeListener ends with the first client that said something
	// Commands are the target's monitor commands that the client's console takes.
	Commands []Command
	// Accesses are those of Commands that are about memory: COMMAND WHERE [LENGTH
	// [N]]. For an expression the target gets its address, and its size for LENGTH.
	Accesses []string
	// Mappings replace the beginnings of recorded source paths; those that a client
	// gives come first.
	Mappings []Mapping
}

// Mapping replaces the beginning of a path.
type Mapping struct{ From, To string }

// Server serves one target to one client at a time.
type Server struct {
	target  api.Target
	symbols api.Symbols
	opt     Options
	log     *slog.Logger
	busy    sync.Mutex // held for the length of a session
	words   *strings.Replacer
}

// New makes a server. It does no I/O.
func New(t api.Target, s api.Symbols, opt Options) *Server {
	log := opt.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Server{target: t, symbols: s, opt: opt, log: log.With("component", "dap"), words: wordsOf(opt.Commands)}
}

// Serve holds one conversation over conn and closes it. It returns nil when the
// client is gone, ctx's error when ctx ended it, ErrBusy when another conversation
// is going on, an error for what is not the protocol, [api.ErrExit] after a
// monitor command that asked for the end.
func (v *Server) Serve(ctx context.Context, conn io.ReadWriteCloser) error {
	_, err := v.serve(ctx, conn)
	return err
}

func (v *Server) serve(ctx context.Context, conn io.ReadWriteCloser) (heard bool, err error) {
	if !v.busy.TryLock() {
		_ = conn.Close()
		return false, ErrBusy
	}
	defer v.busy.Unlock()
	s := newSession(v, conn, ctx)
	err = s.run()
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		err = nil
	}
	return s.heard, err
}

// handover is how long a new client waits for the one before to be gone.
const handover = 500 * time.Millisecond

// ServeListener accepts clients on l until ctx ends, and closes l. One is served
// at a time; another that comes meanwhile is told so.
func (v *Server) ServeListener(ctx context.Context, l net.Listener) error {
	a := gdbstub.Acceptor{
		Serve:  func(ctx context.Context, c net.Conn) (bool, error) { return v.serve(ctx, c) },
		Refuse: refuse, Handover: handover, Once: v.opt.Once, Log: v.log,
	}
	if err := a.Run(ctx, l); err != nil {
		return fmt.Errorf("dap: accept: %w", err)
	}
	return nil
}

// refuse answers a client's first request with an error and lets it go.
func refuse(ctx context.Context, c net.Conn) {
	defer func() { _ = c.Close() }() // the client may be gone
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	b, err := readContent(bufio.NewReader(c))
	if err != nil {
		return
	}
	var req godap.Request
	if json.Unmarshal(b, &req) != nil {
		return
	}
	_ = writeMessage(c, failure(1, &req, errors.New("another client is debugging this recording"), true))
}

// response is an answer to a request.
type response struct {
	Seq        int    `json:"seq"`
	Type       string `json:"type"`
	RequestSeq int    `json:"request_seq"`
	Success    bool   `json:"success"`
	Command    string `json:"command"`
	Message    string `json:"message,omitempty"`
	Body       any    `json:"body,omitempty"`
}

// failure is an answer that says what went wrong. With shown VS Code puts the text in a
// box of its own; without, only where the answer would have been.
func failure(seq int, req *godap.Request, err error, shown bool) *response {
	msg := clean(err.Error())
	return &response{
		Seq: seq, Type: "response", RequestSeq: req.Seq, Command: req.Command, Message: msg,
		Body: godap.ErrorResponseBody{Error: &godap.ErrorMessage{Id: 1, Format: msg, ShowUser: shown}},
	}
}

// clean makes a text fit for a message: formats have placeholders in braces.
func clean(msg string) string {
	b := []byte(msg[:min(len(msg), 1000)])
	for i, c := range b {
		switch c {
		case '{':
			b[i] = '('
		case '}':
			b[i] = ')'
		}
	}
	return string(b)
}

// event is a message that no request asked for.
type event struct {
	Seq   int    `json:"seq"`
	Type  string `json:"type"`
	Event string `json:"event"`
	Body  any    `json:"body,omitempty"`
}

// writeTimeout bounds how long a client may not read.
const writeTimeout = 10 * time.Second

func writeMessage(w io.Writer, m any) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if c, ok := w.(net.Conn); ok {
		_ = c.SetWriteDeadline(time.Now().Add(writeTimeout)) // a closed one says so when it is written to
	}
	return godap.WriteBaseMessage(w, b)
}
