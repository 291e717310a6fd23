package gdbstub

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"vplay/replay/debug/api"
)

// client is the other end of a session in tests. It takes replies apart by
// itself, without the framer it talks to.
type client struct {
	t    testing.TB
	conn net.Conn
	in   chan byte // what the server sent
	err  chan error
}

// dial starts a session on f over a pipe.
func dial(t testing.TB, f api.Target) *client {
	t.Helper()
	return dialWith(t, f, Options{})
}

func dialWith(t testing.TB, f api.Target, opt Options) *client {
	t.Helper()
	a, b := net.Pipe()
	c := &client{t: t, conn: a, in: make(chan byte, 4<<20), err: make(chan error, 1)}
	go func() { c.err <- New(f, opt).Serve(context.Background(), b) }()
	go func() {
		defer close(c.in)
		buf := make([]byte, 64<<10)
		for {
			n, err := a.Read(buf)
			for _, x := range buf[:n] {
				c.in <- x
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

// hangUp closes the client's end and returns what Serve returned.
func (c *client) hangUp() error {
	_ = c.conn.Close()
	select {
	case err := <-c.err:
		return err
	case <-time.After(5 * time.Second):
		c.t.Fatal("Serve does not return")
		return nil
	}
}

// raw sends bytes as they are.
func (c *client) raw(s string) {
	c.t.Helper()
	_ = c.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c.conn, s); err != nil {
		c.t.Fatalf("send %q: %v", s, err)
	}
}

// frame makes a packet of an unescaped payload.
func frame(payload string) string {
	var b bytes.Buffer
	var sum byte
	put := func(x byte) { b.WriteByte(x); sum += x }
	b.WriteByte('$')
	for i := range len(payload) {
		if x := payload[i]; x == '#' || x == '$' || x == '}' || x == '*' {
			put('}')
			put(x ^ 0x20)
		} else {
			put(x)
		}
	}
	return fmt.Sprintf("%s#%02x", b.String(), sum)
}

// next returns the next byte from the server.
func (c *client) next() byte {
	c.t.Helper()
	select {
	case b, ok := <-c.in:
		if !ok {
			c.t.Fatal("the server hung up")
		}
		return b
	case <-time.After(5 * time.Second):
		c.t.Fatal("no answer")
		return 0
	}
}

// receive returns the next packet's payload, unescaped.
func (c *client) receive() string {
	c.t.Helper()
	for c.next() != '$' { // + and -
	}
	var out []byte
	var sum byte
	for {
		b := c.next()
		if b == '#' {
			break
		}
		sum += b
		if b == '}' {
			b = c.next()
			sum += b
			b ^= 0x20
		}
		out = append(out, b)
	}
	if got, want := string([]byte{c.next(), c.next()}), fmt.Sprintf("%02x", sum); got != want {
		c.t.Fatalf("checksum %s of %q, want %s", got, out, want)
	}
	return string(out)
}

// ask sends a packet and returns the reply.
func (c *client) ask(payload string) string {
	c.t.Helper()
	c.raw(frame(payload))
	return c.receive()
}

// want asks and compares.
func (c *client) want(payload, reply string) {
	c.t.Helper()
	if got := c.ask(payload); got != reply {
		c.t.Fatalf("%q: got %q, want %q", payload, got, reply)
	}
}
