//go:build race

package tool

// How the command is built for tests that run with the race detector; norace.go is for
// the others.

// raceFlags make the command look for data races where the tests do. The race
// detector is C.
var raceFlags, raceEnv = []string{"-race"}, []string{"CGO_ENABLED=1"}

// Race says whether the tests look for data races, which makes them slow.
const Race = true
