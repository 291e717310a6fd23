//go:build linux && amd64

package record

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vplay/checkpoint"
	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

// Language runtimes and servers that run for a minute each with an interval ended by force every
// 3 ms: `just forced`. Each checks its own results until its time is over, and prints one line.

var forcedFor = flag.Duration("forced-for", 0, "how long each program of TestForcedMinutes runs; 0 is not at all")

var forcedChaos = flag.Bool("forced-chaos", false, "TestForcedMinutes: random schedules, too")

// forcedEvery is how often an interval of them ends by force.
const forcedEvery = 3 * time.Millisecond

const pythonMinute = `
import threading, queue, time, sys
end = time.monotonic() + float(sys.argv[1])
def work(q, out):
    while (x := q.get()) is not None: out.append(x * x)
while time.monotonic() < end:
    q, out = queue.Queue(), []
    ts = [threading.Thread(target=work, args=(q, out)) for i in range(4)]
    for t in ts: t.start()
    for i in range(500): q.put(i)
    for t in ts: q.put(None)
    for t in ts: t.join()
    assert sorted(out) == [i * i for i in range(500)]
print("python3: right")
`

const nodeMinute = `const fs = require('fs'), crypto = require('crypto'), assert = require('assert');
const end = Date.now() + 1000 * process.argv[1];
const size = fs.statSync('small').size, hash = crypto.pbkdf2Sync('secret', 'salt', 2000, 32, 'sha256').toString('hex');
function turn() {
    if (Date.now() >= end) { console.log('node: right'); return; }
    let left = 21;
    const one = () => { if (--left == 0) turn(); };
    for (let i = 0; i < 20; i++) fs.readFile('small', (e, b) => { assert.equal(b.length, size); one(); });
    crypto.pbkdf2('secret', 'salt', 2000, 32, 'sha256', (e, k) => { assert.equal(k.toString('hex'), hash); one(); });
}
turn();`

const javaMinute = `public class Minute {
    static long sum;
    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + (long) (1e9 * Double.parseDouble(args[0]));
        while (System.nanoTime() < end) {
            sum = 0;
            Thread[] threads = new Thread[4];
            for (int i = 0; i < threads.length; i++) {
                threads[i] = new Thread(() -> {
                    StringBuilder b = new StringBuilder();
                    for (int j = 0; j < 20000; j++) b.append(j);
                    synchronized (Minute.class) { sum += b.length(); }
                });
                threads[i].start();
            }
            for (Thread t : threads) t.join();
            if (sum != 4 * 88890) throw new Exception("sum " + sum);
        }
        System.out.println("java: right");
    }
}
`

const goMinute = `package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	for end := time.Now().Add(time.Duration(seconds * 1e9)); time.Now().Before(end); {
		var wg sync.WaitGroup
		c := make(chan int, 10)
		for range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for j := range 1000 {
					b, _ := os.ReadFile("minute.mod")
					c <- j + len(b)
				}
			}()
		}
		go func() { wg.Wait(); close(c) }()
		sum, n := 0, 0
		for v := range c {
			sum += v
			if n++; n%1000 == 0 {
				runtime.GC()
			}
		}
		if sum != 8*999*500 {
			panic(sum)
		}
	}
	fmt.Println("go: right")
}
`

// minute is a program that runs as long as it is told.
type minute struct {
	name string
	args []string
	// use has a client use a server that listens at port, again and again; nil for what is no server.
	use  func(t *testing.T, addr string)
	port string
	// prints is what it prints; "" for anything.
	prints string
}

// minutes are the programs, which work in folder dir.
func minutes(t *testing.T, dir string) []minute {
	for name, text := range map[string]string{"Minute.java": javaMinute, "minute.go": goMinute, "minute.mod": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, cmd := range [][]string{{need.Program(t, "javac"), "Minute.java"}, {"go", "build", "-o", "gominute", "minute.go"}} {
		c := exec.Command(cmd[0], cmd[1:]...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	seconds := strconv.FormatFloat(forcedFor.Seconds(), 'f', -1, 64)
	port := freePort(t)
	return []minute{
		{"python3 threads", []string{"python3", "-c", pythonMinute, seconds}, nil, "", "python3: right\n"},
		{"node", []string{"node", "-e", nodeMinute, seconds}, nil, "", "node: right\n"},
		{"java", []string{"java", "-cp", ".", "Minute", seconds}, nil, "", "java: right\n"},
		{"go", []string{filepath.Join(dir, "gominute"), seconds}, nil, "", "go: right\n"},
		{"redis", []string{"redis-server", "--port", port, "--save", "", "--appendonly", "no"}, useRedis("500"), port, ""},
		{"nginx", nginxArgs(t, port), useHTTP("100"), port, ""},
	}
}

// record records the program, which runs for the time that -forced-for says.
func (m *minute) record(t *testing.T, dir string) (outcome, recorder.Result) {
	r := run{dir: dir, args: installed(t, m.args), opt: recorder.Options{ForceEvery: forcedEvery, Chaos: *forcedChaos, ChaosSeed: 1}}
	if m.use != nil {
		r.kick = func(pid int) {
			defer func() { _ = syscall.Kill(pid, syscall.SIGTERM) }()
			addr := net.JoinHostPort("127.0.0.1", m.port)
			if !listening(addr) {
				t.Errorf("nothing listens at %s", addr)
				return
			}
			for end := time.Now().Add(*forcedFor); time.Now().Before(end) && !t.Failed(); {
				m.use(t, addr)
			}
		}
	}
	return r.recorded(t)
}

// minuteRow is a line of the table of TestForcedMinutes.
type minuteRow struct {
	name      string
	ran       time.Duration
	res       recorder.Result
	processes int
	bytes     int64
	v         verified
	busy      time.Duration // processor time of verifying
	apart     time.Duration // the program's processor time between two ends, median
	wrong     bool
}

const minuteHead = "program          seconds processes intervals   forced apart ms    events  M instr   file MB verify s  cpu s  exact"

func (m *minuteRow) String() string {
	return fmt.Sprintf("%-16s %7.1f %9d %9d %8d %8.1f %9d %8.0f %9.0f %8.0f %6.0f  %t", m.name, m.ran.Seconds(), m.processes, m.v.intervals,
		m.res.Stats.ForcedEnds, m.apart.Seconds()*1e3, m.res.Stats.Events, float64(m.v.insns)/1e6, float64(m.bytes)/1e6, m.v.took.Seconds(), m.busy.Seconds(), !m.wrong)
}

// TestForcedMinutes records them, verifies every interval, and prints a table.
func TestForcedMinutes(t *testing.T) {
	if *forcedFor == 0 {
		return
	}
	defer func(was time.Duration) { limit = was }(limit)
	limit = max(limit, 120**forcedFor)
	dir := inputs(t)
	table := []string{minuteHead}
	for _, m := range minutes(t, dir) {
		t.Run(m.name, func(t *testing.T) {
			row := minuteRow{name: m.name}
			defer func() {
				row.wrong = t.Failed()
				table = append(table, row.String())
				t.Log("\n" + minuteHead + "\n" + row.String())
			}()
			m.check(t, dir, &row)
		})
	}
	fmt.Println(strings.Join(table, "\n"))
}

// check records the program and verifies the recording.
func (m *minute) check(t *testing.T, dir string, row *minuteRow) {
	began := time.Now()
	got, res := m.record(t, dir)
	row.ran, row.res = time.Since(began), res
	if m.prints != "" && (got.out != m.prints || got.code != 0) {
		t.Errorf("code %d, signal %d, output:\n%s", got.code, got.sig, tail(got.out))
	}
	if !res.Recorded || res.Reason != "" {
		t.Fatalf("recorded: %t: %s", res.Recorded, res.Reason)
	}
	if res.Stats.ForcedEnds == 0 {
		t.Error("no interval ended by force")
	}
	if st, err := os.Stat(res.Path); err == nil {
		row.bytes = st.Size()
	}
	rec := openRecording(t, res.Path)
	row.processes, row.apart = len(strings.Fields(programsIn(rec))), apart(rec)
	busy := processorTime(t)
	row.v = verify(t, res.Path)
	row.busy = processorTime(t) - busy
}

// apart returns the median of the processor time that the intervals of a recording took.
func apart(rec *checkpoint.Recording) time.Duration {
	var took []time.Duration
	for _, in := range rec.Intervals() {
		took = append(took, in.CPUTime)
	}
	slices.Sort(took)
	return took[len(took)/2]
}
