package gdbstub

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// A connection to one client: reading, acknowledgements, sending again, deadlines. It
// knows packets as such (packet.go splits them) and not what they say; that is the
// session's business (session.go).

// firstPacketTimeout bounds how long a connection may stay without a packet: a
// client that says nothing must not keep others out.
const firstPacketTimeout = 10 * time.Second

// writeTimeout bounds how long a client may leave a reply unread.
const writeTimeout = 30 * time.Second

// conn is one connection: a reader goroutine that turns bytes into events and
// answers + and - at once, so that a slow target does not make the client
// send again, and a writer that keeps the last packet for a resend.
type conn struct {
	rwc    io.ReadWriteCloser
	events chan event
	done   chan struct{} // closed by close: the reader may stop sending
	once   sync.Once
	noAck  atomic.Bool
	heard  atomic.Bool // a valid packet has come in

	mu   sync.Mutex // guards writes and last
	last []byte     // the last packet sent, framed
}

// newConn takes over rwc and starts reading. A connection with deadlines ends
// when no packet comes within patience.
func newConn(rwc io.ReadWriteCloser, patience time.Duration) *conn {
	c := &conn{rwc: rwc, events: make(chan event, 64), done: make(chan struct{})}
	go c.read(patience)
	return c
}

// read runs until the connection ends. Its last event is evClosed.
func (c *conn) read(patience time.Duration) {
	var f framer
	buf := make([]byte, 16<<10)
	deadline, _ := c.rwc.(interface{ SetReadDeadline(time.Time) error })
	if deadline != nil {
		_ = deadline.SetReadDeadline(time.Now().Add(patience))
	}
	for {
		n, err := c.rwc.Read(buf)
		f.anySum = c.noAck.Load()
		if ferr := f.push(buf[:n], c.receive); ferr != nil {
			err = ferr
		}
		if deadline != nil && f.heard {
			_ = deadline.SetReadDeadline(time.Time{})
			deadline = nil
		}
		if err != nil {
			c.send(event{kind: evClosed, err: err})
			return
		}
	}
}

// receive handles one event of the framer in the reader goroutine.
func (c *conn) receive(ev event) {
	switch ev.kind {
	case evAck:
	case evNack:
		c.resend()
	case evBad:
		c.ack('-')
	case evPacket:
		c.heard.Store(true)
		c.ack('+')
		c.send(ev)
	default:
		c.send(ev)
	}
}

// send hands an event to the session, or drops it when the session is over.
func (c *conn) send(ev event) {
	select {
	case c.events <- ev:
	case <-c.done:
	}
}

// ack acknowledges a packet unless the client asked not to. A failing write
// shows up as a failing read.
func (c *conn) ack(sign byte) {
	if !c.noAck.Load() {
		c.mu.Lock()
		defer c.mu.Unlock()
		_ = c.write([]byte{sign})
	}
}

// resend answers a negative acknowledgement.
func (c *conn) resend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.last) > 0 && !c.noAck.Load() {
		_ = c.write(c.last)
	}
}

// packet sends a payload.
func (c *conn) packet(payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = appendPacket(c.last[:0], payload)
	return c.write(c.last)
}

// write writes b with a deadline where the connection has them.
// Preconditions: mu is held.
func (c *conn) write(b []byte) error {
	if d, ok := c.rwc.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	_, err := c.rwc.Write(b)
	return err
}

// close ends the connection. It may be called from any goroutine, repeatedly.
func (c *conn) close() {
	c.once.Do(func() {
		close(c.done)
		_ = c.rwc.Close()
	})
}
