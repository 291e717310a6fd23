// Package record tests the recorder and replay together, on programs that run
// on this machine's kernel.
//
// The problem. Whether a recording is right shows only when it is replayed, and
// what goes wrong is what no unit test thinks of: a signal between two
// instructions, a call that writes where its description does not say. The
// idea: run small guests, each made around one such effect (tests/guest/record),
// and real programs, natively and recorded; their output, exit code or killing
// signal must be the same, and every interval must replay exactly (every
// register hash, the end, every page written). The same is done at short
// intervals, whose boundaries are in other places.
//
//   - TestGuests: the awkward effects, one guest each.
//   - TestRealPrograms: bc, gzip, xz, sqlite3, awk, perl, python3, bash, grep,
//     date, sleep, and a static program, whole; some killed in their work.
//   - TestTransparency: bash scripts with jobs and traps, and python3's own
//     tests, recorded and native.
//   - TestForcedEnds: intervals that end at an arbitrary instruction.
//   - The test main prints which rows of the system call table the recordings
//     of a run had, with -v.
//
// The test binary is its own launcher and recorder, so nothing has to be built
// before. Programs that the machine lacks are named and left out.
package record
