package export

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
)

// hostile are names that a recording may have.
var hostile = []string{"a;b", "a\nfn=(9) x", "<script>alert(1)</script>", "]]>", "=1+1", "\x1b[2J", "a\xff\xfe", "\x00", strings.Repeat("x", 5000), ""}

// TestHostileNames: no name ends a line, a field, or an element.
func TestHostileNames(t *testing.T) {
	for _, name := range hostile {
		if s := foldedName(name); strings.ContainsAny(s, ";\n\x1b") {
			t.Errorf("folded: %q", s)
		}
		c := &callgrind{named: map[string]int{}}
		if s := c.name("fn", name); strings.ContainsAny(s, "\n\x1b") || !strings.HasPrefix(s, "(1) ") || c.name("fn", name) != "(1)" {
			t.Errorf("callgrind: %q", s)
		}
		if s := cell(name); s != "" && strings.ContainsAny(s[:1], "=+-@") {
			t.Errorf("csv: %q", s)
		}
		var b bytes.Buffer
		f := &flameWriter{out: bufio.NewWriter(&b), total: 10}
		root := &flame{name: "all", total: 10}
		child := root.child(name)
		child.self, child.total = 10, 10
		f.measure(root, 0)
		f.head(escapeXML(name))
		f.frame(root, 0, 0)
		f.out.WriteString("</g></svg>")
		if err := f.out.Flush(); err != nil {
			t.Fatal(err)
		}
		scripts := 0
		d := xml.NewDecoder(&b)
		for {
			tok, err := d.Token()
			if tok == nil {
				if err.Error() != "EOF" {
					t.Errorf("svg: %q: %v", name, err)
				}
				break
			}
			if s, ok := tok.(xml.StartElement); ok && s.Name.Local == "script" {
				scripts++
			}
		}
		if scripts != 1 {
			t.Errorf("svg: %q: %d scripts", name, scripts)
		}
	}
}

// TestAllocators: sizes that no program can have are not counted.
func TestAllocators(t *testing.T) {
	for _, c := range []struct {
		name string
		args arguments
		n    uint64
		ok   bool
	}{
		{"malloc", arguments{7, 1, 2}, 7, true}, {"calloc", arguments{3, 5, 0}, 15, true}, {"calloc", arguments{1 << 40, 1 << 40, 0}, 0, false},
		{"__libc_malloc", arguments{^uint64(0), 0, 0}, 0, false}, {"memalign", arguments{1, 9, 2}, 9, true}, {"__posix_memalign", arguments{1, 9, 2}, 2, true},
		{"reallocarray", arguments{1, 9, 2}, 18, true}, {"free", arguments{1, 9, 2}, 0, false},
	} {
		if n, ok := allocators[c.name].Asked(c.args[:]); ok != c.ok || ok && n != c.n {
			t.Errorf("%s of %v: %d, %v", c.name, c.args, n, ok)
		}
	}
}

// TestDepth: what is called too deep is put beside its caller, and no node is deeper than that.
func TestDepth(t *testing.T) {
	tr := newTree()
	n := int32(0)
	for range 3 * maxDepth {
		n = tr.child(n, 5, 7)
	}
	if len(tr.nodes) != maxDepth+1 || tr.nodes[n].depth != maxDepth || tr.folded != 2*maxDepth {
		t.Errorf("%d nodes, depth %d, %d folded", len(tr.nodes), tr.nodes[n].depth, tr.folded)
	}
}
