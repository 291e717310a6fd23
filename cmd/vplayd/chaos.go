package main

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The flags of record that look for races. Running the program again and again is in
// chaos_linux_amd64.go, and what chaos does in package checkpoint/record.

// chaosFlags are the flags.
type chaosFlags struct {
	on    bool
	seed  uint64
	tries int
}

func (f *chaosFlags) add(fs *pflag.FlagSet) {
	fs.BoolVar(&f.on, "chaos", false, "schedule threads at random, to provoke races")
	fs.Uint64Var(&f.seed, "chaos-seed", 0, "the `SEED` of --chaos (default: a random one)")
	fs.IntVar(&f.tries, "tries", 1, "run the program until it crashes, `N` times at most")
}

// check completes the flags: a seed alone asks for chaos, and chaos without one for a random
// one, short enough to be typed.
func (f *chaosFlags) check(c *cobra.Command) error {
	if f.tries < 1 {
		return usageError{withHint(fmt.Errorf("--tries %d", f.tries), exitUsage, "--tries takes 1 or more")}
	}
	switch {
	case !c.Flags().Changed("chaos-seed"):
		f.seed = uint64(rand.Uint32())
	case c.Flags().Changed("chaos") && !f.on:
		return usageError{withHint(errors.New("--chaos-seed without --chaos"), exitUsage, "leave --chaos=false out")}
	default:
		f.on = true
	}
	return nil
}

// say says the seed, before the program runs.
func (f *chaosFlags) say(quiet bool) {
	if f.on && !quiet {
		fmt.Fprintf(stderr, "vplayd: chaos, seed %d\n", f.seed)
	}
}
