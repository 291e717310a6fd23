//go:build !linux

package checkpoint

// makeEvents returns n events, which are all zeros.
func makeEvents(n int) []Event { return make([]Event, n) }
