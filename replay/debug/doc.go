// Package debug is the debugger on a recording: a [Session] is an open recording, and a
// [Cursor] on it the process at one position, which moves both ways, answers queries about
// the past, and makes diversions that may be changed. [Inferiors] are all processes of a
// recording. It speaks no protocol and prints nothing but the answers of the monitor
// commands: servers of protocols are front ends of it, by the interfaces of package
// api.
package debug
