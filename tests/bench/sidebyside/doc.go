// Command sidebyside runs the same programs on this CPU, in qemu-x86_64 (user
// mode), and in vplay's replay, and prints one table: processor time, slow-down
// beside the CPU, and instructions a second.
//
//	go run ./tests/bench/sidebyside [flags]     (just side-by-side)
//
// All three are measured alike: the user and system time of a child process, in
// alternation, the median of the rounds. For vplay that is all of
// "vplayd verify -j 1" on a recording made once: reading it, replay, the
// comparison of every page at the end, and Go's garbage collector. A recording
// that does not replay exactly, or a program whose output differs in qemu, ends
// the run.
//
// The kernels are kernels/*.c, compiled with gcc -O2 (packed.c with -O3, for SSE2
// and for AVX2); matmul also without vectorization, which gcc does at -O2. The programs are this machine's. Each runs for 0.15 to 0.5 s, so
// that start-up does not count.
package main
