// Package e2e holds the tests that go the whole way on programs compiled from
// tests/guest: record, take the program's files away, replay, and ask a real gdb,
// or the timeline itself, what happened. Where a guest has a line that is the
// answer it is marked "CULPRIT", so that no test knows a line number.
package e2e
