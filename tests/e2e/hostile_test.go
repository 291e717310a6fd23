package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"vplay/checkpoint/abi"
	realgdb "vplay/tests/gdb"
	"vplay/tests/need"
)

var connects = flag.Int("connects", 600, "connects and disconnects of TestConnects")

// TestKilledDebuggers kills gdb in the middle of what takes long: the server goes
// on serving, at once.
func TestKilledDebuggers(t *testing.T) {
	t.Parallel()
	g := compile(t, "early", "-O0")
	addr := serve(t, g.record(t, "--slim-time", "0"), "--symbols", g.dir+"/symbols")
	for _, command := range []string{
		"-exec-continue --reverse",
		`-interpreter-exec console "vplay first-exec *1"`,
		`-interpreter-exec console "monitor first-exec 1"`,
		`-interpreter-exec console "vplay seek 50%"`,
		`-interpreter-exec console "find /b $rsp, +100000000000, 0x12"`,
		"-stack-list-frames",
	} {
		m := realgdb.StartMI(t)
		m.Say("-gdb-set mi-async on", `\^done`)
		m.Say("-target-select remote "+addr, `\^connected`)
		m.Say(fmt.Sprintf("-interpreter-exec console %q", loadCommands), `\^done`)
		m.Say(`-break-insert -c "i == -1" beat`, `\^done`)
		m.Send(command)
		time.Sleep(200 * time.Millisecond)
		m.Kill()
		start := time.Now()
		expect(t, gdb(t, addr, "monitor when", "x/i $pc", "p 40 + 2"), `^\d+:\d+\.\d+`, `=> 0x`, `= 42`)
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("after %s the next debugger took %v", command, d)
		}
	}
}

// TestSecondDebugger is told that there is another, and the first one stays.
func TestSecondDebugger(t *testing.T) {
	t.Parallel()
	_, addr := tour(t)
	m := realgdb.StartMI(t)
	m.Say("-target-select remote "+addr, `\^connected`)
	expect(t, gdb(t, addr, "p 40 + 2"), `another debugger is connected to this recording`, `= 42`)
	m.Say("-data-evaluate-expression total", `value="10285"`)
	m.Say("-exec-continue --reverse", `signal-name="SIGUSR1"`)
}

// TestBrowser posts to the server what would be a debugger's packets: nothing comes
// back, and nothing happened.
func TestBrowser(t *testing.T) {
	t.Parallel()
	_, addr := tour(t)
	before := gdb(t, addr, "monitor when")
	client := &http.Client{Timeout: 5 * time.Second}
	for _, body := range []string{"$qRcmd,65786974#6b", "+$qSupported#37+$bc#c5", "\x03$k#6b"} {
		if r, err := client.Post("http://"+addr+"/", "text/plain", strings.NewReader(body)); err == nil {
			b, _ := io.ReadAll(r.Body)
			r.Body.Close()
			t.Errorf("the server answered a browser: %s %q", r.Status, b)
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if b, _ := io.ReadAll(c); len(b) > 0 {
			t.Errorf("the server answered %q", b)
		}
		c.Close()
	}
	line := func(s string) string { return realgdb.Line(s, `^\d+:\d+\.\d+$`) }
	if after := gdb(t, addr, "monitor when"); line(after) == "" || line(after) != line(before) {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestConnects connects and goes away, politely and not: the server keeps neither
// descriptors nor goroutines, which show as memory and threads.
func TestConnects(t *testing.T) {
	t.Parallel()
	need.LinuxAMD64(t)
	g := compile(t, "divide", "-O0")
	addr, pid := serveProcess(t, g.record(t), "--symbols", g.dir+"/symbols")
	descriptors := func() int {
		all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	resident := func() (kB int) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		return int(abi.ProcStatus(b).Number("VmRSS"))
	}
	said := []string{
		"", "+", "$", "$qSupported", "POST /", "$qSupported:multiprocess+#c6", "+$QStartNoAckMode#b0+$vFile:setfs:0#bf$g#67$?#3f", "+$Z0,401000,1#94$bc#c5\x03", "+$qRcmd,262066697273742d657865632031#00",
		"+$qXfer:features:read:target.xml:0,1000#0c$D#44",
	}
	round := func(n int) {
		for i := range n {
			c, err := net.DialTimeout("tcp", addr, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(c, said[i%len(said)]) // a reset is the server's right
			if i%3 == 0 {
				_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
				_, _ = c.Read(make([]byte, 100))
			}
			if tcp := c.(*net.TCPConn); i%2 == 0 {
				_ = tcp.SetLinger(0)
			}
			c.Close()
		}
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) { // all of them are gone
			c, err := net.DialTimeout("tcp", addr, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			_, _ = io.WriteString(c, "+$qC#b4")
			b := make([]byte, 16)
			n, _ := io.ReadAtLeast(c, b, 4)
			c.Close()
			if bytes.Contains(b[:n], []byte("$QC")) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the server does not serve any more: %q", b[:n])
			}
		}
	}
	round(100)
	fds, kB := descriptors(), resident()
	round(*connects)
	time.Sleep(100 * time.Millisecond)
	t.Logf("%d connects: descriptors %d and %d, resident %d kB and %d kB", *connects, fds, descriptors(), kB, resident())
	if n := descriptors(); n > fds+3 {
		t.Errorf("%d descriptors, %d before", n, fds)
	}
	if n := resident(); n > kB+64<<10 {
		t.Errorf("%d kB resident, %d before", n, kB)
	}
	expect(t, gdb(t, addr, "p 40 + 2", "x/i $pc"), `= 42`, `=> 0x`)
}

// TestListenPaths serves on a path, as people write it, for its owner alone.
func TestListenPaths(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return
	}
	g := compile(t, "divide", "-O0")
	rec := g.record(t)
	path := filepath.Join(g.dir, "socket")
	addr := serve(t, rec, "--listen", path)
	if fi, err := os.Stat(path); addr != path || err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("served on %s: %v", addr, err)
	}
	expect(t, gdb(t, path, "p 40 + 2", "x/i $pc"), `= 42`, `=> 0x`)
}
