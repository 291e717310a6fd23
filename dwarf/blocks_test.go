package dwarf

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"slices"
	"testing"

	"vplay/tests/need"
)

// walked returns the entries of the blocks around pc, as a walk from the function's entry down finds them.
func walked(m *Module, function dwarf.Offset, pc uint64) (out []dwarf.Offset) {
	r := m.data.Reader()
	r.Seek(function)
	if e, err := r.Next(); err != nil || !e.Children {
		return nil
	}
	for {
		e, err := r.Next()
		switch {
		case err != nil || e == nil || e.Tag == 0:
			return out
		case e.Tag != dwarf.TagInlinedSubroutine && e.Tag != dwarf.TagLexDwarfBlock || !m.covers(e, pc):
			r.SkipChildren()
		default:
			if out = append(out, e.Offset); !e.Children {
				return out
			}
		}
	}
}

// TestBlocks asks for the blocks around each address of a C++ program, many times. They are those of a walk over the entries, and cost
// a walk once: names of a slice of thousands of lines were lost when the budget was spent on the same functions again and again.
func TestBlocks(t *testing.T) {
	need.Program(t, "g++")
	_, image := compiled(t, "g++", "../tests/guest/stl.cc", "-O2", "-gdwarf-5", "-no-pie", "-std=gnu++17")
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	text := f.Section(".text")
	budget := &stopped{work: 1 << 30}
	m, err := Open(image, budget)
	if err != nil {
		t.Fatal(err)
	}
	free, _ := Open(image, nil)
	most, deepest := uint64(0), 0
	for pc := text.Addr; pc < text.Addr+text.Size; pc += 3 {
		f := free.functionAt(pc)
		if f == nil {
			continue
		}
		want := walked(free, f.offset, pc)
		var got []dwarf.Offset
		free.eachBlock(f.offset, pc, func(e *dwarf.Entry) { got = append(got, e.Offset) })
		if !slices.Equal(got, want) {
			t.Fatalf("%#x: blocks %v, want %v", pc, got, want)
		}
		if len(got) > deepest {
			most, deepest = pc, len(got)
		}
	}
	if deepest < 5 {
		t.Fatalf("the deepest address is in %d blocks", deepest)
	}
	names := m.Inlined(most)
	before := budget.work
	for range 2000 {
		if again := m.Inlined(most); !slices.Equal(again, names) || len(names) < 2 {
			t.Fatalf("%d functions, then %d; %v", len(names), len(again), m.Limited())
		}
	}
	if work := (before - budget.work) / 2000; work > 5000 {
		t.Errorf("a question takes as long as %d bytes", work)
	} else {
		t.Logf("a question takes as long as %d bytes", work)
	}
	// When it is spent, all is refused, and not one question of many.
	budget.work = 0
	for i := range 200_000 {
		if again := m.Inlined(most); len(again) < len(names) {
			for range 1000 {
				if again := m.Inlined(most); len(again) > 0 {
					t.Fatalf("%d functions, after %d questions, when the budget was spent", len(again), i)
				}
			}
			return
		}
	}
	t.Error("nothing was ever refused")
}
