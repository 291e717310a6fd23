package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vplay/tests/need"
)

// The script locks on programs of Debian with threads: those that it is to be silent of, and those that have a race. With -analyses all
// of them (just locks), without two. What the races are is in replay/analysis/script/RATIONALE.md.

// threaded is a program with threads.
type threaded struct {
	command []string
	client  func(ctx context.Context) // ends it, of a server
	race    string                    // what it has, by a part of its text; "" for none
}

// numbers writes a file of numbers.
func numbers(t *testing.T, path string, n int) string {
	t.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintln(&text, i*7919%200003)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLocksScriptOnPrograms is silent of programs that are sound, and finds the races of those that have some. A program that has run with
// one thread alone fails: the script has a row of that.
func TestLocksScriptOnPrograms(t *testing.T) {
	t.Parallel()
	need.Recorder(t)
	dir := t.TempDir()
	programs := []threaded{
		{command: []string{"xz", "-T2", "-0", "--block-size=8KiB", "-kc", numbers(t, filepath.Join(dir, "short"), 3000)}},
		{command: []string{"fdfind", "-j2", ".", dir}},
	}
	if *allPrograms {
		programs = append(programs, manyThreaded(t, dir)...)
	}
	for _, p := range programs {
		t.Run(strings.Join(p.command[:min(2, len(p.command))], "_"), func(t *testing.T) {
			need.Program(t, p.command[0])
			if p.client != nil {
				go p.client(t.Context())
			}
			rec := filepath.Join(t.TempDir(), "r.vplay")
			recordAs(t, rec, p.command...)
			found := 0
			for _, r := range locks(t, rec) {
				if p.race != "" && strings.Contains(r.Text, p.race) {
					found++
				} else {
					t.Errorf("%s", r.Text)
				}
			}
			if p.race != "" && found == 0 {
				t.Errorf("no race of %s", p.race)
			}
		})
	}
}

// manyThreaded are the programs that -analyses takes.
func manyThreaded(t *testing.T, dir string) []threaded {
	t.Helper()
	long := numbers(t, filepath.Join(dir, "long"), 40000)
	for _, args := range [][]string{{"xz", "-T2", "-1", "--block-size=60KiB", "-k", long}, {"bzip2", "-k", long}} { // of one thread, xz's has no sizes to divide it by
		if out, err := exec.Command(need.Program(t, args[0]), args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	redis := filepath.Join(dir, "redis")
	return []threaded{
		{command: []string{"xz", "-T2", "-dc", long + ".xz"}},
		{command: []string{"zstd", "-T2", "-qfc", long}},
		{command: []string{"pigz", "-p2", "-b32", "-kc", long}},
		{command: []string{"lbzip2", "-n2", "-1", "-kc", long}},
		{command: []string{"lbzip2", "-dn2", "-kc", long + ".bz2"}},
		{command: []string{"pbzip2", "-p2", "-b1", "-1", "-kc", long}},
		{command: []string{"pixz", "-p2", "-0", "-k", long, filepath.Join(dir, "pixz")}},
		{command: []string{"git", "-C", root, "grep", "--threads=2", "-c", "Replay"}},
		{command: []string{"rg", "-j2", "-c", "Replay", filepath.Join(root, "replay")}},
		{command: []string{"curl", "-s", "-m", "5", "http://" + host + ":1/"}}, // its resolver is a thread,
		{command: []string{"guile", "-c", "(use-modules (ice-9 threads)) (display (par-map (lambda (x) (* x x)) (iota 50)))"}},
		{command: []string{"gdb", "-nx", "-batch", "-ex", "info line main", need.Program(t, "true")}},
		{command: []string{"redis-server", "--port", "0", "--save", "", "--unixsocket", redis, "--io-threads", "2", "--io-threads-do-reads", "yes"},
			client: func(ctx context.Context) { askRedis(ctx, redis) }},
		// These have a race each.
		{command: []string{"7zz", "a", "-mmt2", "-mx5", "-bd", filepath.Join(dir, "7z"), filepath.Join(dir, "short")}, race: "in 7zz"},
		{command: []string{"plzip", "-n2", "-0", "-B64KiB", "-kc", long}, race: "in lzip.plzip"},
		{command: []string{"/usr/bin/python3", "-c", "import threading\nfor t in [threading.Thread(target=sum, args=(range(9),)) for _ in range(3)]: t.start()"}, race: "PyMem_SetAllocator"}, // what it stores to has a name in debug information alone
	}
}

// askRedis asks a server for something by several connections once it is there, and ends it.
func askRedis(ctx context.Context, socket string) {
	for ctx.Err() == nil {
		if exec.CommandContext(ctx, "redis-cli", "-s", socket, "ping").Run() == nil {
			_ = exec.CommandContext(ctx, "redis-benchmark", "-s", socket, "-c", "8", "-n", "40", "-t", "set,get", "-q").Run()
			_ = exec.CommandContext(ctx, "redis-cli", "-s", socket, "shutdown", "nosave").Run() // the connection is lost
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
