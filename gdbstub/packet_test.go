package gdbstub

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// trail writes events as text.
func trail(f *framer, chunks ...string) (string, error) {
	var b strings.Builder
	for _, c := range chunks {
		err := f.push([]byte(c), func(ev event) {
			switch ev.kind {
			case evPacket:
				fmt.Fprintf(&b, "<%s>", ev.data)
			case evBad:
				b.WriteString("!")
			case evAck:
				b.WriteString("+")
			case evNack:
				b.WriteString("-")
			case evInterrupt:
				b.WriteString("^")
			case evClosed:
				b.WriteString("closed")
			}
		})
		if err != nil {
			return b.String(), err
		}
	}
	return b.String(), nil
}

func TestFramer(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		err            error
	}{
		{"packet", "$g#67", "<g>", nil},
		{"empty packet", "$#00", "<>", nil},
		{"acks and interrupt", "+-\x03$g#67+", "+-^<g>+", nil},
		{"upper-case sum", "$m0,4#" + "FD", "<m0,4>", nil},
		{"bad sum", "$g#68", "!", nil},
		{"sum that is no hex", "$g#zz", "!", nil},
		{"escape", "$X0,1:}\x03#9f", "<X0,1:#>", nil},
		{"escape cut off", "$}#7d", "!", nil},
		{"interrupt byte in a payload", "$\x03#03", "<\x03>", nil},
		{"new packet in a broken one", "$gg$g#67", "<g>", nil},
		{"stray bytes later", "$g#67xyz$g#67", "<g><g>", nil},
		{"http", "POST / HTTP/1.1\r\n\r\n$g#67", "", ErrNotRSP},
		{"tls", "\x16\x03\x01", "", ErrNotRSP},
		{"stray byte first", "+x$g#67", "+", ErrNotRSP},
		{"stray byte after a bad packet", "$g#00x", "!", ErrNotRSP},
		{"too long", "$" + strings.Repeat("a", MaxPacket+1), "", ErrPacketTooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := trail(&framer{}, c.in)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, c.want, c.err)
			}
			if len(c.in) > 100 {
				return
			}
			got, err = trail(&framer{}, strings.Split(c.in, "")...) // byte by byte
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("in pieces: got %q, %v", got, err)
			}
		})
	}
	if got, _ := trail(&framer{anySum: true}, "$g#00"); got != "<g>" {
		t.Errorf("without acknowledgements: %q", got)
	}
}

func TestPacketRoundTrip(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	wire := appendPacket(nil, all)
	if got := bytes.Count(wire, []byte("#")); got != 1 {
		t.Errorf("%d # on the wire", got)
	}
	got, err := trail(&framer{}, string(wire))
	if err != nil || got != "<"+string(all)+">" {
		t.Errorf("%q %v", got, err)
	}
}

func TestFitEscaped(t *testing.T) {
	for _, c := range []struct {
		data       string
		room, want int
	}{{"", 0, 0}, {"abc", 3, 3}, {"abc", 2, 2}, {"a#c", 3, 2}, {"a#c", 2, 1}, {"###", 5, 2}, {"a", 0, 0}} {
		got := fitEscaped([]byte(c.data), c.room)
		if got != c.want || len(appendEscaped(nil, []byte(c.data[:got]))) > c.room {
			t.Errorf("fitEscaped(%q, %d) = %d, want %d", c.data, c.room, got, c.want)
		}
	}
}

func TestParseHex(t *testing.T) {
	for in, want := range map[string]uint64{"0": 0, "1F": 31, "ffffffffffffffff": ^uint64(0), "0000000000000001": 1} {
		if v, ok := parseHex(in); !ok || v != want {
			t.Errorf("%q: %x %v", in, v, ok)
		}
	}
	for _, in := range []string{"", "-1", "+1", "0x1", "g", " 1", "10000000000000000", "1_0"} {
		if v, ok := parseHex(in); ok {
			t.Errorf("%q: %x", in, v)
		}
	}
	if _, ok := parseHexInt("80000000"); ok {
		t.Error("80000000 is no id")
	}
}

func TestSignals(t *testing.T) {
	for linux, gdb := range map[int]int{0: 0, 2: 2, 5: 5, 7: 10, 8: 8, 10: 30, 11: 11, 17: 20, 28: 28, 31: 12, 32: 77, 33: 45, 34: 46, 63: 75, 64: 78} {
		if got := gdbSignal(linux); got != gdb {
			t.Errorf("Linux %d is gdb %d, want %d", linux, got, gdb)
		}
		if got := linuxSignal(gdb); got != linux {
			t.Errorf("gdb %d is Linux %d, want %d", gdb, got, linux)
		}
	}
	for _, n := range []int{-1, 65, 1 << 30} {
		if gdbSignal(n) != gdbSignalUnknown {
			t.Errorf("Linux %d", n)
		}
		if n > 78 && linuxSignal(n) != 0 {
			t.Errorf("gdb %d", n)
		}
	}
}

// FuzzFramer checks that the stream's split into reads does not matter, and
// that a sane packet after anything sane is heard.
func FuzzFramer(f *testing.F) {
	for _, s := range []string{
		"+$qSupported:multiprocess+;swbreak+;xmlRegisters=i386#00", "$g#67", "\x03", "$X0,1:}\x03#9f", "$$#", "-+$}#7d", "POST /",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		whole, err1 := trail(&framer{}, string(data))
		var chunks []string
		for rest := data; len(rest) > 0; {
			n := min(len(rest), int(cut)%7+1)
			chunks = append(chunks, string(rest[:n]))
			rest = rest[n:]
			cut = cut*5 + 3
		}
		split, err2 := trail(&framer{}, chunks...)
		var one framer
		if _ = one.push(data, func(event) {}); cap(one.buf) > 2*MaxPacket {
			t.Fatalf("%d bytes kept", cap(one.buf))
		}
		if whole != split || !errors.Is(err1, err2) {
			t.Fatalf("whole %q %v, split %q %v", whole, err1, split, err2)
		}
	})
}
