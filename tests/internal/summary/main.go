// Command summary reads what go test -json prints (go doc test2json) on standard
// input and prints what go test would have printed without -json. After that it
// names the CPU, which is the oracle of many tests, and lists the tests that were
// skipped, with the reason of each: go test by itself says neither, and a skipped
// test must not pass for one that ran.
//
// With -v it prints the output of every test, as go test -v. It exits with 0;
// whether the tests passed is the exit code of go test.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"vplay/tests/need"
)

func main() {
	verbose := flag.Bool("v", false, "print the output of every test")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, need.CPUName(), *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(1)
	}
}

// event is a line of go test -json (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string // "" for what belongs to the package
	Output  string
}

// test names a test or, when its name is "", its package's own output.
type test struct{ pkg, name string }

type summary struct {
	out     *bufio.Writer
	verbose bool
	held    map[test][]string // output of tests that may still pass
	skipped map[string][]string
	pkgs    []string // of skipped, in order
}

func run(in io.Reader, out io.Writer, cpu string, verbose bool) error {
	s := &summary{out: bufio.NewWriter(out), verbose: verbose, held: map[test][]string{}, skipped: map[string][]string{}}
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			s.line(line)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	s.print("CPU: " + cpu + "\n")
	s.list()
	return s.out.Flush()
}

// line takes one line; what is no event is printed as it is.
func (s *summary) line(line string) {
	var e event
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		s.print(line)
		return
	}
	switch id := (test{e.Package, e.Test}); e.Action {
	case "output", "build-output":
		s.output(id, e.Output)
	case "pass":
		delete(s.held, id)
	case "skip":
		s.skip(id)
	case "fail":
		s.fail(id)
	}
}

func (s *summary) output(id test, text string) {
	switch {
	case s.verbose:
		s.print(text)
	case id.name == "" && text != "PASS\n":
		s.print(text)
	}
	if id.name != "" {
		s.held[id] = append(s.held[id], text)
	}
}

// fail prints what a test printed; for a package, what those of its tests did
// that never ended: it was killed.
func (s *summary) fail(id test) {
	for _, h := range s.ended(id) {
		for _, text := range s.held[h] {
			if !s.verbose && !isProgress(text) {
				s.print(text)
			}
		}
		delete(s.held, h)
	}
	_ = s.out.Flush() // its error stays and comes again at the end
}

func (s *summary) ended(id test) []test {
	if id.name != "" {
		return []test{id}
	}
	var list []test
	for h := range s.held {
		if h.pkg == id.pkg {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b test) int { return strings.Compare(a.name, b.name) })
	return list
}

// skip notes a test and its reason. A package without tests is skipped, too, and
// has printed that itself.
func (s *summary) skip(id test) {
	text := s.held[id]
	delete(s.held, id)
	if id.name == "" {
		return
	}
	if s.skipped[id.pkg] == nil {
		s.pkgs = append(s.pkgs, id.pkg)
	}
	s.skipped[id.pkg] = append(s.skipped[id.pkg], id.name+": "+reason(text))
}

func (s *summary) list() {
	n := 0
	for _, list := range s.skipped {
		n += len(list)
	}
	if n == 0 {
		s.print("skipped tests: none\n")
		return
	}
	s.print(fmt.Sprintf("skipped tests: %d\n", n))
	slices.Sort(s.pkgs)
	for _, p := range s.pkgs {
		for _, l := range s.skipped[p] {
			s.print("  " + p + " " + l + "\n")
		}
	}
}

func (s *summary) print(text string) {
	_, _ = s.out.WriteString(text) // its error stays and comes again with Flush
	if strings.HasPrefix(text, "ok ") || strings.HasPrefix(text, "FAIL") || strings.HasPrefix(text, "?") {
		_ = s.out.Flush()
	}
}

// isProgress says whether a line is one that only go test -v prints.
func isProgress(line string) bool {
	return strings.HasPrefix(line, "=== ")
}

// place is where a message was printed: "    need.go:12: ".
var place = regexp.MustCompile(`^ *[\w.-]+\.(?:go|txtar):\d+: `)

// reason returns what a skipped test said: the first line of its output that is
// not go test's, without the place in the source.
func reason(text []string) string {
	found := "no reason given"
	for _, l := range text {
		t := strings.TrimSpace(l)
		if isProgress(l) || t == "" || strings.HasPrefix(t, "--- ") {
			continue
		}
		found = strings.TrimSpace(place.ReplaceAllString(l, ""))
		if strings.Contains(found, "needs ") {
			return found
		}
	}
	return found
}
