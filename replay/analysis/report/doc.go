// Package report writes an HTML page about one moment of a recording, by default its end, for a
// bug tracker: what happened there, source and disassembly, the calls with their variables, the
// slice of the crash, the memory concerned and who wrote it, the threads over time, the last
// calls and events, registers and modules.
//
// [Write] asks a debug.Cursor, as a debugger would, and puts the answers into a template. What
// cannot be answered is said on the page in its place; the page is written all the same. Each
// question to the past has a bound in time.
//
// The page is one file. It has no script and no address of anything outside; its policy
// (Content-Security-Policy) allows the browser nothing but the style sheet inside, which it
// knows by hash. Names and memory of a recording are hostile: each text goes through a clipper,
// which escapes what is no plain text and shortens it, and then through html/template. All lists
// are bounded, and so is the text as a whole, which bounds the size of the page.
//
// It holds arguments and memory of the program, with whatever secrets are there, but not its
// environment, as far as that is not in the memory shown.
package report
