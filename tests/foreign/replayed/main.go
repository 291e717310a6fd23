// Command replayed writes what a recorded program wrote to its standard output
// and standard error, taken not from the recording but from its replay: the
// bytes that the emulated program has in the buffers of its write calls, as far
// as the recorded calls took them. A recording holds results of calls, never
// what was written, so that equal output means that the emulator computed it.
//
//	replayed RECORDING OUT ERR
//
// Output of children is not there: they are not recorded. The line "children" on
// the standard output tells when there were some. Exit codes: 0 replayed whole,
// 3 a divergence, 1 anything else.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay"
	"vplay/replay/observe"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: replayed RECORDING OUT ERR")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "replayed:", err)
		if replay.Unmatched(err) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}

func run(path, out, err string) (failed error) {
	rec, failed := checkpoint.Open(path)
	if failed != nil {
		return failed
	}
	defer rec.Close()
	s, failed := replay.NewSession(rec)
	if failed != nil {
		return failed
	}
	defer s.Close()
	var o output
	for i, name := range []string{out, err} {
		f, createErr := os.Create(name)
		if createErr != nil {
			return createErr
		}
		defer func() { failed = errors.Join(failed, f.Close()) }()
		o.w[i+1] = bufio.NewWriter(f)
	}
	observer := &observe.Observer{Event: func(v *observe.View, e *checkpoint.Event) { o.event(v.Machine(), e) }}
	failed = observe.Run(context.Background(), s, observe.Options{
		Workers: 1,
		Begin:   func(*observe.View) (*observe.Observer, error) { return observer, nil },
	})
	if o.children {
		fmt.Println("children")
	}
	return errors.Join(failed, o.w[1].Flush(), o.w[2].Flush())
}

// output collects what goes to descriptors 1 and 2. A call's buffers are copied
// at its entry, which may be the last event of the interval before its exit.
type output struct {
	w        [3]*bufio.Writer // by descriptor
	fd       uint64           // of the call under way
	data     []byte           // of the call under way
	children bool
}

func (o *output) event(m *replay.Machine, e *checkpoint.Event) {
	switch e.Kind {
	case checkpoint.EventEnter:
		o.data = nil
		switch e.NR {
		case abi.SYS_CLONE, abi.SYS_CLONE3, abi.SYS_FORK, abi.SYS_VFORK:
			o.children = true
		case abi.SYS_WRITE:
			if o.fd = e.Args[0]; o.wants() {
				o.data = read(m, e.Args[1], e.Args[2])
			}
		case abi.SYS_WRITEV:
			if o.fd = e.Args[0]; o.wants() {
				o.data = vector(m, e.Args[1], e.Args[2])
			}
		}
	case checkpoint.EventExit:
		if n := e.Result; n > 0 && int(n) <= len(o.data) {
			_, _ = o.w[o.fd].Write(o.data[:n]) // Flush tells
		}
		o.data = nil
	default: // No call.
	}
}

// wants says whether what the call writes is collected.
func (o *output) wants() bool { return o.fd == 1 || o.fd == 2 }

// maxWrite is the most a Linux write takes (man 2 write, NOTES).
const maxWrite = 0x7ffff000

// read copies as much of n bytes at a as the guest has.
func read(m *replay.Machine, a, n uint64) []byte {
	b := make([]byte, min(n, maxWrite))
	got, _ := m.Mem.Peek(a, b)
	return b[:got]
}

// vector joins the n buffers of the struct iovec array at a.
func vector(m *replay.Machine, a, n uint64) []byte {
	var all []byte
	v := read(m, a, min(n, 1024)*16)
	for ; len(v) >= 16; v = v[16:] {
		all = append(all, read(m, binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:]))...)
	}
	return all
}
