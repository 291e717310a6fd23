package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestEventText(t *testing.T) {
	tests := []struct {
		event Event
		want  string
	}{
		{
			Event{Kind: EventEnter, TID: 7, RegHash: 0xab, NR: 1, Args: [6]uint64{1, 0x7ff0, 5}},
			`enter tid=7 hash=00000000000000ab nr=1 args=0x1,0x7ff0,0x5,0x0,0x0,0x0`,
		},
		{
			Event{Kind: EventExit, TID: 7, NR: 0, Result: -512, Restart: true, RestartNR: 219, Writes: []MemWrite{{0x1000, []byte("hi\x80\n")}, {Addr: 2}}, Note: `a "file"`},
			`exit tid=7 hash=0000000000000000 nr=0 result=-512 restart restart_nr=219 writes=[0x1000:"hi\x80\n";0x2:""] note="a \"file\""`,
		},
		{
			Event{Kind: EventExit, NR: 9, Maps: []MapOp{
				{Kind: MapOpMap, Start: 0x1000, End: 0x2000, Map: Mapping{Start: 0x1000, End: 0x2000, Prot: 5, Flags: MapShared, Object: 3, Offset: 0x3000, Name: "libc"}},
				{Kind: MapOpUnmap, Start: 0x1000, End: 0x2000},
				{Kind: MapOpProtect, End: 1, Prot: 3},
				{Kind: MapOpMove, New: 5, NewEnd: 6},
				{Kind: MapOpDrop},
			}},
			`exit tid=0 hash=0000000000000000 nr=9 result=0 maps=[map:0x1000-0x2000:r-x:s---:3:0x3000:"libc";unmap:0x1000-0x2000;protect:0x0-0x1:rw-;move:0x0-0x0:0x5-0x6;drop:0x0-0x0]`,
		},
		{
			Event{Kind: EventSignal, Signo: 14, Siginfo: []byte{14, 0}, Regs: &Regs{R: [16]uint64{4: 0x7ffe}, RIP: 0x401000, SS: 0x2b}},
			`signal tid=0 hash=0000000000000000 signo=14 siginfo=0e00 regs={rsp:0x7ffe,rip:0x401000,ss:0x2b}`,
		},
		{Event{Kind: EventInstr, Instr: InstrCPUID, Out: [4]uint64{1, 2, 3, 4}}, `instr tid=0 hash=0000000000000000 instr=cpuid out=0x1,0x2,0x3,0x4`},
		{Event{Kind: EventSignal, Regs: &Regs{}}, `signal tid=0 hash=0000000000000000 signo=0 regs={}`},
	}
	for _, tt := range tests {
		if got := tt.event.Text(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
		if got, err := ParseEvent(tt.want); err != nil || !reflect.DeepEqual(got, tt.event) {
			t.Errorf("parsed %s: %+v, %v", tt.want, got, err)
		}
	}
}

func TestTextRoundTrip(t *testing.T) {
	g := newGen(99)
	for range 2000 {
		for _, e := range g.events(1) {
			got, err := ParseEvent(e.Text())
			if err != nil || !reflect.DeepEqual(got, e) {
				t.Fatalf("%s\nbecame %s, %v", e.Text(), got.Text(), err)
			}
		}
	}
}

func FuzzParseEvent(f *testing.F) {
	g := newGen(5)
	for _, e := range g.events(30) {
		f.Add(e.Text())
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseEvent(s)
		if err != nil {
			return
		}
		if again, err := ParseEvent(e.Text()); err != nil || !reflect.DeepEqual(e, again) {
			t.Errorf("%q became %q, %v", s, e.Text(), err)
		}
	})
}

func TestWriteText(t *testing.T) {
	iv := &Interval{
		ID: 3, PID: 8, Slim: true, Start: []Context{{TID: 8, InCall: true}}, Maps: []Mapping{{Start: 0x1000, End: 0x2000, Prot: 5, Name: "/bin/x"}},
		Events: []Event{
			{Kind: EventEnter, TID: 8, NR: 1},
			{Kind: EventExit, TID: 8, NR: 1, Writes: []MemWrite{{1, make([]byte, 99)}}},
			{Kind: EventGap, NR: 58, Reason: "vfork"},
		},
		End: End{Kind: EndExit, ExitCode: 3},
	}
	call := func(e *Event) string {
		if e.Kind == EventEnter {
			return "write(1)"
		}
		return ""
	}
	var s strings.Builder
	if err := WriteText(&s, iv, TextOptions{Call: call}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"interval 3: pid 8, image 0, 1 threads, 1 maps, 0 pages (slim), 3 events",
		"inside a call", "map 1000-2000 r-x ---- 0 object 0 \"/bin/x\"",
		"     0  enter  tid=8 write(1)\n", `...(99 bytes)]`, `     2  gap tid=0 hash=0000000000000000 nr=58 reason="vfork"`, "ends: exit, code 3",
	} {
		if !strings.Contains(s.String(), want) {
			t.Errorf("%q is not in:\n%s", want, s.String())
		}
	}
}

// pieces is a writer that notes the longest piece that it was given.
type pieces struct {
	all     strings.Builder
	longest int
	left    int // writes until it fails; 0: never
}

// Write implements io.Writer.
func (p *pieces) Write(b []byte) (int, error) {
	if p.longest = max(p.longest, len(b)); p.left == 1 {
		return 0, io.ErrShortWrite
	}
	p.left--
	return p.all.Write(b)
}

// TestWriteLongEvents prints events of megabytes: in pieces, which are the same text, and
// no further than to the writer's error.
func TestWriteLongEvents(t *testing.T) {
	data := bytes.Repeat([]byte("a\u20ac\x80\xf0\x9f\"\n"), 100_000)
	e := Event{Kind: EventExit, TID: 1, XState: data, Writes: []MemWrite{{Addr: 1, Data: data}, {Addr: 2, Data: bytes.Repeat([]byte{0x80}, 200_000)}}}
	for i := range uint64(50_000) {
		e.Maps = append(e.Maps, MapOp{Kind: MapOpUnmap, Start: i * PageSize, End: (i + 1) * PageSize})
		e.Writes = append(e.Writes, MemWrite{Addr: i})
	}
	iv := &Interval{Events: []Event{e}}
	for _, full := range []bool{true, false} {
		o := TextOptions{Full: full}
		var p pieces
		if err := WriteText(&p, iv, o); err != nil || !strings.Contains(p.all.String(), "  "+EventLine(&e, o)+"\n") {
			t.Errorf("full %t: %d bytes, %v", full, p.all.Len(), err)
		}
		if p.longest > 8*spillAt {
			t.Errorf("full %t: a piece of %d bytes", full, p.longest)
		}
	}
	if got, want := e.Text(), strconv.QuoteToASCII(string(data)); !strings.Contains(got, "0x1:"+want+";") {
		t.Error("bytes are not quoted as strconv does")
	}
	p := pieces{left: 2}
	if err := WriteText(&p, iv, TextOptions{Full: true}); !errors.Is(err, io.ErrShortWrite) || p.left != 1 {
		t.Errorf("%v after %d more writes", err, 1-p.left)
	}
}

// TestEventNumbers: numbers of events are as wide as %6d, or wider.
func TestEventNumbers(t *testing.T) {
	for _, n := range []int{0, 9, 10, 99_999, 100_000, 999_999, 1_000_000, 12_345_678} {
		p := &textPrinter{b: []byte("x")}
		if p.eventNumber(n); string(p.b) != fmt.Sprintf("x%6d  ", n) {
			t.Errorf("%d is %q", n, p.b)
		}
	}
}
