package gdbstub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"vplay/dwarf/agentexpr"
	"vplay/replay/debug/api"
)

// promptly is how soon an interrupt must have reached the target, with room for
// a loaded machine; the bound promised is 100 ms.
const promptly = time.Second

func TestAcknowledgements(t *testing.T) {
	c := dial(t, newFake())
	defer c.hangUp()
	expectBytes := func(want string) {
		t.Helper()
		var got []byte
		for range len(want) {
			got = append(got, c.next())
		}
		if string(got) != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	c.raw("$qC#00")
	expectBytes("-")
	c.raw("$qC#b4")
	reply := frame("QC1234")
	expectBytes("+" + reply)
	c.raw("-")
	expectBytes(reply)
	c.raw("--")
	expectBytes(reply + reply)
	c.raw("+")
	c.raw(frame("QStartNoAckMode"))
	expectBytes("+" + frame("OK"))
	c.raw("+")
	c.raw(frame("qC") + frame("vMustReplyEmpty"))
	expectBytes(reply + frame(""))
	c.raw("-") // means nothing any more
	c.raw("$qC#00")
	expectBytes(reply)
}

// TestInterruptIsPrompt covers Ctrl-C and the loss of the connection.
func TestInterruptIsPrompt(t *testing.T) {
	for _, packet := range []string{"vCont;c", "c", "bc", "qRcmd,77616974"} {
		f := newFake()
		f.hang = true
		c := dial(t, f)
		c.raw(frame(packet))
		time.Sleep(5 * time.Millisecond)
		start := time.Now()
		c.raw("\x03")
		c.receive()
		if d := time.Since(start); d > promptly {
			t.Errorf("%s: Ctrl-C took %v", packet, d)
		}
		c.raw(frame(packet))
		time.Sleep(5 * time.Millisecond)
		start = time.Now()
		if err := c.hangUp(); err != nil {
			t.Errorf("%s: %v", packet, err)
		}
		if d := time.Since(start); d > promptly {
			t.Errorf("%s: the end of the connection took %v", packet, d)
		}
		if f.detached.Load() != 1 {
			t.Errorf("%s: let go %d times", packet, f.detached.Load())
		}
	}
}

func TestPacketsWhileRunning(t *testing.T) {
	f := newFake()
	f.hang = true
	c := dial(t, f)
	c.raw(frame("vCont;c") + frame("qC") + frame("p10") + "\x03")
	for _, want := range []string{"T02", "QC1234", "1010400000000000"} {
		if got := c.receive(); !strings.HasPrefix(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	c.raw(frame("vCont;c"))
	_ = c.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	for range 2 * maxPending { // no client does that: it is shown the door
		if _, err := io.WriteString(c.conn, frame("qC")); err != nil {
			break
		}
	}
	if err := c.hangUp(); err != nil && !errors.Is(err, ErrPacketTooLong) {
		t.Error(err)
	}
}

func TestServerSendsAwayWhatIsNoDebugger(t *testing.T) {
	for _, in := range []string{"POST / HTTP/1.1\r\n\r\n$qC#b4", "\x16\x03\x01\x00", "\n", "GET /"} {
		c := dial(t, newFake())
		c.raw(in[:1])
		if err := <-c.err; !errors.Is(err, ErrNotRSP) {
			t.Errorf("%q: %v", in, err)
		}
		for b := range c.in {
			t.Errorf("%q was answered: %q", in, b)
		}
	}
	c := dial(t, newFake())
	go io.WriteString(c.conn, "$"+strings.Repeat("a", MaxPacket+100)) //nolint:errcheck // the server hangs up in between
	if err := <-c.err; !errors.Is(err, ErrPacketTooLong) {
		t.Error(err)
	}
}

// connect dials a served address.
func connect(t *testing.T, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, conn: conn, in: make(chan byte, 1<<20)}
	go func() {
		defer close(c.in)
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			for _, b := range buf[:n] {
				c.in <- b
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

func TestSecondClientIsToldAndLetGo(t *testing.T) {
	f := newFake()
	addr := serveFake(t, f, Options{})
	first := connect(t, addr)
	first.want("qC", "QC1234")
	second := connect(t, addr)
	second.want("qSupported", "E.another debugger is connected to this recording")
	for range second.in { // closed
	}
	first.want("qC", "QC1234")
	_ = first.conn.Close()
	third := connect(t, addr) // at once, before the end of the first is seen
	third.want("qC", "QC1234")
	_ = third.conn.Close()
	waitDetached(t, f, 2)
}

func TestOnce(t *testing.T) {
	f := newFake()
	v := New(f, Options{Once: true})
	l, err := v.Listen(":0")
	if err != nil {
		t.Fatal(err)
	}
	if host, _, _ := net.SplitHostPort(l.Addr().String()); host != "127.0.0.1" {
		t.Errorf("listens on %s", host)
	}
	done := make(chan error, 1)
	go func() { done <- v.ServeListener(t.Context(), l) }()
	probe := connect(t, l.Addr().String()) // a port scan is no session
	_ = probe.conn.Close()
	c := connect(t, l.Addr().String())
	c.want("qC", "QC1234")
	c.want("D", "OK")
	_ = c.conn.Close()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the server goes on")
	}
}

func TestMonitorExit(t *testing.T) {
	f := newFake()
	v := New(f, Options{})
	l, err := v.Listen(":0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- v.ServeListener(t.Context(), l) }()
	c := connect(t, l.Addr().String())
	c.want("qRcmd,65786974", "OK")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if f.detached.Load() != 1 {
		t.Error("the target was not let go")
	}
	_ = c.conn.Close()
	d := dial(t, f)
	d.want("qRcmd,65786974", "OK")
	if err := d.hangUp(); !errors.Is(err, api.ErrExit) {
		t.Error(err)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	f := newFake()
	f.hang = true
	a, b := net.Pipe()
	defer a.Close()
	ctx, cancel := context.WithCancel(t.Context())
	v := New(f, Options{})
	done := make(chan error, 1)
	go func() { done <- v.Serve(ctx, b) }()
	go io.Copy(io.Discard, a) // ends with the pipe
	if _, err := io.WriteString(a, frame("c")); err != nil {
		t.Fatal(err)
	}
	for f.inCall.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	x, y := net.Pipe()
	defer x.Close()
	if err := v.Serve(ctx, y); !errors.Is(err, ErrBusy) {
		t.Errorf("second Serve: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if f.detached.Load() != 1 {
		t.Error("the target was not let go")
	}
}

func TestListen(t *testing.T) {
	v := New(newFake(), Options{})
	for _, addr := range []string{"0.0.0.0:0", "192.0.2.1:1", "example.org:1", "[::]:0", "1234", "", "127.0.0.1"} {
		if l, err := v.Listen(addr); err == nil {
			l.Close()
			t.Errorf("%q was taken", addr)
		}
	}
	l, err := New(newFake(), Options{AllowRemote: true}).Listen("0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()

	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Listen("unix:" + path); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file was replaced: %v", err)
	}
	_ = os.Remove(path)
	l, err = v.Listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	// A server that was killed leaves its socket; the next one takes its place.
	_ = l.(unixListener).UnixListener.Close()
	l, err = v.Listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestNothingLeaks(t *testing.T) {
	f := newFake()
	addr := serveFake(t, f, Options{})
	before := runtime.NumGoroutine()
	for i := range 200 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		switch i % 4 {
		case 0:
			fmt.Fprint(conn, frame("vFile:open:2f7265706c61792f70726f67,0,0")+frame("Z0,401024,1"))
		case 1:
			fmt.Fprint(conn, "$unfinished")
		case 2:
			fmt.Fprint(conn, "POST / HTTP/1.1\r\n\r\n")
		}
		_ = conn.Close()
	}
	end := time.Now().Add(10 * time.Second)
	for !isServed(t, addr) || runtime.NumGoroutine() > before { // some were not accepted yet
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// isServed reports whether a new client gets an answer.
func isServed(t *testing.T, addr string) bool {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprint(conn, frame("qC"))
	b := make([]byte, len("+$QC1234"))
	_, err = io.ReadFull(conn, b)
	return err == nil && string(b) == "+$QC1234"
}

func TestLimits(t *testing.T) {
	f := newFake()
	for i := range uint64(MaxPacket) { // bytes that must be escaped
		f.mem[0x1000000+i] = '#'
	}
	for i := range 20000 {
		f.threads = append(f.threads, api.Thread{PID: fakePID, TID: 0x10000000 + i})
	}
	c := dial(t, f)
	defer c.hangUp()
	c.want("QStartNoAckMode", "OK")
	if got := c.ask("m1000000,ffffffff"); got != strings.Repeat("23", MaxPacket/2) {
		t.Errorf("m: %d bytes", len(got))
	}
	if got := c.ask("x1000000,ffffffff"); len(got) != 1+(MaxPacket-1)/2 {
		t.Errorf("x: %d bytes", len(got))
	}
	ids := 0
	for reply := c.ask("qfThreadInfo"); reply != "l"; reply = c.ask("qsThreadInfo") {
		if len(reply) > MaxPacket {
			t.Fatalf("%d bytes of threads", len(reply))
		}
		ids += strings.Count(reply, ",") + 1
	}
	if ids != 20001 {
		t.Errorf("%d threads", ids)
	}
	for i := range api.MaxBreakpoints {
		c.want(fmt.Sprintf("Z0,%x,1", i), "OK")
	}
	c.want("Z0,99999,1", "E01")
	c.want("Z0,0,1", "OK") // there already
	c.want("z0,0,1", "OK")
	c.want("Z0,99999,1", "OK")
	for i := range maxFiles {
		c.want("vFile:open:2f7265706c61792f70726f67,0,0", fmt.Sprintf("F%x", i+3))
	}
	c.want("vFile:open:2f7265706c61792f70726f67,0,0", "F-1,18")
	c.want("vFile:close:5", "F0")
	c.want("vFile:open:2f7265706c61792f70726f67,0,0", "F5")
	if got := c.ask("qSearch:memory:0;ffffffffffffffff;a"); !strings.HasPrefix(got, "searched up to 0x0 only: ") {
		t.Errorf("search: %q", got)
	}
	c.want("qRcmd,"+strings.Repeat("41", maxMonitorLine+1), "E01")
	c.want("QPassSignals:"+strings.Repeat("1;", maxListed+1), "E01")
}

func TestSearchAcrossChunks(t *testing.T) {
	f := newFake()
	for i := range uint64(2 * memChunk) {
		f.mem[0x1000000+i] = 0
	}
	copyTo := func(addr uint64, s string) {
		f.put(addr, []byte(s))
	}
	copyTo(0x1000000+memChunk-3, "needle")
	c := dial(t, f)
	defer c.hangUp()
	c.want("qSearch:memory:1000000;20000;needle", "1,100fffd")
	c.want("qSearch:memory:1000000;10002;needle", "0")
	c.want("qSearch:memory:100fffe;1000;needle", "0")
	c.want("qSearch:memory:1000000;20000;"+strings.Repeat("\x00", memChunk+1), "0")
	c.want("qSearch:memory:1000000;4;toolongforit", "0")
}

func TestStopReplies(t *testing.T) {
	f := newFake()
	s := newSession(f)
	s.multiprocess, s.swbreak, s.hwbreak = true, true, true
	tail := "thread:p1234.1234;core:0;"
	for _, c := range []struct {
		stop api.Stop
		head string
		tail string
	}{
		{api.Stop{Kind: api.StopSignal, Signo: 7}, "T0a", tail},
		{api.Stop{Kind: api.StopSignal, Signo: 10, TID: fakePID}, "T1e", tail},
		{api.Stop{Kind: api.StopStep}, "T05", tail},
		{api.Stop{Kind: api.StopBreakpoint}, "T05", tail + "swbreak:;"},
		{api.Stop{Kind: api.StopHWBreakpoint}, "T05", tail + "hwbreak:;"},
		{api.Stop{Kind: api.StopWatchWrite, Addr: 0xabc}, "T05", tail + "watch:abc;"},
		{api.Stop{Kind: api.StopWatchRead, Addr: 0xabc}, "T05", tail + "rwatch:abc;"},
		{api.Stop{Kind: api.StopWatchAccess, Addr: 0xabc}, "T05", tail + "awatch:abc;"},
		{api.Stop{Kind: api.StopReplayBegin}, "T05", tail + "replaylog:begin;"},
		{api.Stop{Kind: api.StopReplayEnd}, "T05", tail + "replaylog:end;"},
		{api.Stop{Kind: api.StopSyscallEntry, Syscall: 231}, "T05", tail + "syscall_entry:e7;"},
		{api.Stop{Kind: api.StopSyscallReturn, Syscall: 1}, "T05", tail + "syscall_return:1;"},
		{api.Stop{Kind: api.StopInterrupted}, "T02", tail},
		{api.Stop{Kind: api.StopExec, Program: "/a"}, "T05", tail + "exec:2f61;"},
		{api.Stop{Kind: api.StopExited, Code: 3}, "W03;process:1234", ""},
		{api.Stop{Kind: api.StopExited, Code: 256 + 17}, "W11;process:1234", ""},
		{api.Stop{Kind: api.StopKilled, Signo: 7}, "X0a;process:1234", ""},
	} {
		got := string(s.stopReply(c.stop).data)
		if !strings.HasPrefix(got, c.head) || !strings.HasSuffix(got, c.tail) {
			t.Errorf("%+v: %s", c.stop, got)
		}
		if p := string(s.plainStop(c.stop).data); !strings.HasPrefix(p, "T") || !strings.HasSuffix(p, tail) {
			t.Errorf("plain %+v: %s", c.stop, p)
		}
	}
}

func TestDescription(t *testing.T) {
	all := describe(^api.Features(0))
	size, last := 0, -1
	for _, r := range all.regs {
		if r.num != last+1 {
			t.Errorf("%s is %d after %d", r.name, r.num, last)
		}
		last = r.num
		size += r.size
	}
	// gdbserver's g packet without AVX-512 has 816 bytes, which adds 16 times 32 bytes, 8 mask
	// registers, and 32 upper halves of 32 bytes.
	if size != 816+16*32+8*8+32*32 || last != 147 {
		t.Errorf("%d bytes, last register %d", size, last)
	}
	names := map[string]int{"rax": 0, "rbx": 1, "rsi": 4, "rsp": 7, "rip": 16, "eflags": 17, "st0": 24, "fctrl": 32, "xmm0": 40, "mxcsr": 56, "orig_rax": 57, "fs_base": 58, "gs_base": 59, "ymm0h": 60, "ymm15h": 75, "xmm16": 76, "ymm31h": 107, "k0": 108, "k7": 115, "zmm0h": 116, "zmm31h": 147}
	for name, num := range names {
		if r := all.byNum[num]; r == nil || r.name != name {
			t.Errorf("register %d is not %s", num, name)
		}
	}
	for i, want := range agentexpr.GPR {
		if got := all.byNum[i].index; got != int(want) {
			t.Errorf("register %d is GPR %d, for agent expressions %d", i, got, want)
		}
	}
	if all.byNum[agentexpr.RIP].name != "rip" {
		t.Error("rip")
	}
	small := describe(0)
	if bytes.Contains(small.xml, []byte("avx")) || !bytes.Contains(small.xml, []byte("i386.sse")) || small.byNum[58] != nil {
		t.Error("description without features")
	}
}

func TestMissingRegisters(t *testing.T) {
	f := newFake()
	f.regs[f.pos].Missing = api.FeatureAVX | api.FeatureX87
	c := dial(t, f)
	defer c.hangUp()
	c.want("p3c", strings.Repeat("x", 32))
	c.want("p18", strings.Repeat("x", 20))
	c.want("p20", strings.Repeat("x", 8))
	c.want("p28", strings.Repeat("0", 32))
	if v, ok := registerValue(&f.regs[f.pos], 60); ok {
		t.Errorf("ymm0h is %x", v)
	}
	if v, ok := registerValue(&f.regs[f.pos], 16); !ok || v != fakeCrash {
		t.Errorf("rip is %x", v)
	}
	if _, ok := registerValue(&f.regs[f.pos], 1000); ok {
		t.Error("register 1000")
	}
}

func TestResumeRequests(t *testing.T) {
	f := newFake()
	c := dial(t, f)
	defer c.hangUp()
	c.want("QPassSignals:a;1e;1e;8f", "OK")
	c.want("QCatchSyscalls:1;e7;1", "OK")
	c.ask("vCont;C0a:1234")
	c.want("Hc1234", "OK")
	c.ask("bs")
	c.want("QCatchSyscalls:1", "OK")
	c.ask("bc")
	c.ask("vCont;c:-1;s:1234")
	c.ask("vCont;r10,20:1234;c")
	want := []string{
		"{0 0 0 0 4660 true 7 true [7 10] false [1 231] false}",
		"{1 1 0 0 4660 true 0 true [7 10] false [1 231] false}",
		"{1 0 0 0 4660 true 0 true [7 10] true [] false}",
		"{0 1 0 0 4660 false 0 true [7 10] true [] false}",
		"{0 2 16 32 4660 false 0 true [7 10] true [] false}",
	}
	for i, w := range want {
		if got := fmt.Sprint(f.resumes[i]); got != w {
			t.Errorf("%d: %s, want %s", i, got, w)
		}
	}
}

// TestSelectedThread steps back the thread that gdb's user has selected, which bs does not
// name: it is the last one that T was about, if that was not a walk through a list.
func TestSelectedThread(t *testing.T) {
	f := newFake()
	f.threads = append(f.threads, api.Thread{PID: fakePID, TID: 0x20}, api.Thread{PID: fakePID, TID: 0x30})
	c := dial(t, f)
	defer c.hangUp()
	for i, p := range []struct {
		packets []string
		want    int
	}{
		{nil, fakePID},
		{[]string{"Hg20"}, fakePID}, // info threads reads registers
		{[]string{"T20"}, 0x20},
		{[]string{"T20", "T30", "g"}, 0x30},
		{[]string{"T20", "qXfer:threads:read::0,1000", "T1234", "Hg1234", "T20", "Hg20", "T30", "Hg30"}, 0x20},
		{[]string{"qfThreadInfo", "qsThreadInfo", "T30", "T20", "T1234"}, fakePID},
		{[]string{"qXfer:threads:read::0,1000", "T30", "T20", "T1234", "T30"}, 0x30},
		{[]string{"qXfer:threads:read::0,1000", "g", "T20"}, 0x20},
		{[]string{"qXfer:threads:read::0,1000", "T20"}, 0x20}, // info threads, with all registers read before
		{[]string{"qXfer:threads:read::0,1000", "T20", "T30"}, 0x30},
		{[]string{"T77"}, fakePID},
	} {
		for _, packet := range p.packets {
			c.ask(packet)
		}
		c.ask("bs")
		if got := f.resumes[i].TID; got != p.want {
			t.Errorf("%v: the step is of thread %#x, want %#x", p.packets, got, p.want)
		}
	}
}

func TestSilentClientIsLetGo(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	c := newConn(b, 20*time.Millisecond)
	defer c.close()
	if ev := <-c.events; ev.kind != evClosed || !errors.Is(ev.err, os.ErrDeadlineExceeded) {
		t.Errorf("%+v", ev)
	}
	a, b = net.Pipe()
	defer a.Close()
	c = newConn(b, 100*time.Millisecond)
	defer c.close()
	go io.Copy(io.Discard, a) // ends with the pipe
	if _, err := io.WriteString(a, frame("?")); err != nil {
		t.Fatal(err)
	}
	if ev := <-c.events; ev.kind != evPacket {
		t.Fatalf("%+v", ev)
	}
	select { // one packet, and there is time for ever
	case ev := <-c.events:
		t.Errorf("%+v", ev)
	case <-time.After(300 * time.Millisecond):
	}
}

func TestPacketLog(t *testing.T) {
	var out bytes.Buffer
	v := New(newFake(), Options{Log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	in := frame("qC") + frame("X401000,2:\x00\n")
	if err := v.Serve(t.Context(), &tape{strings.NewReader(in), 100}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"component=gdbstub in=qC out=QC1234", `X401000,2:\x00\n`, "E.replay is read-only"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in\n%s", want, out.String())
		}
	}
}
