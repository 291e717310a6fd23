package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vplay/tests/bench/command"
	"vplay/tests/bench/meter"
	"vplay/tests/internal/tool"
	"vplay/tests/need"
)

// The command itself, with work for milliseconds, and the arithmetic of the table.

func TestMain(m *testing.M) {
	meter.Child()
	if len(os.Args) == 3 && os.Args[1] == "__store" {
		fmt.Fprintln(os.Stderr, store(os.Args[2]))
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "vplay-overhead-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	vplayd = sync.OnceValues(func() (string, error) { return tool.Build(dir) })
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// vplayd builds it.
var vplayd func() (path string, err error)

// TestTiny measures two programs in every way.
func TestTiny(t *testing.T) {
	need.Recorder(t)
	need.Program(t, "gzip", "dd", "strace")
	bin, err := vplayd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--json", "--tiny", "--rounds", "2", "--vplayd", bin, "--only", "gzip,dd-1"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Results) != 2 {
		t.Fatalf("%d results, want 2", len(rep.Results))
	}
	for _, r := range rep.Results {
		for _, mode := range modeNames {
			if w := r.Ways[mode]; w == nil || w.CPU <= 0 || w.Wall < w.WallLeast || w.CPULeast > w.CPU {
				t.Errorf("%s, %s: %+v", r.Name, mode, w)
			}
		}
		// Recording costs more than these do: less would say that something was not counted.
		if r.Ways[agent].Ratio < 1.5 || r.Ways[stops].Ratio < 1.5 {
			t.Errorf("%s: %+v, %+v", r.Name, r.Ways[agent], r.Ways[stops])
		}
		if r.Did == nil || r.Did.Calls < 20 {
			t.Errorf("%s: %+v", r.Name, r.Did)
		}
	}
	if d := rep.Results[1].Did; d != nil && d.Calls < 2000 {
		t.Errorf("dd has made %d calls, want 1000 to read and 1000 to write", d.Calls)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 1 { // the recorder's own folder
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestServer measures a server that stands in for memcached.
func TestServer(t *testing.T) {
	need.Recorder(t)
	dir := t.TempDir()
	bin, err := vplayd()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{ctx: t.Context(), dir: dir, vplayd: bin, rounds: 1, tiny: true, modes: []string{native, agent}, progress: io.Discard}
	r := row{name: "store", server: func(b *bench, _ string) (*server, error) {
		port, err := command.FreePort()
		if err != nil {
			return nil, err
		}
		s, err := b.newServer(port, os.Args[0], "__store", port)
		if err != nil {
			return nil, err
		}
		s.requests = 400
		s.load = func(n int) (p50, p99 time.Duration, err error) { return askMemcached(b.ctx, s.address, n, 4) }
		return s, nil
	}}
	res, err := b.measure(r)
	if err != nil {
		t.Fatal(err)
	}
	for mode, w := range res.Ways {
		if w.CPU <= 0 || w.P50 <= 0 || w.P99 < w.P50 {
			t.Errorf("%s: %+v", mode, w)
		}
	}
	if res.Unit != "request" || res.Did == nil || res.Did.Calls < 800 { // 400 requests, each read and answered
		t.Errorf("%s, %+v", res.Unit, res.Did)
	}
}

// TestInterrupted cancels a run when vplayd has begun to record.
func TestInterrupted(t *testing.T) {
	need.Recorder(t)
	need.Program(t, "sleep")
	dir := t.TempDir()
	bin, err := vplayd()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := row{name: "sleeper", program: func(*bench, string) (*program, error) {
		return &program{args: []string{"sleep", "3"}}, nil
	}}
	records := make(chan bool, 1)
	counted := func() { // the warm-up before is native
		go func() {
			defer cancel()
			records <- isSeen(filepath.Base(bin), "sleep")
		}()
	}
	b := &bench{ctx: ctx, dir: dir, vplayd: bin, rounds: 1, modes: []string{agent}, progress: canceller{"round 1 of 1, agent", counted}}
	start := time.Now()
	if _, err := b.measure(r); !errors.Is(err, context.Canceled) || time.Since(start) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	if !<-records {
		t.Error("it was not vplayd that was interrupted")
	}
	for _, p := range meter.Below(os.Getpid()) {
		t.Errorf("left behind: %+v", p)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// isSeen waits until processes of these names run below this one, for as long as a program here does.
func isSeen(names ...string) bool {
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		seen := map[string]bool{}
		for _, p := range meter.Below(os.Getpid()) {
			seen[p.Name] = true
		}
		if !slices.ContainsFunc(names, func(n string) bool { return !seen[n] }) {
			return true
		}
	}
	return false
}

// store is a server with as much of memcached's protocol as its client here uses.
func store(port string) error {
	term := make(chan os.Signal, 1)
	signal.Notify(term, meter.Terminate)
	go func() { <-term; os.Exit(0) }()
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			values, r := map[string]string{}, bufio.NewReader(c)
			for {
				line, err := r.ReadString('\n')
				f := strings.Fields(line)
				switch {
				case err != nil:
					return
				case f[0] == "set":
					values[f[1]], _ = r.ReadString('\n')
					fmt.Fprint(c, "STORED\r\n")
				default:
					fmt.Fprintf(c, "VALUE %s 0 %d\r\n%sEND\r\n", f[1], len(values[f[1]])-2, values[f[1]])
				}
			}
		}()
	}
}

// TestConclude is the arithmetic: medians, ratios of the same round, bounds.
func TestConclude(t *testing.T) {
	r := newResult(row{name: "x", bound: 1.1})
	ms := time.Millisecond
	for _, c := range [][2]time.Duration{{100, 105}, {200, 230}, {100, 109}} { // the machine was slow in the second
		r.add(map[string]sample{native: {cpu: c[0] * ms, wall: c[0] * ms}, agent: {cpu: c[1] * ms, wall: 2 * c[0] * ms}})
	}
	r.conclude([]string{native, agent})
	w := r.Ways[agent]
	if w.Ratio != 1.09 || w.Least != 1.05 || w.WallRatio != 2 || w.CPU != 109_000 || r.Met == nil || !*r.Met {
		t.Errorf("%+v, met %v", w, r.Met)
	}
	var out bytes.Buffer
	if err := (&report{Results: []*result{r}}).Print(&out); err != nil || !strings.Contains(out.String(), "1.09x") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestClients reads what the clients print.
func TestClients(t *testing.T) {
	const table = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"SET","34722.22","0.357","0.096","0.279","0.687","0.727","1.103"
"GET","34722.22","0.357","0.096","0.287","0.687","0.711","1.103"
`
	if a, z, err := benchmarkLatency(table); err != nil || a != 287*time.Microsecond || z != 727*time.Microsecond {
		t.Errorf("redis-benchmark: %v, %v, %v", a, z, err)
	}
	if _, _, err := benchmarkLatency("Could not connect"); err == nil {
		t.Error("redis-benchmark without a table is no error")
	}
	file := filepath.Join(t.TempDir(), "latencies.1")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Percentage served,Time in ms\n0,0.2\n50,0.562\n99,41.125\n100,41.9\n")
	if a, z, err := abLatency(file); err != nil || a != 562*time.Microsecond || z != 41125*time.Microsecond {
		t.Errorf("ab: %v, %v, %v", a, z, err)
	}
	write("0 1 310 0 1795543 1\n1 1 290 0 1795543 2\n0 2 9000 0 1795543 3\n")
	if a, z, err := pgbenchLatency(filepath.Dir(file)); err != nil || a != 310*time.Microsecond || z != 9*time.Millisecond {
		t.Errorf("pgbench: %v, %v, %v", a, z, err)
	}
	if _, _, err := pgbenchLatency(filepath.Dir(file)); err == nil {
		t.Error("pgbench without a log is no error")
	}
}

// TestNames refuses rows and ways that are not there.
func TestNames(t *testing.T) {
	for _, args := range [][]string{{"--only", "gizp"}, {"--modes", "rr"}, {"gzip"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--list"}, &out, io.Discard); err != nil || strings.Count(out.String(), "\n") != len(rows)+1 {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestPartial interrupts a run in its second row: the first is printed.
func TestPartial(t *testing.T) {
	need.Recorder(t)
	need.Program(t, "true", "gzip")
	bin, err := vplayd()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	err = run(ctx, []string{"--json", "--tiny", "--rounds", "1", "--vplayd", bin, "--only", "true,gzip"}, &out, canceller{"row 2 of 2", cancel})
	var rep report
	if jerr := json.Unmarshal(out.Bytes(), &rep); !errors.Is(err, context.Canceled) || jerr != nil || len(rep.Results) != 1 || rep.Results[0].Name != "true" {
		t.Errorf("%v, %v: %s", err, jerr, &out)
	}
}

// canceller calls cancel when a text is written to it.
type canceller struct {
	text   string
	cancel func()
}

func (c canceller) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(c.text)) {
		c.cancel()
	}
	return len(b), nil
}
