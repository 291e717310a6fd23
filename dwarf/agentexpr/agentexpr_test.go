package agentexpr

import (
	"encoding/hex"
	"errors"
	"slices"
	"testing"
	"time"
)

// testMachine has general registers that hold their number, and 16 bytes of memory.
type testMachine struct{}

var errMemory = errors.New("not captured")

func (testMachine) GPR(n int) uint64 { return uint64(slices.Index(GPR[:], uint8(n))) }
func (testMachine) RIP() uint64      { return RIP }

func (testMachine) ReadMemory(addr uint64, b []byte) (int, error) {
	for i := range b {
		if addr+uint64(i) < 0x1000 || addr+uint64(i) >= 0x1010 {
			return i, errMemory
		}
		b[i] = 0xf0 + byte(addr+uint64(i)-0x1000)
	}
	return len(b), nil
}

// eval parses code and evaluates it.
func eval(code []byte) (uint64, error) {
	p, err := Parse(code)
	if err != nil {
		return 0, err
	}
	return p.Eval(testMachine{}, nil)
}

func TestEval(t *testing.T) {
	const minusOne = "25ffffffffffffffff"
	for _, c := range []struct {
		name, code string
		want       uint64
	}{
		{"empty stack", "27", 0},
		{"const8", "22ff27", 0xff},
		{"const16 is big-endian", "23010227", 0x102},
		{"const32", "24fffffffe27", 0xfffffffe},
		{"const64", minusOne + "27", ^uint64(0)},
		{"add", "220222030227", 5},
		{"sub", "220222030327", ^uint64(0)},
		{"mul", "220322050427", 15},
		{"div_signed", minusOne + "22010527", ^uint64(0)},
		{"div_signed of the least", "258000000000000000" + minusOne + "0527", 1 << 63},
		{"div_unsigned", minusOne + "22020627", 1<<63 - 1},
		{"rem_signed", "25fffffffffffffffb22030727", ^uint64(1)},
		{"rem_signed of the least", "258000000000000000" + minusOne + "0727", 0},
		{"rem_unsigned", "220a22040827", 2},
		{"lsh", "220122040927", 16},
		{"lsh by 64", "220122400927", 0},
		{"rsh_signed", minusOne + "22040a27", ^uint64(0)},
		{"rsh_signed by 200", minusOne + "22c80a27", ^uint64(0)},
		{"rsh_unsigned", minusOne + "223c0b27", 15},
		{"log_not", "22000e27", 1},
		{"bit_and or xor", "220c220a0f220110220411" + "27", 0xd},
		{"bit_not", "22001227", ^uint64(0)},
		{"equal", "220522051327", 1},
		{"less_signed", minusOne + "22001427", 1},
		{"less_unsigned", minusOne + "22001527", 0},
		{"ext", "2280160827", ^uint64(0x7f)},
		{"ext 64", minusOne + "164027", ^uint64(0)},
		{"zero_ext", minusOne + "2a0827", 0xff},
		{"ref8", "2310001727", 0xf0},
		{"ref16 is little-endian", "2310001827", 0xf1f0},
		{"ref32", "2310001927", 0xf3f2f1f0},
		{"ref64", "2310001a27", 0xf7f6f5f4f3f2f1f0},
		{"reg", "26000727", 7},
		{"dup", "2203280427", 9},
		{"pop", "220122022927", 1},
		{"swap", "220122022b0327", 1},
		{"rot", "220122022203330327", 0xffffffffffffffff}, // 1 2 3 -> 3 1 2; 1-2
		{"pick 1", "220722083201" + "27", 7},
		{"if_goto taken", "2201200008221127222227", 0x22},
		{"if_goto not taken", "2200200008221127222227", 0x11},
		{"goto", "21000522112222" + "27", 0x22},
		{"trace operators collect nothing", "220522062207" + "0c" + "2201220a2f" + "0d04" + "300004" + "2e0001" + "27", 5},
		{"printf prints nothing", "2209" + "2201" + "22002200" + "34010003256400" + "27", 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, err := hex.DecodeString(c.code)
			if err != nil {
				t.Fatal(err)
			}
			got, err := eval(code)
			if err != nil || got != c.want {
				t.Errorf("%#x %v, want %#x", got, err, c.want)
			}
		})
	}
}

func TestEvalErrors(t *testing.T) {
	for name, code := range map[string]string{
		"runs off the end":  "2201",
		"no code":           "",
		"cut off":           "2401",
		"unknown operator":  "ff27",
		"floating point":    "0127",
		"underflow":         "0227",
		"overflow":          "220128210002",
		"endless":           "210000",
		"division by zero":  "220122000527",
		"register":          "26ffff27",
		"memory":            "22001727",
		"memory in part":    "23100f1827",
		"memory wraps":      "25ffffffffffffffff1827",
		"ext 0":             "2201160027",
		"ext 65":            "2201164127",
		"pick too deep":     "2201320127",
		"getv":              "2c000127",
		"setv":              "22012d000127",
		"printf cut off":    "22012201340000ff27",
		"printf arguments":  "22012201340500002727",
		"goto out of range": "21ffff",
	} {
		t.Run(name, func(t *testing.T) {
			b, err := hex.DecodeString(code)
			if err != nil {
				t.Fatal(err)
			}
			_, err = eval(b)
			if !errors.Is(err, Err) {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := eval([]byte{Const8, 0, Ref8, End}); !errors.Is(err, errMemory) {
		t.Errorf("the memory's error is lost: %v", err)
	}
	if _, err := eval(make([]byte, MaxLen+1)); !errors.Is(err, Err) {
		t.Error("too long")
	}
}

func TestParse(t *testing.T) {
	for code, ok := range map[string]bool{
		"": true, "27": true, "21000327": true, "21000427": false, "23270021000127": false, "2100": false, "ff": false,
	} {
		b, _ := hex.DecodeString(code)
		if _, err := Parse(b); (err == nil) != ok {
			t.Errorf("%s: %v", code, err)
		}
	}
	if _, err := Parse(make([]byte, MaxLen+1)); err == nil {
		t.Error("too long")
	}
}

func TestEvalAllocatesNothing(t *testing.T) {
	code, _ := hex.DecodeString("23100019220514" + "27")
	p, err := Parse(code)
	if err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(1000, func() {
		if _, err := p.Eval(testMachine{}, nil); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0.1 { // the pool may lose an entry to the collector
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEval(b *testing.B) {
	code, _ := hex.DecodeString("26000222031326000522051314" + "27") // $rdx == 3 < …
	p, err := Parse(code)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.Eval(testMachine{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzEval runs arbitrary code: it ends, and never panics.
func FuzzEval(f *testing.F) {
	for _, s := range []string{"260002220313" + "27", "2600062210022b27", "220120000722112722222727", "21000327", "34010003256400", "23100019220514" + "27"} {
		b, _ := hex.DecodeString(s)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		start := time.Now()
		_, err := eval(code)
		if d := time.Since(start); d > time.Second {
			t.Fatalf("%x took %v", code, d)
		}
		if err != nil && !errors.Is(err, Err) {
			t.Fatalf("%x: %v", code, err)
		}
		if len(code) > MaxLen && err == nil {
			t.Fatal("too long, but taken")
		}
	})
}
