package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"vplay/tests/bench/command"
	"vplay/tests/bench/meter"
)

// The servers, and the clients that ask them. How a server is measured is in serve.go.

// server is one that is started anew for each measurement.
type server struct {
	args    []string
	binary  string // that the server itself executes
	address string
	end     os.Signal // that ends it in order
	// requests is how many a load has, and slowly how many it has where each call is two stops.
	requests, slowly int
	// prepare, when set, is called once the server answers.
	prepare func() error
	// load makes n requests and returns the client's latencies.
	load func(n int) (p50, p99 time.Duration, err error)
}

func redis(b *bench, dir string) (*server, error) {
	port, err := command.FreePort()
	if err != nil {
		return nil, err
	}
	s, err := b.newServer(port, "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	if err != nil {
		return nil, err
	}
	s.load = func(n int) (p50, p99 time.Duration, err error) {
		out, err := exec.CommandContext(b.ctx, "redis-benchmark", "-p", port, "-n", strconv.Itoa(n/2), "-c", "20", "-t", "set,get", "-d", "64", "-r", "10000", "--csv").Output()
		if err != nil {
			return 0, 0, err
		}
		return benchmarkLatency(string(out))
	}
	return s, nil
}

// benchmarkLatency reads the table of redis-benchmark --csv, and returns the greater of its tests' latencies.
func benchmarkLatency(out string) (p50, p99 time.Duration, err error) {
	table, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil {
		return 0, 0, err
	}
	if len(table) < 2 {
		return 0, 0, fmt.Errorf("redis-benchmark says %q", out)
	}
	at50, at99 := slices.Index(table[0], "p50_latency_ms"), slices.Index(table[0], "p99_latency_ms")
	if at50 < 0 || at99 < 0 {
		return 0, 0, fmt.Errorf("redis-benchmark says no latencies: %q", table[0])
	}
	for _, line := range table[1:] {
		a, aerr := inMilliseconds(line[at50])
		z, zerr := inMilliseconds(line[at99])
		if err := errors.Join(aerr, zerr); err != nil {
			return 0, 0, err
		}
		p50, p99 = max(p50, a), max(p99, z)
	}
	return p50, p99, nil
}

func inMilliseconds(s string) (time.Duration, error) {
	ms, err := strconv.ParseFloat(s, 64)
	return time.Duration(ms * float64(time.Millisecond)), err
}

func nginx(sendfile string) func(b *bench, dir string) (*server, error) {
	return func(b *bench, dir string) (*server, error) { return startNginx(b, dir, sendfile) }
}

func startNginx(b *bench, dir, sendfile string) (*server, error) {
	port, err := command.FreePort()
	if err != nil {
		return nil, err
	}
	conf := fmt.Sprintf(`worker_processes 1; daemon off; pid %[1]s/pid; error_log %[1]s/errors;
events { worker_connections 128; }
http {
	sendfile %[3]s; access_log off; keepalive_requests 100000000; client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2;
	fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
	server { listen 127.0.0.1:%[2]s; root %[1]s; }
}
`, dir, port, sendfile)
	if os.Getuid() == 0 {
		conf = "user root; " + conf
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o600),
		os.WriteFile(filepath.Join(dir, "index.html"), []byte(strings.Repeat("some text\n", 2000)), 0o600)); err != nil {
		return nil, err
	}
	s, err := b.newServer(port, "nginx", "-c", filepath.Join(dir, "conf"))
	if err != nil {
		return nil, err
	}
	s.load = func(n int) (p50, p99 time.Duration, err error) {
		table := filepath.Join(dir, "latencies")
		out, err := exec.CommandContext(b.ctx, "ab", "-q", "-k", "-n", strconv.Itoa(n), "-c", "20", "-e", table, "http://"+s.address+"/").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Failed requests:        0\n") {
			return 0, 0, errors.Join(fmt.Errorf("ab: %s", out), err)
		}
		return abLatency(table)
	}
	return s, nil
}

// abLatency reads the file that ab -e writes: milliseconds by share of the requests.
func abLatency(file string) (p50, p99 time.Duration, err error) {
	f, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, err
	}
	table, err := csv.NewReader(strings.NewReader(string(f))).ReadAll()
	if err != nil {
		return 0, 0, err
	}
	for _, line := range table {
		switch line[0] {
		case "50":
			p50, err = inMilliseconds(line[1])
		case "99":
			p99, err = inMilliseconds(line[1])
		}
		if err != nil {
			return 0, 0, err
		}
	}
	if p99 == 0 {
		return 0, 0, errors.New("ab says no latencies")
	}
	return p50, p99, nil
}

func memcached(b *bench, _ string) (*server, error) {
	port, err := command.FreePort()
	if err != nil {
		return nil, err
	}
	args := []string{"-l", "127.0.0.1", "-p", port, "-t", "4"}
	if os.Getuid() == 0 {
		args = append(args, "-u", "nobody") // it does not run as root
	}
	s, err := b.newServer(port, "memcached", args...)
	if err != nil {
		return nil, err
	}
	s.load = func(n int) (p50, p99 time.Duration, err error) { return askMemcached(b.ctx, s.address, n, 20) }
	return s, nil
}

// postgresFolders are where Debian's packages have PostgreSQL's programs.
const postgresFolders = "/usr/lib/postgresql/*/bin"

func postgresql(b *bench, dir string) (*server, error) {
	found, _ := filepath.Glob(postgresFolders) // the pattern is well formed
	if len(found) == 0 {
		return nil, errors.New("no PostgreSQL in " + postgresFolders)
	}
	bin := found[len(found)-1]
	port, err := command.FreePort()
	if err != nil {
		return nil, err
	}
	data, as, err := postgresFolder(dir)
	if err != nil {
		return nil, err
	}
	program := func(name string, args ...string) []string {
		return slices.Concat(as, []string{filepath.Join(bin, name)}, args)
	}
	fill := program("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N")
	cmd := exec.CommandContext(b.ctx, fill[0], fill[1:]...)
	cmd.Dir = data
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	args := program("postgres", "-D", data, "-k", "", "-h", "127.0.0.1", "-p", port)
	s, err := b.newServer(port, args[0], args[1:]...)
	if err != nil {
		return nil, err
	}
	s.binary, s.end = filepath.Join(bin, "postgres"), os.Interrupt // its fast shutdown
	s.requests, s.slowly = b.n(20_000, 400), b.n(4000, 40)
	ask := func(args ...string) ([]byte, error) {
		args = slices.Concat([]string{"-h", "127.0.0.1", "-p", port, "-U", "postgres"}, args, []string{"postgres"})
		cmd := exec.CommandContext(b.ctx, filepath.Join(bin, "pgbench"), args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("pgbench: %w\n%s", err, out)
		}
		return out, err
	}
	filled := false
	s.prepare = func() error {
		for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // it may be starting up
			args := []string{"-S", "-t", "1"}
			if !filled {
				args = []string{"-i", "-q", "-s", "1"}
			}
			_, err := ask(args...)
			if err == nil {
				filled = true
				return nil
			}
			if time.Now().After(end) || b.ctx.Err() != nil {
				return err
			}
		}
	}
	s.load = func(n int) (p50, p99 time.Duration, err error) {
		const clients = 4
		out, err := ask("-S", "-n", "-c", strconv.Itoa(clients), "-t", strconv.Itoa(n/clients), "-l", "--log-prefix", "latencies")
		if err != nil {
			return 0, 0, err
		}
		if !strings.Contains(string(out), "number of failed transactions: 0 ") {
			return 0, 0, fmt.Errorf("pgbench: %s", out)
		}
		return pgbenchLatency(dir)
	}
	return s, nil
}

// postgresFolder makes the folder of a database, and returns what runs a program as whom the folder belongs to: it does not
// run as root.
func postgresFolder(dir string) (data string, as []string, err error) {
	data = filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return "", nil, err
	}
	if os.Getuid() != 0 {
		return data, nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return "", nil, err
	}
	uid, uerr := strconv.Atoi(u.Uid)
	gid, gerr := strconv.Atoi(u.Gid)
	as = []string{"setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"}
	return data, as, errors.Join(uerr, gerr, os.Chown(data, uid, gid))
}

// pgbenchLatency reads, and removes, what pgbench -l writes: the third number of each line is a latency in microseconds.
func pgbenchLatency(dir string) (p50, p99 time.Duration, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "latencies*"))
	if err != nil {
		return 0, 0, err
	}
	var all []time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, 0, err
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 3 {
				return 0, 0, fmt.Errorf("pgbench's log has %q", line)
			}
			us, err := strconv.Atoi(f[2])
			if err != nil {
				return 0, 0, err
			}
			all = append(all, time.Duration(us)*time.Microsecond)
		}
		if err := os.Remove(file); err != nil {
			return 0, 0, err
		}
	}
	if len(all) == 0 {
		return 0, 0, errors.New("pgbench has logged nothing")
	}
	return meter.Percentile(all, 0.5), meter.Percentile(all, 0.99), nil
}
