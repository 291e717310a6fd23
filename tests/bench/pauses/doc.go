// Command pauses measures what recording costs a server with much memory: how long the
// program stands still at the borders between intervals, what its clients see of that,
// and how much memory the recorder takes.
//
//	go run ./tests/bench/pauses [flags]     (just pauses)
//
// The server is redis-server. It is filled up to a size (--size), and then 20 clients
// write as fast as they are answered (--seconds), natively and under vplayd record at its
// defaults. The pauses are those that the recorder itself measures, by the wall, from the
// beginning of a border to its end; its log has a line for each (VPLAY_LOG=record=debug). What the border
// costs afterwards, when the program writes to pages that it shares with a stopped copy of itself, is in
// the latencies and in the processor time of a request, which is measured as overhead measures it.
//
// Memory is the sum of PSS (smaps_rollup of man 5 proc), with which a page that n processes
// share counts 1/n for each. The sum over the server, its stopped copies (shadows), vplayd and the
// guardian, beside the server's own natively, is what recording takes.
package main
