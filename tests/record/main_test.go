//go:build linux && amd64

package record

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	recorder "vplay/checkpoint/record"
)

var (
	long         = flag.Bool("long", false, "forced ends for 2 s each, not 0.2 s")
	transparency = flag.Bool("transparency", false, "python3's own tests as a whole, recorded and native")
)

// recordVerb makes the test binary a recorder: PATH INTERVAL PROG ARGS...
// follow. Its exit code is the program's, or 128 and the
// number of the signal that killed it.
const recordVerb = "__record"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case recorder.LaunchVerb:
			fmt.Fprintln(os.Stderr, recorder.Launch(os.Args[2:]))
			os.Exit(126)
		case recorder.GuardVerb:
			if err := recorder.Guard(); err != nil {
				os.Exit(1)
			}
			os.Exit(0)
		case orphansVerb:
			os.Exit(orphansMain(os.Args[2:]))
		case recordVerb:
			os.Exit(recordMain(os.Args[2:]))
		case attachVerb:
			os.Exit(attachMain(os.Args[2]))
		case initVerb:
			os.Exit(initMain(os.Args[2:]))
		}
	}
	code := m.Run()
	rows.print()
	removeVplayd()
	os.Exit(code)
}

// keepVariable says in the environment of recordVerb what is kept; it is all by default.
const keepVariable = "VPLAY_TEST_KEEP"

// agentVariable, set there, has the agent make calls.
const agentVariable = "VPLAY_TEST_AGENT"

// begunVariable names a file there that is made when the program has begun.
const begunVariable = "VPLAY_TEST_BEGUN"

// recordMain is the recorder as a command.
func recordMain(args []string) int {
	every, err := time.ParseDuration(args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	keep := recorder.KeepAlways
	if k := os.Getenv(keepVariable); k != "" {
		keep = recorder.Keep(k)
	}
	agent := *underAgent || os.Getenv(agentVariable) != ""
	started := func(int) {
		if begun := os.Getenv(begunVariable); begun != "" {
			_ = os.WriteFile(begun, nil, 0o600) // who asks for it misses it
		}
	}
	res, err := recorder.Run(context.Background(), recorder.Options{Started: started, Path: args[0], Interval: every, Keep: keep, Agent: agent, AgentAfter: *agentAfter, TSCAfter: *tscAfter, Args: args[2:], Guardian: guardian()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	return res.ExitCode
}

// exercised counts the system calls in the recordings of a run.
type exercised struct {
	mu       sync.Mutex
	recorded map[int64]int
	verified map[int64]int
}

var rows = exercised{recorded: map[int64]int{}, verified: map[int64]int{}}

// add counts the calls of a recording. exact says which intervals replayed.
func (x *exercised) add(rec *checkpoint.Recording, exact map[uint32]bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, info := range rec.Intervals() {
		iv, err := rec.Interval(info.ID)
		if err != nil {
			continue
		}
		for i := range iv.Events {
			if e := &iv.Events[i]; e.Kind == checkpoint.EventEnter {
				x.recorded[e.NR]++
				if exact[iv.ID] {
					x.verified[e.NR]++
				}
			}
		}
	}
}

// print lists the rows of the system call table that were exercised.
func (x *exercised) print() {
	if !testing.Verbose() || len(x.recorded) == 0 {
		return
	}
	var ok, bad []string
	for nr, n := range x.recorded {
		if x.verified[nr] > 0 {
			ok = append(ok, fmt.Sprintf("%s(%d)", abi.Name(nr), n))
		} else {
			bad = append(bad, abi.Name(nr))
		}
	}
	slices.Sort(ok)
	slices.Sort(bad)
	fmt.Printf("%d of %d rows of the system call table recorded and verified: %s\n", len(ok), tableRows(), strings.Join(ok, " "))
	if len(bad) > 0 {
		fmt.Printf("recorded but not verified: %s\n", strings.Join(bad, " "))
	}
}

// tableRows counts the rows of the system call table.
func tableRows() int {
	n := 0
	for nr := range int64(1024) {
		if _, ok := abi.Lookup(nr); ok {
			n++
		}
	}
	return n
}
