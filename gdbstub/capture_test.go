package gdbstub

import (
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"vplay/tests/gdb"
	"vplay/tests/need"
)

// tap is a connection that keeps what it reads.
type tap struct {
	net.Conn
	mu  *sync.Mutex
	got *[]byte
}

func (c tap) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.got = append(*c.got, b[:n]...)
	return n, err
}

// tapListener hands out taps.
type tapListener struct {
	net.Listener
	mu  sync.Mutex
	got []byte
}

func (l *tapListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tap{c, &l.mu, &l.got}, nil
}

// TestGDBPackets looks at what gdb sends for a session that goes both ways:
// how many packets a step costs, and that it finds its packets served. With
// -update the session becomes a conversation, which also seeds the fuzzer.
func TestGDBPackets(t *testing.T) {
	need.Program(t, "gdb")
	f := newFake()
	v := New(f, Options{})
	l, err := v.Listen(":0")
	if err != nil {
		t.Fatal(err)
	}
	tl := &tapListener{Listener: l}
	addr := serveOn(t, v, f, tl)
	gdb.Batch(t, "target remote "+addr, "break *0x401024 if $rcx == 2", "reverse-continue", "watch *(int*)0x402000",
		"reverse-continue", "continue", "delete", "catch syscall", "reverse-stepi 3", "stepi 10", "next", "reverse-next", "next", "info proc mappings",
		"find /b 0x401000, 0x40102c, 0xff, 0x04", "set var *(char*)0x402000 = 1", "print $_siginfo.si_signo", "monitor when", "detach")
	waitDetached(t, f, 1)

	tl.mu.Lock()
	stream := tl.got
	tl.mu.Unlock()
	var packets []string
	var fr framer
	if err := fr.push(stream, func(ev event) {
		if ev.kind == evPacket {
			packets = append(packets, string(ev.data))
		}
	}); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, p := range packets {
		name := p[:min(1, len(p))]
		switch {
		case strings.HasPrefix(p, "vCont;s") || p == "bs":
			name = "step"
		case strings.HasPrefix(p, "vCont;r"):
			name = "range"
		case strings.HasPrefix(p, "Z0,401024,1;X"):
			name = "condition"
		}
		count[name]++
	}
	if count["step"] < 13 || count["range"] < 1 || count["condition"] < 1 {
		t.Errorf("packets missing: %v", count)
	}
	if count["g"] > count["step"] {
		t.Errorf("%d g packets for %d steps: the expedited registers do not suffice", count["g"], count["step"])
	}
	if *update {
		var b strings.Builder
		b.WriteString("# What gdb " + gdbVersion(t) + " sends for a session that goes both ways.\n")
		for _, p := range packets {
			b.WriteString("> " + quote(p) + "\n")
		}
		if err := os.WriteFile("testdata/conversation/gdb-session.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d packets: %v", len(packets), count)
}

// gdbVersion returns the number gdb prints.
func gdbVersion(t *testing.T) string {
	out := gdb.Batch(t, "show version")
	line, _, _ := strings.Cut(out, "\n")
	return line[strings.LastIndexByte(line, ' ')+1:]
}
