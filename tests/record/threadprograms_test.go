//go:build linux && amd64

package record

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"vplay/tests/need"
)

// Programs with threads, which `just programs` installs and records whole: tools, language
// runtimes, and servers under load.

const pythonThreads = `
import threading, queue
q, out = queue.Queue(), []
def work(n):
    while (x := q.get()) is not None: out.append(x * x)
ts = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in ts: t.start()
for i in range(500): q.put(i)
for t in ts: q.put(None)
for t in ts: t.join()
print(len(out), sum(out))
`

const pythonAsync = `
import asyncio
async def nap(i):
    await asyncio.sleep(0.002 * (i % 5)); return i
async def main(): print(sum(await asyncio.gather(*[nap(i) for i in range(50)], asyncio.to_thread(lambda: 7))))
asyncio.run(main())
`

const nodeScript = `const fs = require('fs'), crypto = require('crypto'); let n = 0;
for (let i = 0; i < 20; i++) fs.readFile('small', (e, b) => { n += b.length; });
crypto.pbkdf2('secret', 'salt', 2000, 32, 'sha256', (e, k) => console.log(k.toString('hex')));
process.on('exit', () => console.log(n));`

const javaProgram = `public class J {
    static long sum;
    public static void main(String[] args) throws Exception {
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                StringBuilder b = new StringBuilder();
                for (int j = 0; j < 20000; j++) b.append(j);
                synchronized (J.class) { sum += b.length(); }
            });
            threads[i].start();
        }
        for (Thread t : threads) t.join();
        System.out.println(sum);
    }
}
`

const goProgram = `package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
)

func main() {
	var wg sync.WaitGroup
	c := make(chan int, 10)
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range 1000 {
				b, _ := os.ReadFile("go.mod")
				c <- j + len(b)*0
			}
		}()
	}
	go func() { wg.Wait(); close(c) }()
	sum := 0
	for v := range c {
		sum += v
		if sum%100000 == 0 {
			runtime.GC()
		}
	}
	fmt.Println(sum)
}
`

func threadPrograms(t *testing.T, dir string) []programCase {
	write := func(name, s string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("J.java", javaProgram)
	write("Hello.java", `public class Hello { public static void main(String[] a) { System.out.println("hello"); } }`)
	write("main.go", goProgram)
	write("go.mod", "module program\n\ngo 1.24\n")
	write("graph.dot", `digraph { a -> b -> c; c -> a; a -> d [label="x"]; }`)
	for _, cmd := range [][]string{{need.Program(t, "javac"), "J.java", "Hello.java"}, {"go", "build", "-o", "gothreads", "main.go"}} {
		c := exec.Command(cmd[0], cmd[1:]...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	return []programCase{
		{name: "zstd -T2", args: []string{"zstd", "-T2", "-f", "-q", "-c", "text"}},
		{name: "xz -T2", args: []string{"xz", "-T2", "-0", "-c", "--block-size=100000", "text"}},
		{name: "sort", args: []string{"sort", "--parallel=4", "-S", "1M", "text"}},
		{name: "rg", args: []string{"rg", "-c", "zz[0-9]", "text", "small"}, loose: true},
		{name: "fd", args: []string{"fdfind", "-e", "go", ".", "/usr/local/go/src/runtime"}, loose: true},
		{name: "guile", args: []string{"guile", "-c", "(display (let loop ((i 0) (s 0)) (if (= i 100000) s (loop (+ i 1) (+ s i)))))"}},
		{name: "dot", args: []string{"dot", "-Tsvg", "graph.dot"}},
		{name: "imagemagick", args: []string{"convert-im6.q16", "-seed", "7", "-size", "120x90", "plasma:fractal", "-blur", "0x2", "-resize", "150%", "jpg:-"}},
		{name: "python3 threads", args: []string{"python3", "-c", pythonThreads}},
		{name: "python3 asyncio", args: []string{"python3", "-c", pythonAsync}},
		{name: "node", args: []string{"node", "-e", nodeScript}},
		{name: "ffmpeg", args: []string{"ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=10", "-t", "2", "-threads", "2", "-c:v", "libx264", "-f", "matroska", "-fflags", "+bitexact", "-flags", "+bitexact", "-"}},
		{name: "java hello", args: []string{"java", "-cp", ".", "Hello"}},
		{name: "java", args: []string{"java", "-cp", ".", "J"}},
		{name: "go", args: []string{filepath.Join(dir, "gothreads")}},
	}
}

// TestThreadPrograms records them whole and verifies every interval.
func TestThreadPrograms(t *testing.T) {
	if !*programs {
		return
	}
	dir := inputs(t)
	for _, c := range threadPrograms(t, dir) {
		t.Run(c.name, func(t *testing.T) { c.check(t, dir) })
	}
}

// TestServers records servers while clients use them, and verifies every interval.
func TestServers(t *testing.T) {
	if !*programs {
		return
	}
	port := freePort(t)
	for _, c := range []struct {
		name      string
		args      []string
		processes int
		use       func(t *testing.T, addr string)
	}{
		{"redis", []string{"redis-server", "--port", port, "--save", "", "--appendonly", "no"}, 1, useRedis("2000")},
		{"memcached", []string{"memcached", "-u", "nobody", "-p", port, "-t", "4"}, 1, useMemcached},
		{"nginx", nginxArgs(t, port), 3, useHTTP("500")},
		{"go http.Server", []string{goServer(t), port}, 1, useHTTP("500")},
		{"python3 http.server", []string{need.Python(t), "-m", "http.server", port, "--bind", "127.0.0.1"}, 1, useHTTP("50")},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run{dir: t.TempDir(), args: append([]string{need.Program(t, c.args[0])}, c.args[1:]...)}
			r.kick = func(pid int) {
				defer func() { _ = syscall.Kill(pid, syscall.SIGTERM) }()
				addr := net.JoinHostPort("127.0.0.1", port)
				if !listening(addr) {
					t.Errorf("nothing listens at %s", addr)
					return
				}
				c.use(t, addr)
			}
			_, res := r.recorded(t)
			if !res.Recorded {
				t.Fatalf("nothing recorded: %s", res.Reason)
			}
			checkProcesses(t, res.Path, c.processes)
			t.Log(verify(t, res.Path))
		})
	}
}

const goServerProgram = `package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s := &http.Server{Addr: "127.0.0.1:" + os.Args[1], Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.URL.Path, strings.Repeat("some text ", 100))
	})}
	go s.ListenAndServe()
	<-ctx.Done()
	fmt.Println(s.Shutdown(context.Background()))
}
`

// goServer returns a web server, which takes its port as argument.
func goServer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, server := filepath.Join(dir, "main.go"), filepath.Join(dir, "server")
	if err := os.WriteFile(source, []byte(goServerProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", server, source)
	build.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return server
}

// freePort returns a TCP port that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// listening waits until somebody listens at addr.
func listening(addr string) bool {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return true
		}
	}
	return false
}

// useRedis has redis-benchmark do n of three kinds of requests each.
func useRedis(n string) func(t *testing.T, addr string) {
	return func(t *testing.T, addr string) {
		out, err := exec.Command(need.Program(t, "redis-benchmark"), "-p", hostPort(addr), "-n", n, "-c", "20", "-t", "set,get,lpush", "-q").CombinedOutput()
		if err != nil {
			t.Errorf("redis-benchmark: %v\n%s", err, out)
		}
	}
}

func useMemcached(t *testing.T, addr string) {
	var conns []net.Conn
	for range 8 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		conns = append(conns, c)
	}
	for i := range 400 {
		c := conns[i%len(conns)]
		const stored = "STORED\r\nVALUE k 0 5\r\nhello\r\nEND\r\n"
		fmt.Fprintf(c, "set k 0 0 5\r\nhello\r\nget k\r\n")
		got := make([]byte, len(stored))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != stored {
			t.Errorf("memcached answers %q, %v", got, err)
			return
		}
	}
}
