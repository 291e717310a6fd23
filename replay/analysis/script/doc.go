// Package script runs scripts over recordings: programs in Starlark (go.starlark.net) that are
// called back at calls, returns, lines, system calls, signals and accesses of the recorded
// program, read its variables there, and print.
//
// A script is loaded once for each recording. While it is loaded it says what it
// wants to be called for (on_call and the like); then the recording is replayed by package observe, and its
// functions are called in the order of execution, one at a time, each with a [moment]: the state
// of the program then. Its global lists and dictionaries keep what it puts there from one call to the next.
//
// Scripts cannot reach the machine that they run on: there is no file, no network, no clock, no
// other module to load; what they print is all that leaves them. Steps, time and memory have
// limits. Recordings are not trusted: what a script is handed is bounded.
//
// The scripts of the folder library are part of the program, and are named without a folder.
package script
