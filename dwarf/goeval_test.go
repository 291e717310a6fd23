package dwarf

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goFrames are the frames of the program of testdata/govars by their functions.
func goFrames(t *testing.T) map[string]*Env {
	t.Helper()
	m, image := openStopped(t, goStopped(t, false, "-gcflags=all=-N -l"))
	out := map[string]*Env{}
	for _, e := range image.envs(m) {
		for _, s := range e.Scopes() {
			name, _, _ := strings.Cut(s.Function, "[")
			out[strings.TrimPrefix(name, "main.")] = e
		}
	}
	return out
}

func TestGoEval(t *testing.T) {
	frames := goFrames(t)
	for function, cases := range map[string]map[string]string{
		"numbers": {"i8 + 1": "-7", "u64": "18446744073709551615", "f64b / 4": "250000", "hue": "blue (2)", "b && yes": "1", "i == 7": "1"},
		"strings": {"short": `"short"`, "short[1]": "104", "*pointer": `"short"`, "list[1]": `"second which is a longer one"`, "array[2]": `"c"`, "more[0]": `"an argument"`},
		"slices": {
			"some[2]": "3", "points[1].X": "3", "pointers[0].Y": "6", "nested[2][1]": "3", "anything[5].X": "6", "grid[1][2]": "6", "toSlice[1]": "2",
			"toArray[4]": "5", "errs[2].Why": `"third"`, "many[99]": "9801", "structs[1].Name": `"two"`, "&some[1] == &toSlice[1]": "1",
		},
		"maps": {
			`one["one"]`: "1", "few[2]": `"b"`, `ofStructs["b"].Name`: `"seven"`, `ofMaps["outer"]["inner"]`: "1", `ofPointers["p"].X`: "8", `ofAny["k"]`: "interface {}(int) 1",
			`own["t"][0]`: "1", "many[39]": "-39", "huge[999]": `"v"`, "wideValue[1][0]": "2", `toMap["one"]`: "1", `set["member"]`: "main.empty {}",
		},
		"structures": {
			"d.Tags[0]": `"t"`, "d.base.Name": `"base"`, "d.Name": `"base"`, "d.X": "1", "d.Y + 1": "3", "cycle.Left.Left.Value": "1", "tree.Right.Right.Value": "4",
			"ints.Second": `"one"`, "chain.head.next.value": `"last"`, "*inside": `"t"`, "*field": "4", "full.L.data": "12", "anon.B": `"b"`, "(*ppp).X": "1", "n": "5",
		},
		"interfaces":      {"pt.X": "1", "own.Code": "7", "sumPtr.Y": "2", "st.B": "2", "small.data": "9", "(*toErr).s": `"plain"`, "sl.data[1]": "2", "w.I": `"nine"`},
		"closures":        {"add.n": "3", "both.text": `"captured"`, "captured": "10", "method": "main.point.Sum-fm", "ch.qcount": "2", "where.Y": "2"},
		"generics-range1": {"i": "1", "s": `"captured"`, "p.Y": "2"},
		"generic":         {"key": `"captured"`, "value.X": "1", "box.First": `"captured"`, "list[0].Y": "2", `index["captured"].X`: "1", "aString": `"a package's string"`, `main.aMap["two"]`: "2", "aPointer.Y": "4"},
	} {
		e := frames[function]
		if e == nil {
			t.Fatalf("there is no frame of %s", function)
		}
		for expr, want := range cases {
			if v, err := e.Eval(expr, 0); err != nil {
				t.Errorf("%s: %s: %v", function, expr, err)
			} else if got := v.String(); got != want {
				t.Errorf("%s: %s is %s, want %s", function, expr, got, want)
			}
		}
	}
	for expr, want := range map[string]string{
		"none[0]": "no key", "few[9]": "no key", `one["two"]`: "no key", `few.x`: "no member", "*few": "no pointer", `"text"`: "not understood", `one["on`: "not understood",
		"nowhere": "there is no nowhere", `ofPointers["q"].X`: "nil", "one[few]": "no key", "points[0].Z": "no member",
	} {
		if v, err := frames["maps"].Eval(expr, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s and error %v, want %s", expr, v.String(), err, want)
		}
	}
	if _, err := frames["interfaces"].Eval("nilPtr.X", 0); err == nil || !strings.Contains(err.Error(), "nil") {
		t.Errorf("a nil pointer's member: error %v", err)
	}
	if _, err := frames["slices"].Eval("some[3]", 0); err == nil || !strings.Contains(err.Error(), "out of bounds") {
		t.Errorf("an element behind the last: error %v", err)
	}
	if _, err := frames["generics"].Eval("later", 0); err == nil {
		t.Error("a variable is visible before its declaration")
	}
}

// TestGoChildren unfolds values as a debugger's window does.
func TestGoChildren(t *testing.T) {
	frames := goFrames(t)
	for _, c := range []struct{ function, expr, want string }{
		{"slices", "points", "[0]=main.point {X: 1, Y: 2} [1]=main.point {X: 3, Y: 4}"},
		{"slices", "none", ""},
		{"slices", "toSlice", "*toSlice=[]int len: 3, cap: 3, [1,2,3]"},
		{"maps", "one", `["one"]=1`},
		{"maps", "none", ""},
		{"structures", "p", "X=1 Y=2"},
		{"structures", "cycle", "Value=1 Left=*main.node {Value: 1, Left: *main.node {Value: 1, Left: *(*main.node)(N), Right: *main.node nil}, Right: *main.node nil} Right=*main.node nil"},
		{"interfaces", "pt", "data=main.point {X: 1, Y: 2}"},
		{"interfaces", "none", ""},
		{"closures", "both", `where=main.point {X: 1, Y: 2} err=error(*errors.errorString) *{s: "plain"} text="captured"`},
		{"closures", "plain", ""},
		{"strings", "short", ""},
	} {
		v, err := frames[c.function].Eval(c.expr, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, k := range v.Children(0, 0) {
			got = append(got, k.Name+"="+addresses.ReplaceAllString(k.String(), "N"))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s has\n%s, want\n%s", c.expr, s, c.want)
		}
		if named, indexed := v.NumChildren(); named+indexed != len(got) {
			t.Errorf("%s has %d and %d children, and then %d", c.expr, named, indexed, len(got))
		}
	}
	many, err := frames["maps"].Eval("many", 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for start := 0; start < 40; start += 7 {
		for _, k := range many.Children(start, 7) {
			names = append(names, k.Name)
		}
	}
	slices.Sort(names)
	if n := len(slices.Compact(names)); n != 40 {
		t.Errorf("a map of 40 entries has %d in windows of 7", n)
	}
	v, err := frames["structures"].Eval("d", 0)
	if err != nil {
		t.Fatal(err)
	}
	if s := v.Type().String(); s != "main.derived" || v.IsPointer() || v.Size() <= 0 {
		t.Errorf("the type is %s of %d bytes", s, v.Size())
	}
	if v, err = frames["structures"].Eval("&d", 0); err != nil || v.Type().String() != "*main.derived" || !v.IsPointer() {
		t.Errorf("its address is a %s, error %v", v.Type(), err)
	}
}

// FuzzGoVariables looks at every variable of a Go program whose file and memory are
// damaged.
func FuzzGoVariables(f *testing.F) {
	dir := goStopped(f, false, "-gcflags=-N -l", "-ldflags=-compressdwarf=false")
	whole, image := openStopped(f, dir)
	file, err := os.ReadFile(filepath.Join(dir, "prog"))
	if err != nil {
		f.Fatal(err)
	}
	parsed, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		f.Fatal(err)
	}
	info, stack := parsed.Section(".debug_info"), image.regs.V[RSP]
	for i := range 16 {
		f.Add(uint32(i)*uint32(info.Size/16), []byte{1, 2, 3}, uint16(i*100), []byte{})
		f.Add(uint32(0), []byte{}, uint16(i*50), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	}
	f.Fuzz(func(_ *testing.T, at uint32, patch []byte, off uint16, memory []byte) {
		m := whole
		if len(patch) > 0 {
			damaged := append([]byte(nil), file...)
			copy(damaged[info.Offset+uint64(at)%info.Size:], patch)
			var err error
			if m, err = Open(damaged, nil); err != nil {
				return
			}
		}
		written := &goImage{regs: image.regs, xmm: image.xmm, regions: append([]region{{stack + uint64(off), memory}}, image.regions...)}
		for _, e := range written.envs(m) {
			for i, s := range e.Scopes() {
				for _, v := range append(s.Arguments(), s.Locals()...) {
					_, _ = v.String(), v.Type().String()
					for _, c := range v.Children(0, 5) {
						_ = c.String()
						c.Children(0, 2)
					}
					_, _ = e.Eval(v.Name+"[0].X", i)
				}
			}
		}
	})
}
