package main

import (
	"os"
	"strings"
	"testing"
)

// testdata/events.json is what go test -json said of a package with a skipped
// and a failed subtest, one whose test called os.Exit, and one that did not build.
func TestSummary(t *testing.T) {
	for _, c := range []struct {
		verbose bool
		want    string
	}{
		{false, "testdata/events.want"},
		{true, "testdata/events.verbose.want"},
	} {
		in, err := os.Open("testdata/events.json")
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		want, err := os.ReadFile(c.want)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		if err := run(in, &got, "some CPU", c.verbose); err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s: got\n%swant\n%s", c.want, got.String(), want)
		}
	}
}

func TestNothingSkipped(t *testing.T) {
	var got strings.Builder
	if err := run(strings.NewReader("go: a line that is no event\n"), &got, "some CPU", false); err != nil {
		t.Fatal(err)
	}
	if want := "go: a line that is no event\nCPU: some CPU\nskipped tests: none\n"; got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
}
