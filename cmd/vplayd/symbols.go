package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"vplay/checkpoint"
	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/loader"
	"vplay/loader/image"
)

// The flags that say where symbol files are looked for, for all verbs that have them,
// and what a sandbox must leave for that. The search is in package loader/image.

// symbolFlags say where symbol files are looked for.
type symbolFlags struct {
	dirs    []string
	noLocal bool
}

const noLocalFiles = "no-local-files"

func (f *symbolFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.dirs, "symbols", nil, "`FOLDER` with symbol files, found by build-id (may be repeated)")
	c.Flags().BoolVar(&f.noLocal, noLocalFiles, false, "do not use this machine's files at the recorded paths and in /usr/lib/debug, which are used when their build-id is the recorded one")
}

// open returns the finder. A folder that is not there is wrong use.
func (f *symbolFlags) open() (*image.Symbols, error) {
	for _, dir := range f.dirs {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return nil, usageError{withHint(fmt.Errorf("--symbols %s is not a folder", dir), exitUsage, "it is searched for ELF and .debug files by build-id")}
		}
	}
	return loader.NewSymbols(f.dirs, !f.noLocal), nil
}

// access is what a sandbox leaves to who looks for symbol files of a recording.
func (f *symbolFlags) access(s *image.Symbols, rec *checkpoint.Recording) sandbox.Access {
	return sandbox.Access{Read: append(s.Files(rec.Objects()), f.dirs...)}
}
