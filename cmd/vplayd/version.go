package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
)

// The verb version, and what this binary was built from.

// vplayVersion is the version of this source (https://semver.org), the first in
// CHANGELOG.md.
const vplayVersion = "0.1.0"

// build says what a vplayd was made from.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"` // where git was asked when it was built
	Modified bool   `json:"modified"`         // the source was not that commit's
	Go       string `json:"go"`
	System   string `json:"system"`
	Format   int    `json:"format"` // of the recordings that it writes
}

// thisBuild describes the running binary.
func thisBuild() build {
	b := build{Version: vplayVersion, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Format: checkpoint.FormatVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String implements fmt.Stringer.
func (b build) String() string {
	from := ""
	if b.Commit != "" {
		from = " (" + b.Commit[:min(12, len(b.Commit))]
		if b.Modified {
			from += ", modified"
		}
		from += ")"
	}
	return fmt.Sprintf("%s%s, recording format %d, %s, %s", b.Version, from, b.Format, b.Go, b.System)
}

func newVersion() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Long: `Version prints the version of vplayd, the commit it was built from where that is
known, the newest version of the recording format that it writes, that of Go, and
the system it was built for.`,
		Example: "  vplayd version\n  vplayd version --json",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return printVersion(c.OutOrStdout(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}

func printVersion(out io.Writer, asJSON bool) error {
	if asJSON {
		return encodeLine(out, thisBuild())
	}
	_, err := fmt.Fprintln(out, "vplayd", thisBuild())
	return err
}
