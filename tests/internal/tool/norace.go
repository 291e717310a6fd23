//go:build !race

package tool

// How the command is built for tests that run without the race detector; race.go is for
// the others.

var raceFlags, raceEnv = []string(nil), shippedEnv

// Race says whether the tests look for data races, which makes them slow.
const Race = false
