package main

import (
	"fmt"
	"strings"

	"vplay/replay/analysis/export"
)

// The manual of the verb export.

// exportHelp is the description of the verb export, with the formats as package export has them.
func exportHelp() string {
	var list strings.Builder
	for _, f := range export.Formats {
		fmt.Fprintf(&list, "  %-10s  %s\n", f.Name, f.About)
	}
	return fmt.Sprintf(exportText, list.String())
}

const exportText = `Export writes what a recording executed in the format of another tool. Everything was
executed again for it, so that counts are exact: instructions by source line and by the
calls that led there, calls, bytes allocated.

%s
Calls are followed through signals, longjmp, exceptions, jumps to other functions, threads
and coroutines; those under way when the recording began are found with unwind tables.
Names, lines and inlined functions take debug information, which is looked for as serve
does.

perfetto: the time is instructions, one a nanosecond: system calls take none, unless
another thread runs. Each slice has its position, which "seek" and --at take. Calls
shorter than 1000 instructions or deeper than 16 are left out; --functions PATTERN has
all calls of the functions that match it, --depth N those up to a depth. There are
counters of the heap, of mapped memory, and of the pages that were touched since the
beginning and are mapped still ("RSS touched"; pages from before are not known).

csv: --table calls, syscalls, signals or functions.

lcov: a line's count is that of its instruction that was executed most often. Lines that
were not executed are those of the same compilation units.

lackey writes 20 bytes or so for each instruction.

The file is there whole or not at all. Of a recording of several processes it is one's:
--process chooses. --intervals has some of its intervals alone.

Once the file is open, export can write to no other folder, read no files but those with
symbols, and start no other program, where the kernel has Landlock and seccomp (vplayd
doctor tells).

Exit codes: 0 done, 1 it cannot be written, 2 wrong use, 3 replay and recording differ, 4
the recording is damaged, 130 Ctrl-C.`

const exportExamples = `  vplayd export --to pprof server-1.vplay && go tool pprof -http : server-1.pb.gz
  vplayd export --to flamegraph --symbols build -o server.svg server-1.vplay
  vplayd export --to perfetto --functions '^handle_' server-1.vplay
  vplayd export --to callgrind sort-1.vplay && callgrind_annotate sort-1.callgrind
  vplayd export --to lcov --symbols build test-1.vplay && genhtml -o html test-1.info
  vplayd export --to csv --table functions -o - sort-1.vplay`
