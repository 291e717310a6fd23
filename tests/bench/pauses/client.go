package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"vplay/tests/bench/command"
)

// The client: it fills a redis, and writes to it (the protocol is RESP, https://redis.io/docs/reference/protocol-spec).

// What is stored.
const (
	valueSize = 1000
	// perKey is about what a key with its value takes in the server.
	perKey = 1120
	// clients write at the same time, each waiting for its answers.
	clients = 20
	// batch is how many values are sent at once to fill the server.
	batch = 500
)

// client is a connection.
type client struct {
	conn net.Conn
	r    *bufio.Reader
	stop func() bool
}

// dial connects. What the client does fails when ctx ends.
func dial(ctx context.Context, address string) (*client, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &client{c, bufio.NewReader(c), context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })}, nil
}

func (c *client) close() {
	c.stop()
	_ = c.conn.Close() // all has been answered
}

// set returns the command that stores a value.
func set(b []byte, key int64, value []byte) []byte {
	k := "key:" + strconv.FormatInt(key, 10)
	b = fmt.Appendf(b, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n", len(k), k, len(value))
	return append(append(b, value...), "\r\n"...)
}

// ok reads the answers to n commands that store.
func (c *client) ok(n int) error {
	for range n {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return err
		}
		if line != "+OK\r\n" {
			return fmt.Errorf("redis answers %q", line)
		}
	}
	return nil
}

// random fills a value with bytes that no page shares with another.
func random(r *rand.Rand, value []byte) {
	for i := range value {
		value[i] = byte(r.Uint32())
	}
}

// fill stores about size bytes, and returns how many keys these are.
func fill(ctx context.Context, address string, size int64) (keys int64, err error) {
	c, err := dial(ctx, address)
	if err != nil {
		return 0, err
	}
	defer c.close()
	keys = max(size/perKey, 1)
	r := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, valueSize)
	var b []byte
	for at := int64(0); at < keys; {
		b = b[:0]
		n := 0
		for ; n < batch && at < keys; n++ {
			random(r, value)
			b = set(b, at, value)
			at++
		}
		if _, err := c.conn.Write(b); err != nil {
			return 0, err
		}
		if err := c.ok(n); err != nil {
			return 0, err
		}
	}
	return keys, nil
}

// usedMemory asks the server for its used_memory.
func usedMemory(ctx context.Context, address string) (int64, error) {
	c, err := dial(ctx, address)
	if err != nil {
		return 0, err
	}
	defer c.close()
	if _, err := c.conn.Write([]byte("*2\r\n$4\r\nINFO\r\n$6\r\nmemory\r\n")); err != nil {
		return 0, err
	}
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			return strconv.ParseInt(n, 10, 64)
		}
	}
}

// writeFor has the clients store values under keys that are there, for as long as d, and returns how long each answer took.
func writeFor(ctx context.Context, address string, keys int64, d time.Duration) ([]time.Duration, error) {
	return command.Clients(ctx, clients, func(ctx context.Context, number int, took *[]time.Duration) error {
		return oneWriter(ctx, address, uint64(number), keys, d, took)
	})
}

func oneWriter(ctx context.Context, address string, seed uint64, keys int64, d time.Duration, took *[]time.Duration) error {
	c, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer c.close()
	r := rand.New(rand.NewPCG(seed, 3))
	value := make([]byte, valueSize)
	random(r, value)
	var b []byte
	for end := time.Now().Add(d); time.Now().Before(end); {
		value[r.IntN(valueSize)]++
		b = set(b[:0], r.Int64N(keys), value)
		start := time.Now()
		if _, err := c.conn.Write(b); err != nil {
			return err
		}
		if err := c.ok(1); err != nil {
			return err
		}
		*took = append(*took, time.Since(start))
	}
	return nil
}
