package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vplay/tests/need"
)

// showMembers makes gdb print each member of a variable on a line, as it shows it in a
// list of variables.
const showMembers = `python
import gdb
v = gdb.parse_and_eval("VARIABLE")
for f in v.type.fields():
    print("@" + f.name + "=" + v[f.name].format_string(static_members=False))
end`

// startContainers records the containers as they are compiled with flags, and returns a
// client of a server of the recording, and the members of all as gdb prints them.
func startContainers(t *testing.T, flags ...string) (c *dapClient, gdbSays map[string]string) {
	t.Helper()
	scripts, err := filepath.Glob("/usr/share/gdb/auto-load/usr/lib/*/libstdc++.so.6*-gdb.py")
	need.Installed(t, "the gdb script of libstdc++", err == nil && len(scripts) > 0)
	g := compile(t, "containers", flags...)
	rec := g.record(t)
	script := filepath.Join(g.dir, "show")
	if err := os.WriteFile(script, []byte(strings.ReplaceAll(showMembers, "VARIABLE", "all")), 0o600); err != nil {
		t.Fatal(err)
	}
	out := gdb(t, serve(t, rec, "--symbols", g.dir+"/symbols"), loadCommands, "set print frame-arguments all", "source "+script)
	gdbSays = map[string]string{}
	for line := range strings.Lines(out) {
		if name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "@"), "="); ok && line[0] == '@' {
			gdbSays[name] = value
		}
	}
	c = dialDAP(t, serve(t, rec, "--dap", "--symbols", g.dir+"/symbols"))
	c.wants("the crash", c.connect(), "exception ")
	return c, gdbSays
}

// frameOf returns the number of the frame of a function.
func (c *dapClient) frameOf(function string) int {
	c.t.Helper()
	for i, f := range c.frames() {
		if f["name"] == function {
			return i
		}
	}
	c.t.Fatalf("%s is not on the stack", function)
	return 0
}

// children returns what a variable or expression can be unfolded into, in order.
func (c *dapClient) children(v map[string]any) (out []map[string]any) {
	c.t.Helper()
	if ref, _ := v["variablesReference"].(float64); ref == 0 {
		return nil
	}
	for _, k := range c.do("variables", map[string]any{"variablesReference": v["variablesReference"], "count": 20})["variables"].([]any) {
		out = append(out, k.(map[string]any))
	}
	return out
}

// TestContainers compares what editors are shown of the classes of the C++ library with
// what gdb prints with the library's own pretty printers, of the same recording.
func TestContainers(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"C++98, the older ABI": {"-O0", "-std=c++98", "-D_GLIBCXX_USE_CXX11_ABI=0"},
		"C++14, DWARF 4":       {"-O1", "-std=c++14", "-gdwarf-4"},
		"C++17, older ABI":     {"-O0", "-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=0"},
		"C++17, debug mode":    {"-O0", "-std=c++17", "-D_GLIBCXX_DEBUG"},
		"C++20, optimized":     {"-O2", "-std=c++20"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, gdbSays := startContainers(t, flags...)
			main := c.frames()[c.frameOf("main")]["id"]
			all := c.do("evaluate", map[string]any{"expression": "all", "frameId": main, "context": "watch"})
			members := c.variables(all["variablesReference"])
			if len(members) != len(gdbSays) || len(members) < 30 {
				t.Fatalf("%d members, gdb has %d", len(members), len(gdbSays))
			}
			for name, v := range members {
				if name == "beyond_ascii" {
					gdbSays[name] = `"é \303"`
				}
				if got := v["value"].(string); got != gdbSays[name] {
					t.Errorf("%s is\n%s\ngdb says\n%s", name, got, gdbSays[name])
				}
			}
			for name, v := range members {
				c.evaluatesTo(main, name, v, 3)
			}
		})
	}
}

// evaluatesTo checks that the expression of a variable, and those of what is in it, have
// the value that is shown.
func (c *dapClient) evaluatesTo(frame any, name string, v map[string]any, depth int) {
	c.t.Helper()
	isBase := strings.Contains(v["name"].(string), "::") && v["name"].(string)[0] != '[' // its expression is the object's
	if expr, _ := v["evaluateName"].(string); expr != "" && !isBase {
		body, fault := c.try("evaluate", map[string]any{"expression": expr, "frameId": frame, "context": "watch"})
		if got, _ := body["result"].(string); got != v["value"] {
			c.t.Errorf("%s in %s is %v, %s is %s%s", v["name"], name, v["value"], expr, got, fault)
		}
	}
	if depth == 0 {
		return
	}
	for i, k := range c.children(v) {
		if i < 3 {
			c.evaluatesTo(frame, name, k, depth-1)
		}
	}
}

// TestContainerChildren unfolds containers, and asks in expressions for what is in them.
func TestContainerChildren(t *testing.T) {
	t.Parallel()
	c, _ := startContainers(t, "-O0", "-std=c++20")
	main := c.frameOf("main")
	for expr, want := range map[string]string{
		"all.parts":        `[0]={number = 7, name = "seven"} [1]={number = 8, name = "eight"}`,
		"all.sorted":       `["one"]=1 ["three"]=3 ["two"]=2`,
		"all.padded":       `[112 'p']={c = 97 'a', number = 0.5} [113 'q']={c = 98 'b', number = 1.5} [114 'r']={c = 99 'c', number = 2.5} [115 's']={c = 100 'd', number = 3.5}`,
		"all.hashed_text":  `["wide"]={c = 119 'w', number = 2.5}`,
		"all.deep":         `[0]={number = 8, name = "eight"} [1]={number = 7, name = "seven"}`,
		"all.words":        `[0]="a" [1]="b"`,
		"all.couple":       `first=1 second="one"`,
		"all.some":         `[contained value]=5`,
		"all.second":       `[contained value]="second"`,
		"all.values":       `[1]=1 [2]="two" [3]={<No data fields>} [4]=3.5`,
		"all.no_int":       ``,
		"all.outside":      ``,
		"all.iterator":     ``,
		"*all.unique":      `number=9 name="nine"`,
		"all.nested":       `[3]=std::vector of length 2, capacity 2 = {"three", "drei"} [4]=std::vector of length 0, capacity 0`,
		"all.window":       `[0]=1 [1]=4`,
		"&all.numbers":     `[0]=0 [1]=1 [2]=4 [3]=9`,
		"all.parts.size()": ``,
		"all.some_numbers": `[0]=1 [1]=2`,
	} {
		body := c.do("evaluate", map[string]any{"expression": expr, "frameId": c.frames()[main]["id"], "context": "watch"})
		var got []string
		for _, k := range c.children(body) {
			got = append(got, k["name"].(string)+"="+k["value"].(string))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s has\n%s\nwant\n%s", expr, text, want)
		}
	}
	for expr, want := range map[string]string{
		"all.parts[1].name":               `"eight"`,
		"all.names.size()":                "2",
		"all.outside.length() == 43":      "1",
		"all.nothing.empty()":             "1",
		"all.shared->number":              "10",
		"all.shared.get()->number":        "10",
		"(*all.unique).name":              `"nine"`,
		"all.iterator":                    "4",
		"all.entry->second":               "2",
		"*all.some + 1":                   "6",
		"all.queue.back()":                "299",
		"all.numbers[4]":                  "error: 4 is no index: there are 4 elements",
		"all.numbers._M_impl._M_start[3]": "9",
		"all.gone->number":                "<error: nothing is mapped",
		"local":                           `@0x`,
	} {
		if got := c.eval(main, expr); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s", expr, got, want)
		}
	}
	// Pages of a long one, and a data breakpoint on an element.
	body := c.do("evaluate", map[string]any{"expression": "all.reverse", "frameId": c.frames()[main]["id"], "context": "watch"})
	if n := body["indexedVariables"].(float64); n != 300 {
		t.Errorf("reverse has %v children, want 300", n)
	}
	page := c.do("variables", map[string]any{"variablesReference": body["variablesReference"], "start": 298, "count": 5})["variables"].([]any)
	if text, _ := json.Marshal(page); len(page) != 2 || !strings.Contains(string(text), `"[299]"`) {
		t.Errorf("the last page is %s", text)
	}
	info := c.do("dataBreakpointInfo", map[string]any{"name": "[299]", "variablesReference": body["variablesReference"]})
	if id, _ := info["dataId"].(string); id == "" {
		t.Errorf("a value of a map cannot be watched: %v", info)
	}
}

// TestBrokenContainers looks at containers whose memory makes no sense: nothing is
// followed without end, and what can be seen is shown.
func TestBrokenContainers(t *testing.T) {
	t.Parallel()
	c, _ := startContainers(t, "-O0", "-std=c++17")
	main := c.frameOf("main")
	body := c.do("evaluate", map[string]any{"expression": "*broken", "frameId": c.frames()[main]["id"], "context": "watch"})
	for name, want := range map[string]string{
		"backwards":    `^\{<std::_Vector_base<.*_M_finish = 0x0`,
		"endless":      `^std::vector of length \d{10,}, capacity \d+ = \{1, 2, 3, .*\.\.\.\}$`,
		"nowhere":      `^<error: nothing is mapped at 0x123456000`,
		"endless_text": `^"text`,
		"ring":         `^std::__cxx11::list = \{\[0\] = 1, \[1\] = 1, .*\.\.\.\}$`,
		"forever":      `^std::forward_list = \{\[0\] = 7, \[1\] = 7, .*\.\.\.\}$`,
		"loop":         `^std::map with 500000 elements = \{\[1\] = 2, `,
		"cut":          `^std::map with 2 elements = \{\[1\] = 2, \[\d\] = <error: nothing is mapped`,
		"knot":         `^std::unordered_map with 3 elements = \{\[1\] = 2, \[\d\] = <error: nothing is mapped`,
		"hole":         `^std::deque with 3 elements = \{<error: nothing is mapped`,
		"neither":      `^\{<`,
		"strange":      `^\{<`,
		"uncounted":    `^\{<`,
	} {
		v := c.variables(body["variablesReference"])[name]
		got, _ := v["value"].(string)
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s is %.300s, want %s", name, got, want)
		}
		if len(got) > 1<<15 {
			t.Errorf("%s is written in %d bytes", name, len(got))
		}
		c.children(v)
	}
}
