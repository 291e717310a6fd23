package debugcode

import (
	"slices"
	"strings"
	"testing"
)

// TestScan reads tokens: strings, characters and numbers that look like something else, and line markers.
func TestScan(t *testing.T) {
	list := scan("# 1 \"a.c\"\nint a = '{', b[] = {\"}\\\"}\"};\n# 7 \"/usr/include/x.h\" 1 3 4\nx->y.z\n#pragma pack(1)\n\n1.5e+3+.5 'a\nlast")
	var texts []string
	for _, x := range list {
		texts = append(texts, x.text)
	}
	want := `int a = '{' , b [ ] = { "}\"}" } ; x -> y . z 1.5e+3 + .5 'a last`
	if got := strings.Join(texts, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, c := range []struct {
		text, at string
		system   bool
	}{{"int", "a.c:1", false}, {"->", "/usr/include/x.h:7", true}, {"last", "/usr/include/x.h:11", true}} {
		i := slices.IndexFunc(list, func(x token) bool { return x.text == c.text })
		if i < 0 || list[i].position() != c.at || list[i].at.system != c.system {
			t.Errorf("%s is at %s, want %s", c.text, list[max(i, 0)].position(), c.at)
		}
	}
}

// TestDeclarations finds what a file declares, and not what it only uses.
func TestDeclarations(t *testing.T) {
	d := declarations(scan(`typedef unsigned long size_t; struct tag { int member; struct inner { char c; } in; };
		enum color { RED, GREEN = 2 }; extern FILE *const out; typedef void (*handler)(int argument);
		static node_t *first, list[3]; int function(node_t *n) { int local; return 0; } enum { LAST };`))
	for _, c := range []struct {
		in   map[string]bool
		want string
	}{
		{d.names, "GREEN LAST RED first function handler list out size_t"},
		{d.tags, "color inner tag"},
	} {
		var got []string
		for name := range c.in {
			got = append(got, name)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v, want %s", got, c.want)
		}
	}
}

// TestRewrite makes functions of regions: names of the program's variables are replaced where they are no members, and
// lines stay.
func TestRewrite(t *testing.T) {
	text := "# 1 \"a.c\"\nint f;\nVPLAY_AT(dir/x.c,\n 12) {\n\tint x = p->x + s.x + x;\n\tstruct { int x; } l = {.x = x};\n\tchar *q = \"x}\";\n}\nVPLAY_AT_END { x; }\n"
	list := scan(text)
	rs, err := regions(text, list)
	if err != nil || len(rs) != 2 {
		t.Fatal(rs, err)
	}
	if r := rs[0]; r.file != "dir/x.c" || r.line != 12 || r.at != "a.c:2" || r.kind != atLine || rs[1].kind != atEnd {
		t.Errorf("%+v", *r)
	}
	rs[0].locals["x"] = &symbol{name: "vplay_l1_x"}
	got := rewrite(text, list, rs, func(*region) string { return "extern int vplay_l1_x;" })
	want := "# 1 \"a.c\"\nint f;\nextern int vplay_l1_x; void vplay_region_1(struct vplay_moment *vplay)\n{\n\tint vplay_l1_x = p->x + s.x + vplay_l1_x;\n" +
		"\tstruct { int x; } l = {.x = vplay_l1_x};\n\tchar *q = \"x}\";\n}\nextern int vplay_l1_x; void vplay_region_2(struct vplay_moment *vplay){ x; }\n"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestRegionErrors names the line of a mistake.
func TestRegionErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"VPLAY_AT(a.c, 1) {", "x.c:1: the block of VPLAY_AT(a.c, 1) is not ended"},
		{"\nVPLAY_AT(a.c, 1) {\n}\nVPLAY_ON_CALL(f) {\n if (1) {\n}\nVPLAY_AT_END {}", "x.c:4: the block of VPLAY_ON_CALL(f) is not ended"},
		{"VPLAY_AT(a.c) {}", "x.c:1: a place is named VPLAY_AT(FILE, LINE), not VPLAY_AT(a.c)"},
		{"VPLAY_AT(a.c, 0) {}", "x.c:1: a place is named"},
		{"VPLAY_ON_CALL() {}", "x.c:1: VPLAY_ON_CALL needs to know where: VPLAY_ON_CALL(FUNCTION)"},
		{"VPLAY_ON_CALL(f)\nint x;", "x.c:1: VPLAY_ON_CALL(f) needs a block"},
		{"VPLAY_ON_CALL f {}", "x.c:1: VPLAY_ON_CALL: ( is missing"},
		{"VPLAY_ON_CALL(f", "x.c:1: VPLAY_ON_CALL: ( is missing, or the )"},
		{"int f(void) {\n VPLAY_AT(a.c, 1) {} }", "x.c:2: VPLAY_AT stands in a function"},
	} {
		text := "# 1 \"x.c\"\n" + c.text
		_, err := regions(text, scan(text))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestIsIdentifier: names of a recording reach the compiler only as plain identifiers.
func TestIsIdentifier(t *testing.T) {
	for name, want := range map[string]bool{"a": true, "_b9": true, "": false, "9a": false, "a b": false, "int": false, "__x": false, "vplay_x": false, "a\nb": false, "a;": false, "é": false, "a$": false, "linux": false} {
		if isIdentifier(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	d := newDeclarer(declared{map[string]bool{"taken": true}, map[string]bool{}})
	for name, want := range map[string]string{"free": "free", "taken": "vplay_t", "a\"b": "vplay_t"} {
		if got := d.choose(name, d.taken.names); !strings.HasPrefix(got, want) || !isPlain(got) {
			t.Errorf("%q becomes %q", name, got)
		}
	}
}

// isPlain reports whether a name has only what names of C have.
func isPlain(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// FuzzRegions: no text makes the scanner panic, or not end.
func FuzzRegions(f *testing.F) {
	f.Add("VPLAY_AT(a.c, 1) { x; } VPLAY_ON_CALL(f) { '}' \"\\\" }")
	f.Add("# 1 \"a\" 3\nVPLAY_AT_END {struct {union{int a;} __builtin_offsetof(")
	f.Fuzz(func(t *testing.T, text string) {
		list := scan(text)
		declarations(list)
		rs, err := regions(text, list)
		if err == nil {
			for _, r := range rs {
				r.locals["x"] = &symbol{name: "y"}
			}
			rewrite(text, list, rs, func(*region) string { return "" })
		}
	})
}
