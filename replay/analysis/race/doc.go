// Package race finds data races by happens-before: two accesses to the same byte by two threads, one of them a
// store, with no synchronisation between them that orders one before the other.
//
// A [Detector] is fed with what happened in a process, in the order of execution: accesses to
// memory, and synchronisation ([Detector.Acquire], [Detector.Release], [Detector.Fork], [Detector.Join]). Each thread has
// a vector clock (Lamport, Mattern), each access is kept with its thread and that thread's clock, as
// FastTrack does (Flanagan and Freund, PLDI 2009), and an access is ordered behind another one where
// its thread's vector clock has reached that clock.
//
// An instruction with the bus locked (LOCK prefix, XCHG with memory) makes the bytes it accesses
// an atomic variable: from then on each load of them acquires, and each store
// releases, what else was done before. That is how programs without a threads library
// synchronise, and what the C11 and C++11 atomics are compiled to.
//
// The package knows nothing of recordings or of libraries. What can go wrong is
// chosen to go one way: where it does not know, it orders, so that it misses a race and does not invent one.
package race
