package jit

// What an engine tells of its work; on every host, for those who report it.

// Fault is a place where generated code faulted: a guest address, and the bytes of the
// instruction there.
type Fault struct {
	PC    uint64
	Bytes []byte
}

// Stats counts, since the engine was made: units translated, their instructions, bytes of code, and
// ways out of generated code by kind.
type Stats struct {
	Units, Instructions, Bytes uint64
	Handled, Edges, Others     uint64
	Resets                     uint64
	Bad                        uint64 // units not translated because of a mistake about flags
	Raised                     uint64 // floating-point exceptions
	Direct                     uint64 // accesses that faulted because a page was not in its window (windows.go)
	Refused                    uint64 // and could not be mapped
}
