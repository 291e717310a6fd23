// Command overhead measures what recording costs: programs and servers run natively,
// under vplayd record with and without the agent, and under strace, in alternation.
//
//	go run ./tests/bench/overhead [flags]     (just overhead)
//
// Each row of the table is a program or a server. A program is run to its end, and its unit
// is the run. Of a server the processor time of the server's side is taken
// while a client, which is never recorded, asks it for something, and its unit is the
// request. Processor time is the user and system time of all processes that
// the command has led to: package vplay/tests/bench/meter says how, and what is not
// counted. Recording is "vplayd record --keep crash": nothing is written, for nothing crashes.
//
// A ratio is the median, over the rounds, of the processor time beside that of the same
// round natively. The machine may be slow for a while, and then it is for both. The least
// of all rounds stands beside it: other processes can only add. A row that is wanted below
// a bound has met it when the median has. The column rr.soft holds what an rr without
// performance counters was measured at elsewhere: quoted, not measured here.
//
// Programs must print the same in every way of running, and end with the same exit code.
package main
