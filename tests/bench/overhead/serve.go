package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"vplay/tests/bench/command"
	"vplay/tests/bench/meter"
)

// How a server is measured: it is started, warmed up, asked by a client while the processor time of its
// whole tree is read before and after, and ended in order.

// newServer returns one that listens at a port of the loopback.
func (b *bench) newServer(port, program string, args ...string) (*server, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, err
	}
	return &server{
		args: append([]string{path}, args...), binary: path, address: net.JoinHostPort("127.0.0.1", port), end: meter.Terminate,
		requests: b.n(200_000, 2000), slowly: b.n(10_000, 200),
	}, nil
}

// serve measures a server once.
func (b *bench) serve(s *server, mode, dir string) (out sample, d *did, err error) {
	said, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return out, nil, err
	}
	defer func() { err = errors.Join(err, said.Close()) }()
	t, err := command.Start(meter.Command{Args: b.command(mode, s.args), Dir: dir, Stdout: said, Stderr: said, Pinned: mode == pinned})
	if err != nil {
		return out, nil, err
	}
	out, err = b.ask(s, mode, t)
	if err != nil {
		serr := t.Stop()
		text, _ := os.ReadFile(said.Name()) // more about err
		return out, nil, errors.Join(fmt.Errorf("%w\n%.2000s", err, text), serr)
	}
	if err := t.End(s.binary, s.end); err != nil {
		return out, nil, err
	}
	text, err := os.ReadFile(said.Name())
	return out, whatItDid(text), err
}

// ask has the client ask a server that is starting.
func (b *bench) ask(s *server, mode string, t *command.Server) (out sample, err error) {
	if err := t.Listening(b.ctx, s.address); err != nil {
		return out, err
	}
	if s.prepare != nil {
		if err := s.prepare(); err != nil {
			return out, err
		}
	}
	n := s.requests
	if mode == stops || mode == strace {
		n = s.slowly
	}
	if _, _, err := s.load(max(n/10, 40)); err != nil { // it warms up
		return out, err
	}
	before, start := t.CPU(), time.Now()
	if out.p50, out.p99, err = s.load(n); err != nil {
		return out, err
	}
	out.wall = time.Since(start) / time.Duration(n)
	out.cpu = (t.CPU() - before) / time.Duration(n)
	return out, nil
}

// askMemcached makes n requests, of which half store and half fetch, from a number of clients that each wait for their
// answers.
func askMemcached(ctx context.Context, address string, n, clients int) (p50, p99 time.Duration, err error) {
	latencies, err := command.Clients(ctx, clients, func(ctx context.Context, number int, took *[]time.Duration) error {
		return oneClient(ctx, address, number, n/clients/2, took)
	})
	if err != nil {
		return 0, 0, err
	}
	return meter.Percentile(latencies, 0.5), meter.Percentile(latencies, 0.99), nil
}

// oneClient stores and fetches n times, and appends how long each answer took.
func oneClient(ctx context.Context, address string, number, n int, took *[]time.Duration) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // all has been answered
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })()
	r := bufio.NewReader(c)
	value := strings.Repeat("v", 64)
	exchange := func(request, answer string, lines int) error {
		start := time.Now()
		if _, err := c.Write([]byte(request)); err != nil {
			return err
		}
		var got strings.Builder
		for range lines {
			line, err := r.ReadString('\n')
			if err != nil {
				return err
			}
			got.WriteString(line)
		}
		*took = append(*took, time.Since(start))
		if got.String() != answer {
			return fmt.Errorf("memcached answers %q to %q", got.String(), request)
		}
		return nil
	}
	for i := range n {
		key := fmt.Sprintf("key-%d-%d", number, i%500)
		if err := exchange(fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(value), value), "STORED\r\n", 1); err != nil {
			return err
		}
		if err := exchange("get "+key+"\r\n", fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\nEND\r\n", key, len(value), value), 3); err != nil {
			return err
		}
	}
	return nil
}
