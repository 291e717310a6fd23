package dwarf

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"vplay/tests/need"
)

// TestAgainstStandardLibrary reads all entries, their ranges and the rows of all line
// tables of programs, and compares them with what debug/dwarf says.
func TestAgainstStandardLibrary(t *testing.T) {
	need.Program(t, "gcc", "g++")
	demo, _ := demoSymbols(t)
	images := map[string][]byte{"demo": demo}
	for _, flags := range []string{
		"-O2 -gdwarf-2", "-O2 -gdwarf-3", "-O1 -gdwarf-4", "-O2 -gdwarf-5", "-O2 -gdwarf-5 -gz=zlib", "-O2 -gdwarf-4 -gz=zlib-gnu",
		"-O2 -gdwarf-5 -gdwarf64", "-O2 -gdwarf-5 -flto", "-O2 -gdwarf-5 -fdebug-types-section", "-O2 -gdwarf-4 -fdebug-types-section",
	} {
		_, images[flags] = compiled(t, "g++", "../tests/guest/stl.cc", append(strings.Fields(flags), "-std=gnu++17")...)
	}
	for name, b := range images {
		t.Run(name, func(t *testing.T) {
			f, err := elf.NewFile(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			want, err := f.DWARF()
			if err != nil {
				t.Fatal(err)
			}
			m, err := Open(b, nil)
			if err != nil {
				t.Fatal(err)
			}
			entries, rows := sameEntries(t, m, want)
			t.Logf("%d entries, %d rows", entries, rows)
			if entries < 50 || rows < 50 {
				t.Error("hardly anything was compared")
			}
		})
	}
}

func sameEntries(t *testing.T, m *Module, want *dwarf.Data) (entries, rows int) {
	t.Helper()
	ours, theirs := m.data.Reader(), want.Reader()
	for {
		a, err := ours.Next()
		b, want2 := theirs.Next()
		if (err != nil) != (want2 != nil) || !reflect.DeepEqual(a, b) {
			t.Fatalf("entry %d:\n%+v %v\nwant\n%+v %v", entries, a, err, b, want2)
		}
		if a == nil {
			return entries, rows
		}
		entries++
		if a.Tag == 0 {
			continue
		}
		x, _ := m.data.Ranges(a)
		y, _ := want.Ranges(b)
		if !reflect.DeepEqual(x, y) {
			t.Fatalf("ranges of entry %+v: %x, want %x", a, x, y)
		}
		if a.Tag == dwarf.TagCompileUnit {
			rows += sameLines(t, m, &unit{entry: a}, want)
		}
		if entries%7 == 0 && a.Tag != dwarf.TagCompileUnit {
			ours.SkipChildren()
			theirs.SkipChildren()
		}
	}
}

func sameLines(t *testing.T, m *Module, u *unit, want *dwarf.Data) (rows int) {
	t.Helper()
	p, err := m.lineProgram(u)
	lr, err2 := want.LineReader(u.entry)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if p == nil || lr == nil {
		return 0
	}
	for ; ; rows++ {
		row, ok, err := p.next()
		if err != nil {
			t.Fatal(err)
		}
		var e dwarf.LineEntry
		if end := lr.Next(&e) != nil; end == ok {
			t.Fatalf("row %d: there %v, want %v", rows, ok, !end)
		}
		if !ok {
			return rows
		}
		w := lineRow{addr: e.Address, line: e.Line, isStmt: e.IsStmt, isEnd: e.EndSequence, divided: e.Discriminator != 0}
		if e.File != nil {
			w.file = e.File.Name
		}
		if row != w {
			t.Fatalf("row %d: %+v, want %+v", rows, row, w)
		}
	}
}

// allowance is a budget of so many bytes of memory and of work.
type allowance struct{ memory, work int64 }

func (a *allowance) Take(n int64, _ string) error {
	if n > a.memory {
		return fmt.Errorf("no room for %d bytes", n)
	}
	a.memory -= n
	return nil
}

func (a *allowance) Give(n int64) { a.memory += n }

func (a *allowance) Spend(n int64, _ string) error {
	if n > a.work {
		return fmt.Errorf("no time for %d bytes", n)
	}
	a.work -= n
	return nil
}

// TestBudget asks everything of a file under budgets from none to more than enough:
// what there is no room for is missing, and said to be.
func TestBudget(t *testing.T) {
	b, _ := demoSymbols(t)
	found := -1
	for shift := 0; shift < 30; shift++ {
		for _, a := range []*allowance{{1 << shift, 1 << 40}, {1 << 40, 1 << shift}} {
			m, err := Open(b, a)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, name := range []string{"main", "report", "add_reading", "forecast", "collect"} {
				addr, _ := m.Lookup(name)
				file, _, _ := m.Line(addr)
				if file != "" && len(m.Functions(name)) > 0 {
					n++
				}
			}
			if n < 5 && shift < 16 && m.Limited() == nil {
				t.Errorf("2^%d: %d of 5 functions found, and no limit named", shift, n)
			}
			if found = n; shift == 29 && (n < 5 || m.Limited() != nil) {
				t.Errorf("under a budget of 2^29 bytes: %d of 5 functions, %v", n, m.Limited())
			}
		}
	}
	if found != 5 {
		t.Errorf("%d of 5 functions in the end", found)
	}
}

// TestAbbrevsReadOn: a table of abbreviations is read as far as one is looked for, and the first of a
// code counts however much was read before. What is damaged behind does not matter until it is read.
func TestAbbrevsReadOn(t *testing.T) {
	one := func(code, tag byte) []byte { return []byte{code, tag, 0, byte(dwarf.AttrName), byte(formString), 0, 0} }
	whole := slices.Concat(one(1, 0x11), one(2, 0x34), one(9, 0x2e), one(9, 0x24), one(2, 0x16), one(3, 0x0f), []byte{0})
	damaged := slices.Concat(one(1, 0x11), one(9, 0x2e), []byte{2, 0x34})
	for _, c := range []struct {
		table []byte
		codes []uint64
		tags  []dwarf.Tag // 0: none, -1: damaged
		read  int
	}{
		{whole, []uint64{1}, []dwarf.Tag{0x11}, 7},
		{whole, []uint64{9, 2, 1}, []dwarf.Tag{0x2e, 0x34, 0x11}, 21},
		{whole, []uint64{3, 9, 2}, []dwarf.Tag{0x0f, 0x2e, 0x34}, 42},
		{whole, []uint64{8, 9, 2}, []dwarf.Tag{0, 0x2e, 0x34}, 43},
		{damaged, []uint64{9, 1, 2, 9}, []dwarf.Tag{0x2e, 0x11, ^dwarf.Tag(0), 0x2e}, 16},
	} {
		m := &Module{sec: sections{abbrev: c.table}}
		m.data = &info{m: m, abbrevs: map[uint64]*abbrevs{}}
		for i, code := range c.codes {
			table, err := m.data.table(&header{})
			if err != nil {
				t.Fatal(err)
			}
			a, err := table.find(code)
			got := dwarf.Tag(0)
			if a != nil {
				got = a.tag
			} else if err != nil {
				got = ^dwarf.Tag(0)
			}
			if got != c.tags[i] {
				t.Errorf("%v: code %d: tag %#x, %v, want %#x", c.codes, code, uint32(got), err, uint32(c.tags[i]))
			}
		}
		if table, _ := m.data.table(&header{}); table.rest.at != c.read {
			t.Errorf("%v: %d bytes read, want %d", c.codes, table.rest.at, c.read)
		}
	}
}
