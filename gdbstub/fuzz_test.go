package gdbstub

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vplay/replay/debug/api"
)

// nowhere is a connection to nobody.
type nowhere struct{ io.Writer }

func (nowhere) Read([]byte) (int, error) { return 0, io.EOF }
func (nowhere) Close() error             { return nil }

// newSession makes a session whose packets are fed by handle.
func newSession(f api.Target) *session {
	v := New(f, Options{Log: slog.New(slog.DiscardHandler)})
	s := &session{
		srv: v, target: f, ctx: context.Background(), inferiors: map[int]*inferior{}, taken: map[int]bool{}, live: true, attached: true,
		conn: &conn{rwc: nowhere{io.Discard}, events: make(chan event), done: make(chan struct{})},
	}
	s.start()
	return s
}

// FuzzSession feeds packets, one per line, to one session. Whatever they are:
// no panic, replies within the limit, each within a second, and the session
// still works.
func FuzzSession(f *testing.F) {
	paths, _ := filepath.Glob("testdata/conversation/*.txt")
	for _, path := range paths {
		var b strings.Builder
		for _, line := range readConversation(f, path) {
			if kind, rest, _ := strings.Cut(line, " "); kind == ">" || kind == ">>" {
				p := unquote(f, rest)
				b.WriteString(p + "\n")
				f.Add(p)
			}
		}
		f.Add(b.String())
	}
	for b := range letters {
		f.Add(string(b) + "0")
	}
	for n := range names {
		f.Add(n + ":1,2;3")
	}
	f.Add(rcmd("& when") + "\n" + rcmd("&") + "\n" + rcmd("& print") + "\n" + rcmd("& wait") + "\ng\n" + rcmd("&"))
	f.Add("qXfer:siginfo:read::0,80\nX7ffeff38,1:\xcc\nP7=c0fdfe7f00000000\nM7ffefdc0,8:38fffe7f00000000\n" +
		"P10=2010400000000000\nZ0,7ffeff38,1\nvCont;c\nz0,7ffeff38,1\nqXfer:siginfo:write::0:\x00\nP7=c0fffe7f00000000\nP10=1010400000000000\nbs")
	f.Add("qRRCmd:when:-1\nqRRCmd:checkpoint:-1:61\nvRun;;6331\nbc\nqXfer:siginfo:read::0,80\nP7=c0fdfe7f00000000\nvCont;s\nqXfer:siginfo:write::0:\nqRRCmd:delete checkpoint:-1:31")
	f.Add("QSaveRegisterState\nP0=01\nP0=0100000000000000\nvCont;s\nQRestoreRegisterState:1\n_M10,rw\n_m500000")
	f.Add("qSupported:multiprocess+\n!\nvAttach;1234\nvAttach;2345\nHgp2345.2346\nZ0,401024,1\nP0=01\nvCont;s:p1234.1235;c\nTp2345.2346\nHc0\nbs\n" +
		"vFile:setfs:2345\nqXfer:exec-file:read:2345:0,100\nqXfer:threads:read::0,1000\nD;2345\nHgp2345.0\nbc\nvKill;1234")
	f.Fuzz(func(t *testing.T, data string) {
		if strings.Count(data, "\n") > 200 {
			return
		}
		for _, opt := range []Options{{}, {RR: true}} {
			fake := newFake()
			fuzzSession(t, data, opt, fake, fake)
			fake = newFake()
			fuzzSession(t, data, opt, &fakeDiverter{fakeTarget: fake}, fake)
			family := newFamily()
			fuzzSession(t, data, opt, family, family.of(fakePID))
		}
	})
}

// fuzzSession feeds packets to a session on target, which plays fake.
func fuzzSession(t *testing.T, data string, opt Options, target api.Target, fake *fakeTarget) {
	s := newSession(target)
	s.srv.opt.RR = opt.RR
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	s.ctx = ctx // ends "monitor wait"
	for p := range strings.SplitSeq(data, "\n") {
		start := time.Now()
		r := s.handle(p)
		if d := time.Since(start); d > time.Second {
			t.Fatalf("%q took %v", p, d)
		}
		if len(appendEscaped(nil, r.data)) > MaxPacket {
			t.Fatalf("%q: reply of %d bytes", p, len(r.data))
		}
		if s.panics > 0 {
			t.Fatalf("%q panicked", p)
		}
		if len(s.breaks) > api.MaxBreakpoints || len(s.files.open) > maxFiles || len(s.doc.data) > 1<<20 {
			t.Fatalf("%q: %d breakpoints, %d files, a document of %d bytes", p, len(s.breaks), len(s.files.open), len(s.doc.data))
		}
	}
	s.handle("vAttach;1234")
	s.handle("Hgp1234.0")
	s.handle("R00")
	if r := s.handle("p10"); string(r.data) != "0010400000000000" {
		t.Fatalf("the session is broken: rip %q", r.data)
	}
	s.end()
	if len(fake.breaks) != 0 || len(s.files.open) != 0 || fake.overlap.Load() {
		t.Fatal("something is left")
	}
}

// tape is a connection that plays bytes in pieces and then ends.
type tape struct {
	r     *strings.Reader
	piece int
}

func (c *tape) Read(b []byte) (int, error) {
	return c.r.Read(b[:min(len(b), c.piece)])
}
func (c *tape) Write(b []byte) (int, error) { return len(b), nil }
func (c *tape) Close() error                { return nil }

// FuzzServe plays arbitrary bytes to a whole server: it comes to an end and
// lets go of the target once.
func FuzzServe(f *testing.F) {
	paths, _ := filepath.Glob("testdata/conversation/*.txt")
	for _, path := range paths {
		var b strings.Builder
		for _, line := range readConversation(f, path) {
			switch kind, rest, _ := strings.Cut(line, " "); kind {
			case ">", ">>":
				b.WriteString("+" + frame(unquote(f, rest)))
			case "^":
				b.WriteString("\x03")
			}
		}
		f.Add(b.String(), uint8(7))
	}
	f.Add("POST / HTTP/1.1\r\n\r\n$g#67", uint8(0))
	f.Fuzz(func(t *testing.T, data string, piece uint8) {
		fake := newFake()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = New(fake, Options{}).Serve(t.Context(), &tape{strings.NewReader(data), int(piece) + 1}) // any end will do
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("Serve does not end")
		}
		if n := fake.detached.Load(); n < 1 || len(fake.breaks) != 0 || fake.overlap.Load() {
			t.Fatalf("let go %d times, breakpoints %v", n, fake.breaks)
		}
	})
}

// FuzzVFile sends file operations, one per line, and checks them against the
// fake's files: descriptors are few, contents right, and nothing is written.
func FuzzVFile(f *testing.F) {
	path := hexText(fakeExec)
	for _, s := range []string{
		"open:" + path + ",0,0\npread:3,40,0\nfstat:3\n" + strings.Repeat("close:3\n", 2) + "pread:3,1,0",
		"setfs:0\nstat:" + path + "\nlstat:" + path + "\nsize:" + path + "\nexists:" + path + "\nreadlink:" + hexText("/proc/4660/exe"),
		"open:" + path + ",1,0\nopen:" + path + ",0,1ff\nopen:,0,0\nopen:2e2e2f,0,0\npwrite:3,0,x\nunlink:" + path,
		"open:" + hexText("/proc/4660/maps") + ",0,0\npread:3,ffffffffffffffff,0\npread:3,20000,7fffffffffffffff\npread:3,1,3fffffffffffffff",
		strings.Repeat("open:"+path+",0,0\n", 70) + "close:10\nopen:" + path + ",0,0",
	} {
		f.Add(s)
	}
	want := fakeELF()
	f.Fuzz(func(t *testing.T, data string) {
		if strings.Count(data, "\n") > 300 {
			return
		}
		fake := newFake()
		s := newSession(fake)
		open := map[int]bool{} // descriptors of the program's file
		for op := range strings.SplitSeq(data, "\n") {
			start := time.Now()
			r := string(s.handle("vFile:" + op).data)
			if d := time.Since(start); d > time.Second || s.panics > 0 || len(s.files.open) > maxFiles {
				t.Fatalf("%q: %v, %d panics, %d files open", op, d, s.panics, len(s.files.open))
			}
			if len(appendEscaped(nil, []byte(r))) > MaxPacket {
				t.Fatalf("%q: reply of %d bytes", op, len(r))
			}
			name, rest, _ := strings.Cut(op, ":")
			args := strings.Split(rest, ",")
			fd, isNumber := parseHexInt(strings.TrimPrefix(r, "F"))
			switch at, _ := parseHexInt(args[0]); {
			case name == "open" && isNumber:
				open[fd] = strings.EqualFold(args[0], path)
			case name == "close" && r == "F0":
				if _, ok := open[at]; !ok {
					t.Fatalf("%q closed a file that is not open", op)
				}
				delete(open, at)
			case name == "pread" && open[at] && !strings.HasPrefix(r, "F-1"):
				size, content, _ := strings.Cut(strings.TrimPrefix(r, "F"), ";")
				n, _ := parseHexInt(size)
				off, _ := parseHex(args[2])
				if off = min(off, uint64(len(want))); n != len(content) || !strings.HasPrefix(string(want[off:]), content) {
					t.Fatalf("%q: %d bytes that are not the file's", op, n)
				}
			case (name == "pwrite" || name == "unlink") && r != "F-1,1e":
				t.Fatalf("%q: %q", op, r)
			}
		}
		s.end()
		if len(s.files.open) != 0 || fake.overlap.Load() {
			t.Fatal("something is left")
		}
	})
}
