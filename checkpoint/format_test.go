package checkpoint

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the files that tests compare with")

// golden compares text with a file, or writes it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := string(must(os.ReadFile(path))); got != want {
		t.Errorf("%s is not what the code says (go test -run %s -update writes it):\n%s", path, t.Name(), got)
	}
}

// TestFormatDocument compares the event table of FORMAT.md with spec.go.
func TestFormatDocument(t *testing.T) {
	const begin, end = "-update -->\n", "<!-- end events -->"
	doc := string(must(os.ReadFile("FORMAT.md")))
	head, rest, ok := strings.Cut(doc, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("FORMAT.md has no place for the event table")
	}
	var s strings.Builder
	s.WriteString("| kind | name | required fields | optional fields |\n|---|---|---|---|\n")
	fields := func(ids []fieldID) string {
		var list []string
		for _, id := range ids {
			list = append(list, fmt.Sprintf("%s: %s", eventFields[id].name, fieldCodecs[eventFields[id].typ].name))
		}
		return strings.Join(list, ", ")
	}
	for k := EventEnter; k <= lastEvent; k++ {
		fmt.Fprintf(&s, "| %d | %s | %s | %s |\n", k, k, fields(k.spec().required), fields(k.spec().optional))
	}
	golden(t, "FORMAT.md", head+begin+s.String()+end+tail)
}

// TestGoldenRecording reads a file that each version of the format has written once and
// for all: whoever changes the format by accident learns it here.
func TestGoldenRecording(t *testing.T) {
	for version := 1; version <= FormatVersion; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) { goldenRecording(t, version) })
	}
}

func goldenRecording(t *testing.T, version int) {
	path := filepath.Join("testdata", fmt.Sprintf("v%d.vplay", version))
	if *update && version == FormatVersion {
		if _, err := os.Stat(path); err != nil {
			writeRandom(t, path, 42, 12, 3)
		}
	}
	r := open(t, path)
	var s strings.Builder
	m := *r.Manifest()
	fmt.Fprintf(&s, "manifest: %+v\n", m)
	for _, o := range r.Objects() {
		fmt.Fprintf(&s, "object: %+q\n", fmt.Sprint(o))
	}
	for p := range r.ObjectPages() {
		fmt.Fprintf(&s, "object page: %d %d %d %x\n", p.Object, p.Index, p.Ref.Kind, p.Ref.Hash)
	}
	for _, in := range r.Intervals() {
		iv := must(r.Interval(in.ID))
		if err := WriteText(&s, iv, TextOptions{Full: true}); err != nil {
			t.Fatal(err)
		}
		for _, x := range append(iv.Start, iv.End.Contexts...) {
			fmt.Fprintf(&s, "  context %+v\n", x)
		}
		for _, e := range must(r.PageTable(in.ID)) {
			fmt.Fprintf(&s, "  page %x %d %x\n", e.Addr, e.Ref.Kind, e.Ref.Hash)
		}
		for _, e := range iv.End.Pages {
			fmt.Fprintf(&s, "  end page %x %d %x\n", e.Addr, e.Ref.Kind, e.Ref.Hash)
		}
	}
	fmt.Fprintf(&s, "final: %+v\n", *must(r.Final()))
	for i := range r.store.records {
		var page [PageSize]byte
		mask, err := r.Page(r.store.records[i].ref, &page)
		fmt.Fprintf(&s, "stored: %x %v %v\n", cutHash(page[:]), mask != nil, err)
	}
	golden(t, filepath.Join("testdata", fmt.Sprintf("v%d.txt", version)), s.String())
}
