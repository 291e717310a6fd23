package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"vplay/tests/bench/command"
	"vplay/tests/bench/meter"
)

// How a row is measured: all ways of running it by turns, round after round.

// The ways to run.
const (
	native = "native"
	pinned = "pinned" // natively, on one CPU
	agent  = "agent"  // vplayd record --agent on
	stops  = "stops"  // vplayd record --agent off: two stops a call
	strace = "strace" // strace -f -o /dev/null
)

var modeNames = []string{native, pinned, agent, stops, strace}

// row is one line of the table.
type row struct {
	name, what string
	// bound is the ratio that is wanted with the agent, 0 for none.
	bound  float64
	quoted float64 // of rr.soft, 0 for none
	// threads is how many compute at the same time, 0 for one.
	threads int
	program func(b *bench, dir string) (*program, error)
	server  func(b *bench, dir string) (*server, error)
}

// program is what runs to its end.
type program struct {
	args  []string
	env   []string
	stdin string // a file
}

// sample is one run, or one server's load.
type sample struct {
	cpu, wall time.Duration // for one unit
	p50, p99  time.Duration // of a client's requests
}

// bench is a run of the command.
type bench struct {
	ctx         context.Context
	dir, vplayd string
	rounds      int
	tiny        bool
	rows        []row
	modes       []string
	progress    io.Writer
	say         string // where it is
}

// command returns what runs args in a way. Recording says at its end what it did, on standard error.
func (b *bench) command(mode string, args []string) []string {
	switch mode {
	case agent, stops:
		return append(command.Record(b.vplayd, b.dir, mode == agent), args...)
	case strace:
		return append([]string{"strace", "-f", "-o", "/dev/null", "--"}, args...)
	}
	return args
}

// n returns how much is to be done: much less for a test of this command.
func (b *bench) n(full, tiny int) int {
	if b.tiny {
		return tiny
	}
	return full
}

// tell shows what is going on.
func (b *bench) tell(format string, args ...any) {
	fmt.Fprintf(b.progress, "overhead: %s: %s\n", b.say, fmt.Sprintf(format, args...))
}

// measure runs a row.
func (b *bench) measure(r row) (res *result, err error) {
	dir := filepath.Join(b.dir, noise.ReplaceAllString(r.name, "-"))
	if err := os.Mkdir(dir, 0o711); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b.tell("prepares")
	var once func(mode string) (sample, *did, error)
	if r.program != nil {
		p, err := r.program(b, dir)
		if err != nil {
			return nil, err
		}
		once = b.runs(p, dir)
	} else {
		s, err := r.server(b, dir)
		if err != nil {
			return nil, err
		}
		once = func(mode string) (sample, *did, error) { return b.serve(s, mode, dir) }
	}
	res = newResult(r)
	if _, _, err := once(native); err != nil { // it warms the caches, and does not count
		return nil, err
	}
	for i := range b.rounds {
		round := map[string]sample{}
		for _, mode := range b.modes {
			b.tell("round %d of %d, %s", i+1, b.rounds, mode)
			s, did, err := once(mode)
			if cerr := b.ctx.Err(); cerr != nil {
				return nil, cerr
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", mode, err)
			}
			round[mode] = s
			if did != nil && mode == agent {
				res.Did = did
			}
		}
		res.add(round)
	}
	res.conclude(b.modes)
	return res, nil
}

// runs returns what runs a program once, and checks that it does what it did the first time.
func (b *bench) runs(p *program, dir string) func(mode string) (sample, *did, error) {
	var first string
	return func(mode string) (s sample, d *did, err error) {
		out, err := os.Create(filepath.Join(dir, "stdout"))
		if err != nil {
			return s, nil, err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
		said, err := os.Create(filepath.Join(dir, "stderr"))
		if err != nil {
			return s, nil, err
		}
		defer func() { err = errors.Join(err, said.Close()) }()
		var in *os.File
		if p.stdin != "" {
			if in, err = os.Open(p.stdin); err != nil {
				return s, nil, err
			}
			defer func() { err = errors.Join(err, in.Close()) }()
		}
		u, err := meter.Run(b.ctx.Done(), meter.Command{
			Args: b.command(mode, p.args), Dir: dir, Env: environment(p.env), Stdin: in, Stdout: out, Stderr: said, Pinned: mode == pinned,
		})
		if err != nil || b.ctx.Err() != nil {
			return s, nil, errors.Join(err, b.ctx.Err())
		}
		text, err := os.ReadFile(out.Name())
		if err != nil {
			return s, nil, err
		}
		errors, err := os.ReadFile(said.Name())
		if err != nil {
			return s, nil, err
		}
		now := fmt.Sprintf("exit code %d, %d bytes of output, SHA-256 %x", u.Code, len(text), sha256.Sum256(text))
		if first == "" {
			first = now
		}
		switch {
		case u.Code != 0:
			return s, nil, fmt.Errorf("exit code %d: %.2000s%.2000s", u.Code, errors, text)
		case now != first:
			return s, nil, fmt.Errorf("another outcome than natively: %s; natively %s: %.2000s", now, first, errors)
		}
		return sample{cpu: u.CPU(), wall: u.Wall}, whatItDid(errors), nil
	}
}

// environment returns this process's with changes, each NAME=VALUE.
func environment(changes []string) []string { return append(os.Environ(), changes...) }

// did is what a recorder says of itself at its end.
type did struct {
	Calls      uint64 `json:"calls"`
	AgentCalls uint64 `json:"agent_calls"` // made without a stop
	Intervals  uint64 `json:"intervals"`
	Shadows    uint64 `json:"shadows"`
}

// whatItDid reads the last line of the log that speaks of it; nil where there is none.
func whatItDid(stderr []byte) (d *did) {
	lines := bufio.NewScanner(bytes.NewReader(stderr))
	for lines.Scan() {
		var line struct {
			Message string `json:"message"`
			did
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message == "recording ended" {
			d = &line.did
		}
	}
	return d
}
