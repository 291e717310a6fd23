//go:build !linux

package checkpoint

// Memory for the events of an interval, where the system is not asked for large pages.

// makeEvents returns n events, which are all zeros.
func makeEvents(n int) []Event { return make([]Event, n) }
