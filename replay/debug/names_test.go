package debug

import (
	"io"
	"testing"

	"vplay/loader/image"
)

// countOpened counts how often each file of the present program is opened.
func countOpened(g *Cursor) map[string]int {
	opened := map[string]int{}
	g.moduleFiles().OnOpen = func(mod *image.Module) { opened[mod.Path]++ }
	return opened
}

// TestOneResolver asks by name and by address, from two cursors, at several moments,
// as gdb, DAP and the commands do: every file is opened once.
func TestOneResolver(t *testing.T) {
	g := openDemo(t)
	opened := countOpened(g)
	other, err := g.Session().NewCursor()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx := t.Context()
	for range 2 {
		for _, c := range []*Cursor{g, other} {
			symbols := NewSymbols(c)
			for _, where := range []string{"100%", "95%", "90%"} {
				for _, line := range []string{"seek " + where, "calls no_such_function", "last-write main", "first-exec main", "modules"} {
					if err := c.Monitor(ctx, line, io.Discard); err != nil && line != "calls no_such_function" {
						t.Errorf("%s: %v", line, err)
					}
				}
				if n := len(symbols.Functions("main")); n != 1 {
					t.Errorf("main is at %d places", n)
				}
				if len(symbols.Stack(c.tid(), 8)) == 0 || symbols.Symbol(c.state().RIP) == "" {
					t.Error("nothing is known of where the program is")
				}
			}
			if _, err := c.OpenFile(c.program().path); err != nil {
				t.Error(err)
			}
		}
	}
	if len(opened) == 0 {
		t.Error("nothing was opened")
	}
	for name, n := range opened {
		if n != 1 {
			t.Errorf("%s was opened %d times", name, n)
		}
	}
}

// TestUnboundIsNotKept asks for a function that the C library chooses for the CPU, before it
// has chosen and behind that: what is known before is not what is known later.
func TestUnboundIsNotKept(t *testing.T) {
	const name = "strlen"
	fresh := openDemo(t)
	want, err := fresh.addresses(name)
	if err != nil {
		t.Fatal(err)
	}
	g := openDemo(t)
	if err := g.Rewind(); err != nil {
		t.Fatal(err)
	}
	before, err := g.addresses(name)
	if err != nil {
		t.Fatal(err)
	}
	if before[0] == want[0] {
		t.Fatalf("at the beginning %s is chosen already", name)
	}
	if err := g.Monitor(t.Context(), "seek end", io.Discard); err != nil {
		t.Fatal(err)
	}
	if got, err := g.addresses(name); err != nil || got[0] != want[0] {
		t.Errorf("at the end %s is at %#x, %v; want %#x", name, got, err, want)
	}
}
