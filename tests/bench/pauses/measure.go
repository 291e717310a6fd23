package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"vplay/tests/bench/command"
	"vplay/tests/bench/meter"
)

// How a server is measured in one way: started, filled, written to, looked at, ended.

// wanted is what the pauses at 99 of 100 borders are to be below, in milliseconds, with 1 GiB.
const wanted = 5

// result is one way of running.
type result struct {
	Mode     string  `json:"mode"`
	Data     int64   `json:"used_memory"` // as the server says
	Requests int     `json:"requests"`
	PerS     float64 `json:"requests_per_s"`
	CPU      float64 `json:"server_cpu_us_per_request"`
	P50      float64 `json:"p50_ms"` // of the clients' requests
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`

	Borders *borders `json:"borders,omitempty"` // while the clients wrote
	Memory  memory   `json:"pss"`
}

// borders are the pauses of the program, in milliseconds.
type borders struct {
	N       int     `json:"n"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
	Max     float64 `json:"max_ms"`
	CPU     float64 `json:"cpu_p50_ms"`       // processor time of a border
	Scan    float64 `json:"scan_cpu_p50_ms"`  // of that: finding out what was written
	Clone   float64 `json:"clone_cpu_p50_ms"` // making the copy
	Written uint64  `json:"pages_written_p50"`
	Pages   uint64  `json:"pages"`
	Share   float64 `json:"share_of_wall"` // all pauses
}

// memory is what the processes of the tree have, in bytes of PSS.
type memory struct {
	Server   int64 `json:"server"`
	Shadows  int64 `json:"shadows"`
	Recorder int64 `json:"vplayd"`
	Guardian int64 `json:"guardian"`
	Number   int   `json:"number_of_shadows"`
}

func (m memory) sum() int64 { return m.Server + m.Shadows + m.Recorder + m.Guardian }

// command returns what runs the server.
func (b *bench) command(mode, port string) []string {
	args := []string{b.redis, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", b.dir, "--logfile", os.DevNull}
	if mode == native {
		return args
	}
	return append(command.Record(b.vplayd, b.dir, mode == agent, b.extra...), args...)
}

// measure runs the server in one way.
func (b *bench) measure(mode string) (res *result, err error) {
	port, err := command.FreePort()
	if err != nil {
		return nil, err
	}
	said, err := os.Create(filepath.Join(b.dir, mode))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, said.Close()) }()
	t, err := command.Start(meter.Command{Args: b.command(mode, port), Dir: b.dir, Stderr: said})
	if err != nil {
		return nil, err
	}
	res, err = b.load(mode, net.JoinHostPort("127.0.0.1", port), t, said.Name())
	if err != nil {
		serr := t.Stop()
		text, _ := os.ReadFile(said.Name()) // more about err
		return nil, errors.Join(fmt.Errorf("%w\n%s", err, text[max(len(text)-2000, 0):]), serr)
	}
	return res, t.End(b.redis, meter.Terminate)
}

// load fills the server and has clients write.
func (b *bench) load(mode, address string, t *command.Server, log string) (*result, error) {
	if err := t.Listening(b.ctx, address); err != nil {
		return nil, err
	}
	b.tell(mode, "fills the server with %d MiB", b.size>>20)
	keys, err := fill(b.ctx, address, b.size)
	if err != nil {
		return nil, err
	}
	res := &result{Mode: mode}
	if res.Data, err = usedMemory(b.ctx, address); err != nil {
		return nil, err
	}
	b.tell(mode, "clients write for %v", b.seconds)
	if _, err := writeFor(b.ctx, address, keys, b.seconds/10+100*time.Millisecond); err != nil { // it warms up
		return nil, err
	}
	from, cpu, start := sizeOf(log), t.CPU(), time.Now()
	latencies, err := writeFor(b.ctx, address, keys, b.seconds)
	if err != nil {
		return nil, err
	}
	took, to := time.Since(start), sizeOf(log)
	n := len(latencies)
	res.Requests, res.PerS = n, float64(n)/took.Seconds()
	res.CPU = float64((t.CPU() - cpu).Microseconds()) / float64(n)
	res.P50, res.P99, res.Max = ms(meter.Percentile(latencies, 0.5)), ms(meter.Percentile(latencies, 0.99)), ms(meter.Percentile(latencies, 1))
	if mode != native {
		text, err := os.ReadFile(log)
		if err != nil {
			return nil, err
		}
		if res.Borders, err = readBorders(text[from:to], took); err != nil {
			return nil, err
		}
	}
	res.Memory, err = b.memory(t)
	return res, err
}

// sizeOf returns the size of a file, 0 where there is none.
func sizeOf(file string) int64 {
	st, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return st.Size()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// readBorders reads the lines of the recorder's log that are about borders.
func readBorders(log []byte, wall time.Duration) (*borders, error) {
	var took, cpu, scan, clone []float64
	var written []uint64
	b := &borders{}
	for lines := bufio.NewScanner(bytes.NewReader(log)); lines.Scan(); {
		var line struct {
			Message                string
			Took, CPU, Scan, Clone float64 // milliseconds
			Pages, Written         uint64
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Message != "border of an interval" {
			continue
		}
		took, cpu = append(took, line.Took), append(cpu, line.CPU)
		scan, clone = append(scan, line.Scan), append(clone, line.Clone)
		written, b.Pages = append(written, line.Written), line.Pages
		b.Share += line.Took / ms(wall)
	}
	if b.N = len(took); b.N == 0 {
		return nil, errors.New("the recorder's log has no border of an interval")
	}
	b.P50, b.P99, b.Max = meter.Percentile(took, 0.5), meter.Percentile(took, 0.99), meter.Percentile(took, 1)
	b.CPU = meter.Percentile(cpu, 0.5)
	b.Scan, b.Clone, b.Written = meter.Percentile(scan, 0.5), meter.Percentile(clone, 0.5), meter.Percentile(written, 0.5)
	return b, nil
}

// memory looks at what the processes of the tree have.
func (b *bench) memory(t *command.Server) (m memory, err error) {
	server, ok := t.Oldest(b.redis)
	if !ok {
		return m, errors.New("the server has gone")
	}
	for _, p := range meter.Below(t.PID()) {
		n, err := meter.PSS(p.PID)
		switch {
		case errors.Is(err, os.ErrNotExist): // a shadow that was given up
			continue
		case err != nil:
			return m, err
		case p.PID == server.PID:
			m.Server += n
		case p.Name == "vplay-guardian":
			m.Guardian += n
		case p.Program == server.Program:
			m.Shadows += n
			m.Number++
		default:
			m.Recorder += n
		}
	}
	return m, nil
}
