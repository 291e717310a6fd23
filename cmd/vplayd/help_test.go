package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelpWidth bounds the lines of the help texts: they are broken by hand, for terminals
// of common width.
func TestHelpWidth(t *testing.T) {
	const width = 90
	texts := 0
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		for line := range strings.SplitSeq(c.Long, "\n") {
			if len(line) > width {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), len(line), line)
			}
		}
		texts += len(c.Long)
		if strings.Contains(c.Flags().FlagUsages(), "(default: )") {
			t.Errorf("%s: a flag has an empty default", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(newRoot(io.Discard))
	if texts < 10_000 {
		t.Errorf("%d bytes of help in all", texts)
	}
}
