package gdbstub

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nowhere is a connection to nobody.
type nowhere struct{ io.Writer }

func (nowhere) Read([]byte) (int, error) { return 0, io.EOF }
func (nowhere) Close() error             { return nil }

// newSession makes a session whose packets are fed by handle.
func newSession(f *fakeTarget) *session {
	v := New(f, Options{Log: slog.New(slog.DiscardHandler)})
	return &session{
		srv: v, target: f, ctx: context.Background(), breaks: map[breakKey]Breakpoint{}, live: true, attached: true,
		conn: &conn{rwc: nowhere{io.Discard}, events: make(chan event), done: make(chan struct{})},
	}
}

// FuzzSession feeds packets, one per line, to one session. Whatever they are:
// no panic, replies within the limit, each within a second, and the session
// still works.
func FuzzSession(f *testing.F) {
	paths, _ := filepath.Glob("testdata/conversation/*.txt")
	for _, path := range paths {
		var b strings.Builder
		for _, line := range readConversation(f, path) {
			if kind, rest, _ := strings.Cut(line, " "); kind == ">" || kind == ">>" {
				p := unquote(f, rest)
				b.WriteString(p + "\n")
				f.Add(p)
			}
		}
		f.Add(b.String())
	}
	for b := range letters {
		f.Add(string(b) + "0")
	}
	for n := range names {
		f.Add(n + ":1,2;3")
	}
	f.Fuzz(func(t *testing.T, data string) {
		if strings.Count(data, "\n") > 200 {
			return
		}
		fake := newFake()
		s := newSession(fake)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		s.ctx = ctx // ends "monitor wait"
		for p := range strings.SplitSeq(data, "\n") {
			start := time.Now()
			r := s.handle(p)
			if d := time.Since(start); d > time.Second {
				t.Fatalf("%q took %v", p, d)
			}
			if len(appendEscaped(nil, r.data)) > MaxPacket {
				t.Fatalf("%q: reply of %d bytes", p, len(r.data))
			}
			if s.panics > 0 {
				t.Fatalf("%q panicked", p)
			}
		}
		s.handle("vAttach;1234")
		s.handle("R00")
		if r := s.handle("p10"); string(r.data) != "0010400000000000" {
			t.Fatalf("the session is broken: rip %q", r.data)
		}
		s.end()
		if len(fake.breaks) != 0 || len(s.files.open) != 0 || fake.overlap.Load() {
			t.Fatal("something is left")
		}
	})
}

// tape is a connection that plays bytes in pieces and then ends.
type tape struct {
	r     *strings.Reader
	piece int
}

func (c *tape) Read(b []byte) (int, error) {
	return c.r.Read(b[:min(len(b), c.piece)])
}
func (c *tape) Write(b []byte) (int, error) { return len(b), nil }
func (c *tape) Close() error                { return nil }

// FuzzServe plays arbitrary bytes to a whole server: it comes to an end and
// lets go of the target once.
func FuzzServe(f *testing.F) {
	paths, _ := filepath.Glob("testdata/conversation/*.txt")
	for _, path := range paths {
		var b strings.Builder
		for _, line := range readConversation(f, path) {
			switch kind, rest, _ := strings.Cut(line, " "); kind {
			case ">", ">>":
				b.WriteString("+" + frame(unquote(f, rest)))
			case "^":
				b.WriteString("\x03")
			}
		}
		f.Add(b.String(), uint8(7))
	}
	f.Add("POST / HTTP/1.1\r\n\r\n$g#67", uint8(0))
	f.Fuzz(func(t *testing.T, data string, piece uint8) {
		fake := newFake()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = New(fake, Options{}).Serve(t.Context(), &tape{strings.NewReader(data), int(piece) + 1}) // any end will do
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("Serve does not end")
		}
		if n := fake.detached.Load(); n < 1 || len(fake.breaks) != 0 || fake.overlap.Load() {
			t.Fatalf("let go %d times, breakpoints %v", n, fake.breaks)
		}
	})
}
