// Package api has what a debugger says and is asked, in no protocol's terms: stops,
// resumes, breakpoints, registers, threads, libraries, symbols. The servers of
// protocols (gdbstub, gdbstub/dap) ask a [Target] and know nothing below it, so that
// each is tested against a fake; package debug implements it for recordings.
//
// It imports no other package of vplay, and holds no behaviour.
package api
