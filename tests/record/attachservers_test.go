//go:build linux && amd64

package record

import (
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

var (
	attachAfter = flag.Duration("attach-after", 0, "how long TestAttachServers has clients use a server before it attaches")
	attachFor   = flag.Duration("attach-for", recordsFor, "how long it records then, all of which is kept where this is more than the default")
)

// TestAttachServers attaches to servers while clients use them: no client sees an error, what is
// recorded replays exactly, and the server ends as it does by itself. Those that `just programs`
// installs are attached to there. `just attach-servers` takes longer.
func TestAttachServers(t *testing.T) {
	port := freePort(t)
	for _, c := range []struct {
		name string
		args []string
		use  func(t *testing.T, addr string)
		more bool // `just programs` installs it
	}{
		{"redis", []string{"redis-server", "--port", port, "--save", "", "--appendonly", "no"}, useRedis("2000"), true},
		{"memcached", []string{"memcached", "-u", "nobody", "-p", port, "-t", "4"}, useMemcached, true},
		{"node", []string{"node", "-e", nodeServer, port}, askHTTP(200), true},
		{"java", []string{"java", sourceFile(t, "Server.java", javaServer), port}, askHTTP(100), true},
		{"go http.Server", []string{goServer(t), port}, askHTTP(500), false},
		{"python3 http.server", []string{need.Python(t), "-m", "http.server", port, "--bind", "127.0.0.1"}, askHTTP(20), false},
	} {
		if c.more && !*programs {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			need.Recorder(t)
			addr := net.JoinHostPort("127.0.0.1", port)
			want, _ := served(t, c.args, addr, c.use, func(int) {})
			var paths []string
			got, runs := served(t, c.args, addr, c.use, func(pid int) {
				time.Sleep(*attachAfter)
				o := attachOptions{}
				if *attachFor > recordsFor {
					o.Keep = recorder.KeepAlways
				}
				for range 2 {
					a := attach(t, pid, o)
					time.Sleep(*attachFor)
					a.end()
					paths = append(paths, a.path)
				}
			})
			same(t, got, want)
			t.Logf("clients ran %d times meanwhile", runs)
			for _, path := range paths {
				t.Log(verify(t, path))
			}
		})
	}
}

// nodeServer and javaServer serve HTTP on a port of this machine: node's in one thread beside those of its
// runtime, Java's with four, a just-in-time compiler and a garbage collector each.
const (
	nodeServer = `
let asked = 0
const seen = {}
const server = require('http').createServer((request, response) => {
  asked++
  for (let i = 0; i < 2000; i++) seen['k' + (i + asked) % 500] = i * asked
  response.end('asked ' + asked + ' times, ' + Object.keys(seen).length + ' keys\n')
})
server.listen(+process.argv[1], '127.0.0.1')
process.on('SIGTERM', () => process.exit(0))`

	javaServer = `
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

class Server {
    public static void main(String[] args) throws Exception {
        var asked = new AtomicInteger();
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        server.createContext("/", request -> {
            var text = new StringBuilder("asked " + asked.incrementAndGet() + " times:");
            for (int i = 0; i < 500; i++) text.append(i * asked.get() % 7);
            byte[] answer = text.toString().getBytes();
            request.sendResponseHeaders(200, answer.length);
            request.getResponseBody().write(answer);
            request.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
    }
}`
)

// sourceFile writes a file and returns its path.
func sourceFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// askHTTP has ten clients ask a server n times in all.
func askHTTP(n int) func(t *testing.T, addr string) {
	return func(t *testing.T, addr string) {
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				client := http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 0}, Timeout: time.Minute}
				defer client.CloseIdleConnections()
				for range n / 10 {
					r, err := client.Get("http://" + addr + "/")
					if err != nil {
						t.Errorf("client %d: %v", i, err)
						return
					}
					text, err := io.ReadAll(r.Body)
					_ = r.Body.Close() // everything was read
					if err != nil || r.StatusCode != http.StatusOK || len(text) == 0 {
						t.Errorf("client %d: status %d, %d bytes, %v", i, r.StatusCode, len(text), err)
					}
				}
			})
		}
		wg.Wait()
	}
}

// served runs a server, has clients use it before, while and after f is called with its process,
// and ends it. It returns how it ended, and how often the clients ran meanwhile.
func served(t *testing.T, args []string, addr string, use func(t *testing.T, addr string), f func(pid int)) (o outcome, runs int) {
	t.Helper()
	cmd := exec.Command(need.Program(t, args[0]), args[1:]...)
	cmd.Dir = t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // it has ended
	if !listening(addr) {
		t.Fatalf("nothing listens at %s", addr)
	}
	use(t, addr)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; !stop.Load(); runs++ {
			use(t, addr)
		}
	}()
	f(cmd.Process.Pid)
	stop.Store(true)
	<-done
	use(t, addr)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its status says how
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	o.code = ws.ExitStatus()
	if ws.Signaled() {
		o.sig = int(ws.Signal())
	}
	return o, runs
}
