//go:build !race

package tool

var raceFlags, raceEnv = []string(nil), []string{"CGO_ENABLED=0"}

// Race says whether the tests look for data races, which makes them slow.
const Race = false
