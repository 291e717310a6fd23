package dap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// How messages are cut out of the stream of bytes, with bounds on size and time (Debug
// Adapter Protocol, "Base Protocol"). What is in a message is read in session.go;
// messages are written in server.go. A frame of the stack is in stack.go.

// What a client may send as one message, in bytes: its header, and its content.
// Editors send some 20 bytes of header and never a megabyte of content.
const (
	maxHeader  = 4 << 10
	maxContent = 16 << 20
)

// firstTimeout is how long a connection may say nothing at all: one that does
// keeps every other client out. Behind the first message a person thinks.
const firstTimeout = 30 * time.Second

// errHeader is a header that is none of this protocol.
var errHeader = errors.New("dap: the message has no Content-Length, or a header that is too long")

// readContent reads one message: header lines, an empty line, and as many bytes as
// Content-Length says (Debug Adapter Protocol, "Base Protocol").
func readContent(r *bufio.Reader) ([]byte, error) {
	length := -1
	for left := maxHeader; ; {
		line, err := readLine(r, left)
		if err != nil {
			return nil, err
		}
		left -= len(line)
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		if !strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
		if err != nil {
			return nil, errHeader
		}
		length = int(n)
	}
	if length < 0 {
		return nil, errHeader
	}
	if length > maxContent {
		return nil, fmt.Errorf("dap: a message of %d bytes is above the bound of %d", length, maxContent)
	}
	b := make([]byte, length)
	_, err := io.ReadFull(r, b)
	return b, err
}

// readLine reads up to a line end, most bytes of it at most.
func readLine(r *bufio.Reader, most int) (string, error) {
	var b []byte
	for len(b) < most {
		c, err := r.ReadByte()
		if err != nil {
			return "", err
		}
		if b = append(b, c); c == '\n' {
			return string(b), nil
		}
	}
	return "", errHeader
}

// first reads the first message of a connection, which must come soon when it is a
// network's.
func first(conn io.Reader, r *bufio.Reader, wait time.Duration) ([]byte, error) {
	c, ok := conn.(net.Conn)
	if !ok {
		return readContent(r)
	}
	_ = c.SetReadDeadline(time.Now().Add(wait)) // a closed one says so when it is read
	b, err := readContent(r)
	_ = c.SetReadDeadline(time.Time{}) // likewise
	return b, err
}
