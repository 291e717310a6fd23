package corefile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader/image"
)

func imported(t *testing.T, data []byte, o Options) (*checkpoint.Recording, *Result) {
	t.Helper()
	c, err := openBytes(t, data, checkpoint.NewBudget(t.Context(), 1<<30).Scaled())
	if err != nil {
		t.Fatal(err)
	}
	o.Path = filepath.Join(t.TempDir(), "x.vplay")
	o.Symbols = image.NewSymbols(nil, false, image.Unwind{})
	o.Start = time.Unix(1_700_000_000, 0)
	res, err := Import(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := checkpoint.Open(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec, res
}

// TestSmallCore looks at all of a recording of a core file that was made by hand.
func TestSmallCore(t *testing.T) {
	rec, res := imported(t, smallCore().bytes(), Options{})
	if !rec.IsMoment() || !rec.IsOfCore() {
		t.Error("the recording is no moment of a core file")
	}
	m := rec.Manifest()
	if m.PID != 70 || m.Signo != 11 || !m.Crash || m.Program != "/nowhere/prog" || strings.Join(m.Args, " ") != "prog -x y" {
		t.Errorf("manifest %+v", m)
	}
	iv, err := rec.Interval(interval)
	if err != nil {
		t.Fatal(err)
	}
	if len(iv.Start) != 2 || iv.Start[0].TID != 71 || iv.Start[1].TID != 70 || iv.Start[1].Name != "prog" {
		t.Fatalf("threads %+v", iv.Start)
	}
	r := iv.Start[0].Regs
	if r.R != [16]uint64{0x10a, 0x10b, 0x10c, 0x105, 0x113, 0x104, 0x10d, 0x10e, 0x109, 0x108, 0x107, 0x106, 0x103, 0x102, 0x101, 0x100} ||
		r.RIP != 0x110 || r.RFLAGS != 0x112 || r.FSBase != 0x115 || r.GSBase != 0x116 || r.CS != 0x111 || r.SS != 0x114 ||
		r.DS != 0x117 || r.ES != 0x118 || r.FS != 0x119 || r.GS != 0x11a || iv.Start[0].OrigRAX != 0x10f {
		t.Errorf("registers %+v", iv.Start[0])
	}
	var maps []string
	for _, g := range iv.Maps {
		o, _ := rec.Object(g.Object)
		maps = append(maps, strings.Join([]string{hex(g.Start), hex(g.End), o.Path, g.Name}, " "))
	}
	want := []string{
		"400000 402000 /nowhere/prog /nowhere/prog", "500000 501000 /nowhere/lib.so /nowhere/lib.so", "600000 602000  ", "602000 604000  ",
		"7fffe000 80001000  [stack]", "100000000000 110000000000  ",
	}
	if !slices.Equal(maps, want) {
		t.Errorf("maps:\n%s\nwant:\n%s", strings.Join(maps, "\n"), strings.Join(want, "\n"))
	}
	table, err := rec.PageTable(interval)
	if err != nil {
		t.Fatal(err)
	}
	wantPages := []uint64{0x400000, 0x600000, 0x601000, 0x7fffe000, 0x7ffff000, 0x80000000}
	for i, a := range wantPages {
		if i >= len(table) || table[i].Addr != a || table[i].Ref.Kind != checkpoint.PageFull {
			t.Fatalf("page table %+v", table)
		}
	}
	if len(res.Missing) != 2+1 { // both files, and the vector registers
		t.Errorf("missing %q", res.Missing)
	}
	for i, s := range []string{"/nowhere/prog: ", "/nowhere/lib.so: ", "2 of 2 threads"} {
		if i < len(res.Missing) && !strings.Contains(res.Missing[i], s) {
			t.Errorf("missing %q, want %s", res.Missing[i], s)
		}
	}
}

// goldenCore is the same core file for tests of the command line.
const goldenCore = "testdata/small.core"

var update = flag.Bool("update", false, "write testdata again")

// TestGoldenCore: the file is what the builder makes.
func TestGoldenCore(t *testing.T) {
	want := smallCore().bytes()
	if *update {
		if err := os.WriteFile(goldenCore, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(goldenCore); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what smallCore makes (%v): go test -update", goldenCore, err)
	}
}

func hex(n uint64) string {
	const digits = "0123456789abcdef"
	s := ""
	for ; n > 0; n >>= 4 {
		s = digits[n&15:n&15+1] + s
	}
	return s
}

// TestCutCore: each prefix of a core file is imported, as far as it goes, or refused; what is behind the
// end is not captured, and the recording says so.
func TestCutCore(t *testing.T) {
	whole := smallCore().bytes()
	opened := 0
	for n := 0; n < len(whole); n += 37 {
		c, err := openBytes(t, whole[:n], nil)
		var bad *FormatError
		if err != nil && !errors.As(err, &bad) && !errors.Is(err, ErrNotCore) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if err == nil {
			opened++
			if want := uint64(len(whole) - n); c.truncated == 0 || c.truncated > want {
				t.Fatalf("%d bytes: %d are said to be missing, and %d are", n, c.truncated, want)
			}
		}
	}
	if opened < 100 {
		t.Errorf("only %d prefixes were opened", opened)
	}
	rec, _ := imported(t, whole[:len(whole)-pageSize-5], Options{})
	table, _ := rec.PageTable(interval)
	last := table[len(table)-1]
	if last.Addr != 0x7ffff000 || last.Ref.Kind != checkpoint.PagePartial {
		t.Errorf("the page that is cut off is %+v", last)
	}
	if notes := strings.Join(rec.Manifest().Notes, "\n"); !strings.Contains(notes, "is cut off") {
		t.Errorf("notes:\n%s", notes)
	}
}

// TestHostileCores: what no writer of core files makes is refused, with a reason.
func TestHostileCores(t *testing.T) {
	cases := map[string]struct {
		change func(*coreBuilder)
		want   string
	}{
		"overlap":    {func(b *coreBuilder) { b.segment(0x601000, pageSize, 6, nil) }, "overlap"},
		"unaligned":  {func(b *coreBuilder) { b.segment(0x900010, pageSize, 6, nil) }, "no page's start"},
		"kernel":     {func(b *coreBuilder) { b.segment(1<<47, pageSize, 6, nil) }, "behind the addresses"},
		"endless":    {func(b *coreBuilder) { b.segment(0x900000, 1<<63, 6, nil) }, "behind the addresses"},
		"wraps":      {func(b *coreBuilder) { b.segment(0xfffffffffffff000, 1<<63, 6, nil) }, "behind the addresses"},
		"twice":      {func(b *coreBuilder) { b.thread(70, 0) }, "twice"},
		"no number":  {func(b *coreBuilder) { b.thread(-3, 0) }, "is none"},
		"no thread":  {func(b *coreBuilder) { b.notes.Reset() }, "no thread"},
		"no memory":  {func(b *coreBuilder) { b.segments = nil }, "no memory"},
		"status":     {func(b *coreBuilder) { b.note("CORE", abi.NT_PRSTATUS, make([]byte, 296)) }, "NT_PRSTATUS has 296"},
		"many files": {func(b *coreBuilder) { b.note("CORE", abi.NT_FILE, binary.LittleEndian.AppendUint64(nil, 1<<62)) }, "NT_FILE has 8"},
		"more files": {func(b *coreBuilder) {
			b.note("CORE", abi.NT_FILE, append(binary.LittleEndian.AppendUint64(nil, 1<<60), make([]byte, 100)...))
		}, "lists"},
		"file names": {func(b *coreBuilder) { b.files(fileRow{0x1000, 0x1000, 0, "/x"}) }, "maps"},
		"layout":     {func(b *coreBuilder) { b.note("LINUX", abi.NT_X86_XSAVE_LAYOUT, bytes.Repeat([]byte{255}, 16)) }, "LAYOUT"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := smallCore()
			c.change(b)
			_, err := openBytes(t, b.bytes(), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestAmplified: a small core file whose segments show the same bytes again and again is refused by the
// budget, in time.
func TestAmplified(t *testing.T) {
	b := smallCore()
	for i := range 60_000 {
		b.segment(0x200000000+uint64(i)<<20, 1<<20, 6, nil)
	}
	data := b.bytes()
	at := headerSize + programSize*5
	for i := range 60_000 { // each shows the first MiB of the file
		binary.LittleEndian.PutUint64(data[at+i*programSize+8:], 0)
		binary.LittleEndian.PutUint64(data[at+i*programSize+32:], 1<<20)
	}
	c, err := openBytes(t, data, checkpoint.NewBudget(t.Context(), 256<<20).Scaled())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.vplay")
	_, err = Import(t.Context(), c, Options{Path: path})
	var limit *checkpoint.LimitError
	if !errors.As(err, &limit) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was left behind")
	}
}

// TestStopped: an import ends with its context, and leaves nothing.
func TestStopped(t *testing.T) {
	b := smallCore()
	b.segment(0x100000000, 64<<20, 6, bytes.Repeat(pattern(pageSize), 64<<8))
	data := b.bytes()
	ctx, cancel := context.WithCancel(t.Context())
	c, err := openBytes(t, data, checkpoint.NewBudget(ctx, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err = Import(ctx, c, Options{Path: filepath.Join(dir, "x.vplay"), Progress: func(int64, int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Errorf("left behind: %v", list)
	}
}

// TestUnpack: what zstd and gzip make is read; a cut one is refused, and one that becomes far too much.
func TestUnpack(t *testing.T) {
	plain := append(smallCore().bytes(), make([]byte, 1<<20)...)
	var zst, gz bytes.Buffer
	zw, _ := zstd.NewWriter(&zst)
	zw.Write(plain)
	zw.Close()
	gw := gzip.NewWriter(&gz)
	gw.Write(plain)
	gw.Close()
	open := func(data []byte, limit int64) ([]byte, error) {
		path := filepath.Join(t.TempDir(), "packed")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, n, done, err := Unpack(t.Context(), f, checkpoint.NewBudget(t.Context(), limit), nil)
		if err != nil {
			return nil, err
		}
		defer done()
		b := make([]byte, n)
		_, err = r.ReadAt(b, 0)
		return b, err
	}
	for name, data := range map[string][]byte{"zstd": zst.Bytes(), "gzip": gz.Bytes(), "plain": plain} {
		if got, err := open(data, 1<<30); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	var bad *FormatError
	for name, data := range map[string][]byte{"zstd": zst.Bytes(), "gzip": gz.Bytes()} {
		if _, err := open(data[:len(data)-9], 1<<30); !errors.As(err, &bad) {
			t.Errorf("cut %s: %v", name, err)
		}
		var limit *checkpoint.LimitError
		if _, err := open(data, 100_000); !errors.As(err, &limit) {
			t.Errorf("%s that becomes too much: %v", name, err)
		}
	}
	if _, err := open([]byte("\x04\x22\x4d\x18more"), 1<<30); !errors.Is(err, ErrPacked) {
		t.Errorf("lz4: %v", err)
	}
}

// FuzzCore: whatever the bytes, an import ends with a recording that opens, or with an error, and never
// takes more than it may.
func FuzzCore(f *testing.F) {
	whole := smallCore().bytes()
	f.Add(whole)
	f.Add(whole[:900])
	f.Add([]byte("\x7fELF"))
	for _, at := range []int{32, 54, 56, 64 + 8, 64 + 32, 120 + 16, 120 + 40, 400} {
		b := bytes.Clone(whole)
		b[at] ^= 0xff
		b[at+1] ^= 0x80
		f.Add(b)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		budget := checkpoint.NewBudget(ctx, 64<<20).Scaled()
		c, err := openBytes(t, data, budget)
		if err != nil {
			return
		}
		path := filepath.Join(dir, "f.vplay")
		if _, err := Import(ctx, c, Options{Path: path, Overwrite: true, Symbols: image.NewSymbols(nil, false, image.Unwind{})}); err != nil {
			if ctx.Err() != nil {
				t.Fatalf("%d bytes take too long", len(data))
			}
			return
		}
		rec, err := checkpoint.Open(path)
		if err != nil {
			t.Fatalf("the recording does not open: %v", err)
		}
		defer rec.Close()
		if _, err := rec.Interval(interval); err != nil {
			t.Fatal(err)
		}
		if _, err := rec.PageTable(interval); err != nil {
			t.Fatal(err)
		}
	})
}
