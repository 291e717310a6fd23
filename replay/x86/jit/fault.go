package jit

// What is known of a mistake of the translator; on every host, for those who report it.

// Fault is a place where generated code faulted: a guest address, and the bytes of the
// instruction there.
type Fault struct {
	PC    uint64
	Bytes []byte
}
