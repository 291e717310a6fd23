package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"vplay/tests/bench/meter"
	"vplay/tests/internal/tool"
	"vplay/tests/need"
)

// The command itself with little memory, by a server that stands in for redis, and what it reads.

func TestMain(m *testing.M) {
	meter.Child()
	if len(os.Args) > 3 && os.Args[1] == "--port" { // as redis-server is started
		fmt.Fprintln(os.Stderr, store(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestPauses measures a store of 4 MiB.
func TestPauses(t *testing.T) {
	need.Recorder(t)
	dir := t.TempDir()
	vplayd, err := tool.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	link := filepath.Join(t.TempDir(), "redis-server")
	if err := os.Symlink(os.Args[0], link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(link)+":"+os.Getenv("PATH"))
	var out bytes.Buffer
	seconds := "1s"
	if need.DearPages() {
		seconds = "5s" // with few borders
	}
	args := []string{"--json", "--size", "4", "--seconds", seconds, "--vplayd", vplayd, "--record", "--interval 10ms"}
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
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
		if r.Requests < 20 || r.CPU <= 0 || r.P99 < r.P50 || r.Max < r.P99 || r.Memory.Server <= 0 || r.Data != 12345 {
			t.Errorf("%+v", r)
		}
	}
	b, m := rep.Results[1].Borders, rep.Results[1].Memory
	if b == nil || b.N < 2 || b.P99 < b.P50 || b.Max < b.P99 || b.Scan <= 0 || b.Clone <= 0 || b.Pages < 1000 || b.Written == 0 || b.Share <= 0 {
		t.Errorf("borders: %+v", b)
	}
	if m.Number < 2 || m.Recorder <= 0 || m.Guardian <= 0 || m.Shadows <= 0 {
		t.Errorf("memory: %+v", m)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 1 { // the recorder's own folder
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := rep.Print(&out); err != nil {
		t.Error(err)
	}
}

// store is a server with as much of redis's protocol as the client here uses.
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
		go answer(c)
	}
}

func answer(c net.Conn) {
	r, values := bufio.NewReader(c), map[string][]byte{}
	w := bufio.NewWriter(c)
	for {
		var args [][]byte
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
		for range n {
			line, _ := r.ReadString('\n')
			size, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
			arg := make([]byte, size+2)
			if _, err := io.ReadFull(r, arg); err != nil {
				return
			}
			args = append(args, arg[:size])
		}
		if string(args[0]) == "SET" {
			values[string(args[1])] = args[2]
			fmt.Fprint(w, "+OK\r\n")
		} else {
			fmt.Fprint(w, "$30\r\n# Memory\r\nused_memory:12345\r\n\r\n")
		}
		if r.Buffered() == 0 && w.Flush() != nil {
			return
		}
	}
}

// TestBorders reads a log.
func TestBorders(t *testing.T) {
	const log = `something of the program
{"level":"debug","component":"record","pid":7,"took":1.5,"cpu":1.25,"scan":0.5,"clone":0.75,"pages":100,"written":7,"message":"border of an interval"}
{"level":"debug","component":"record","message":"something else"}
{"level":"debug","component":"record","pid":7,"took":2.5,"cpu":1.75,"scan":0.25,"clone":0.75,"pages":101,"written":9,"message":"border of an interval"}
`
	b, err := readBorders([]byte(log), 100*time.Millisecond)
	if err != nil || *b != (borders{N: 2, P50: 2.5, P99: 2.5, Max: 2.5, CPU: 1.75, Scan: 0.5, Clone: 0.75, Written: 9, Pages: 101, Share: 0.04}) {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := readBorders([]byte("nothing\n"), time.Second); err == nil {
		t.Error("no borders are no error")
	}
}

// TestFlags refuses what cannot be.
func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"--size", "0"}, {"--seconds", "0s"}, {"--modes", "rr"}, {"redis"}} {
		if _, _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
	for line := range strings.Lines(usage) { // what the help shows works
		command, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if flags, ok := strings.CutPrefix(command, "just pauses"); ok {
			if _, _, err := parse(strings.Fields(flags), io.Discard); err != nil {
				t.Errorf("%s: %v", command, err)
			}
		}
	}
}
