package script

import (
	"encoding/json"
	"strings"
	"testing"

	"go.starlark.net/starlark"
)

// TestLibrary reads each script that is part of the program: it has no mistake, and says what it is for.
func TestLibrary(t *testing.T) {
	names := Library()
	if len(names) < 4 {
		t.Errorf("there are %v", names)
	}
	for _, name := range names {
		source, ok := Shipped(name)
		if _, err := Read(name, source); !ok || err != nil {
			t.Errorf("%s: %v", name, err)
		}
		about := About(source)
		if !strings.HasPrefix(about, name+": ") || !strings.Contains(about, "vplayd run "+name+" REC") {
			t.Errorf("%s says of itself %q", name, about)
		}
	}
	if _, ok := Shipped("../run"); ok {
		t.Error("a script outside of the library")
	}
}

// TestRead: a mistake is told with its place.
func TestRead(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"def f(:\n", "a.star:1:8: got ':', want ')'"},
		{"x = 1\nprint(y, z)\n", "a.star:2:7: undefined: y (and 1 more)"},
		{strings.Repeat("#", maxSource+1), "a.star: a script has at most 4194304 bytes"},
		{"while True: pass\n", ""},
	} {
		_, err := Read("a.star", []byte(c.source))
		if got := errorText(err); got != c.want {
			t.Errorf("%.20q: %s, want %s", c.source, got, c.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestSplitLine reads names of lines.
func TestSplitLine(t *testing.T) {
	for _, c := range []struct {
		s, file string
		line    int
	}{{"a.c:12", "a.c", 12}, {"src/a.c:1", "src/a.c", 1}, {"c:\\a.c:7", "c:\\a.c", 7}, {"a.c", "", 0}, {":3", "", 0}, {"a.c:0", "", 0}, {"a.c:-1", "", 0}, {"a.c:x", "", 0}} {
		file, line, err := splitLine(c.s)
		if file != c.file || line != c.line || (err == nil) != (c.line > 0) {
			t.Errorf("%s: %q, %d, %v", c.s, file, line, err)
		}
	}
}

// TestPlain makes values ones that JSON has a form for, and refuses those that are too large, or no values.
func TestPlain(t *testing.T) {
	run := func(source string) (string, error) {
		var got []Field
		r := &run{o: &Options{Row: func(f []Field) { got = f }}, thread: &starlark.Thread{}}
		_, prog, err := starlark.SourceProgramOptions(options, "t.star", source, isPredeclared)
		if err != nil {
			return "", err
		}
		if _, err := prog.Init(r.thread, starlark.StringDict{"row": starlark.NewBuiltin("row", r.row), "hex": starlark.NewBuiltin("hex", hexadecimal), "signed": starlark.NewBuiltin("signed", signed)}); err != nil {
			return "", err
		}
		b, err := json.Marshal(got)
		return string(b), err
	}
	for _, c := range []struct{ source, want string }{
		{`row(a=1, b="x", c=None, d=[True, (2.5,)], e={"k": 1 << 70}, f=b"\x01\xff")`,
			`[{"Name":"a","Value":1},{"Name":"b","Value":"x"},{"Name":"c","Value":null},{"Name":"d","Value":[true,[2.5]]},{"Name":"e","Value":{"k":1180591620717411303424}},{"Name":"f","Value":"01ff"}]`},
		{`row(a=hex(255), b=signed(0xffff, 16), c=signed(-1))`, `[{"Name":"a","Value":"0xff"},{"Name":"b","Value":-1},{"Name":"c","Value":-1}]`},
		{`row(1)`, "values have names"},
		{`row(a=row)`, "is no plain value"},
		{"l = []\nl.append(l)\nrow(a=l)", "too large"},
		{`row(a=list(range(2000000)))`, "too large"},
		{`signed(1, 65)`, "bits is 1 to 64"},
	} {
		got, err := run(c.source)
		if got+errorText(err) != c.want && !strings.Contains(errorText(err), c.want) {
			t.Errorf("%s: %s, %v, want %s", c.source, got, err, c.want)
		}
	}
}

// TestSpans sorts blocks, lets none overlap, and finds the one that an address is in.
func TestSpans(t *testing.T) {
	d := starlark.NewDict(4)
	for _, b := range [][2]uint64{{100, 50}, {10, 0}, {120, 10}, {200, 1}} {
		_ = d.SetKey(starlark.MakeUint64(b[0]), starlark.MakeUint64(b[1])) // the key is new
	}
	l, err := spansOf(d)
	if err != nil {
		t.Fatal(err)
	}
	for a, want := range map[uint64]int{9: -1, 10: 0, 11: -1, 100: 1, 119: 1, 120: 2, 129: 2, 130: -1, 199: -1, 200: 3, 201: -1} {
		if got := at(l, a); got != want {
			t.Errorf("%d is in %d, want %d of %v", a, got, want, l)
		}
	}
	_ = d.SetKey(starlark.MakeUint64(^uint64(0)), starlark.MakeInt(2))
	if _, err := spansOf(d); err == nil {
		t.Error("a block beyond the end of the address space")
	}
}

// TestSystemModules: which modules races(f) leaves out.
func TestSystemModules(t *testing.T) {
	for file, want := range map[string]bool{
		"/lib/libc.so.6": true, "/lib/libc-2.31.so": true, "/lib64/ld-linux-x86-64.so.2": true, "linux-vdso.so.1": true, "/usr/lib/libjemalloc.so.2": true, "/usr/lib/libtcmalloc_minimal.so.4": true,
		"/usr/lib/libcurl.so.4": false, "/usr/bin/libc": false, "/usr/lib/libstdc++.so.6": false, "/usr/bin/jemalloc.sh": false,
	} {
		if got := isSystemModule(file); got != want {
			t.Errorf("%s: %t, want %t", file, got, want)
		}
	}
}
