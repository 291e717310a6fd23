package dap

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// endless is a stream of one byte that counts what was taken of it.
type endless struct {
	b    byte
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.b
	}
	e.read += len(p)
	return len(p), nil
}

// TestFrameBounds sends headers without end, and lengths that are none.
func TestFrameBounds(t *testing.T) {
	for _, b := range []byte("x\r\n:") {
		e := &endless{b: b}
		if _, err := readContent(bufio.NewReader(io.MultiReader(strings.NewReader("a: b\r\n"), e))); !errors.Is(err, errHeader) || e.read > 64<<10 {
			t.Errorf("header of %q without end: %v after %d bytes", b, err, e.read)
		}
	}
	for _, h := range []string{"Content-Length: -1\r\n\r\n", "Content-Length: 17000000\r\n\r\n", "Content-Length: 99999999999999999999\r\n\r\n", "\r\n", "Length: 3\r\n\r\nabc"} {
		if b, err := readContent(bufio.NewReader(strings.NewReader(h))); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%q gives %q, error %v", h, b, err)
		}
	}
	if b, err := readContent(bufio.NewReader(strings.NewReader("X: y\r\nCONTENT-length: 3\r\n\r\nabcd"))); string(b) != "abc" || err != nil {
		t.Errorf("a message is read as %q, error %v", b, err)
	}
}

// TestFirstMessage connects and says nothing.
func TestFirstMessage(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := first(b, bufio.NewReader(b), 10*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a client that says nothing ends with %v", err)
	}
}
