// Package checkpoint says what a recording is: the partial checkpoint of a
// crashed program and the log of everything that came in from outside.
//
// A recording is a list of intervals. Each interval is a contiguous stretch of
// one process's execution that can be replayed by itself: it has the thread
// contexts, the memory map and the pages at its start, the events that came in
// while it ran, and a description of what its end must look like. Pages are
// content-addressed and stored once, whatever number of intervals refers to
// them. A page is found in this order:
//
//  1. by address in the interval's own page table;
//  2. by (object, page index) for a range that maps a file: the content of a
//     page of the file that the program had not written;
//  3. an anonymous page that is in neither was zero;
//  4. anything else was not captured, and reading it is an error, never a zero.
//
// A recording may hold several processes. Each of its intervals is one process's, deltas stay
// within a process and its image, and each process may have an image at its end. The manifest
// is about one of them; [Recording.Processes] lists all.
//
// This package holds the types ([Recording], [Interval], [Event], ...), the
// reader ([Open]), the writer ([Create]), [Rewrite] for slimming, and the text
// form of events ([Event.Text], [WriteText]). FORMAT.md specifies every byte on
// disk, RATIONALE.md says why. It knows nothing of ptrace (package record) nor
// of emulation (package replay), and it treats every file as hostile input: all
// reads are bounded, every byte is checked before it is used, and an error
// names the part that is damaged.
//
// What a recording is made of stands in position.go, context.go, mapping.go, pagetable.go,
// event.go, interval.go, identity.go and process.go, without a word on how it is coded. The
// other files from the bottom up: coder.go (numbers and lists, both directions),
// codec.go (structures), spec.go (the event table), frame.go (frames, checks,
// compression), store.go (pages and packs), manifest.go, writer.go, reader.go,
// pages.go (pages and tables of a reader), rewrite.go, check.go, diagnose.go,
// text.go and parse.go.
package checkpoint
