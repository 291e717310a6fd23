// Package ptrace makes the requests of ptrace(2), and the waits and the reads of
// /proc/PID/mem that go with them, for the recorder and for the lockstep verifier.
//
// Package syscall and x/sys/unix have some of the requests, each with a system call
// that tells Go's scheduler. A tracer makes millions of them and none can block, so they
// are raw here. Which thread may make them is not this package's business: the caller
// stays on the thread that attached.
//
// Only the calls are here. What a stop means, how a program is borrowed for a system
// call, and when it may be resumed is for the callers. The package needs linux/amd64;
// elsewhere it is empty.
package ptrace
