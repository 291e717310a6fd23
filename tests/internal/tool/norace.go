//go:build !race

package tool

var raceFlags, raceEnv = []string(nil), []string{"CGO_ENABLED=0"}
