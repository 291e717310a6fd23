package debug

import (
	"context"
	"encoding/binary"
	"strings"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay"
	"vplay/replay/mem"
)

// What a program said last. Runtimes write to standard error why they end a program: an
// exception of C++ that nothing catches, Go's fatal errors, panics of Rust. Only the C
// library keeps the text for debuggers, so the calls that wrote it are replayed.

const (
	// stderr is its descriptor.
	stderr = 2
	// wordsGap is how many events may lie between two writes of one message, those of quietCalls
	// not counted.
	wordsGap = 64
	// maxWords bounds what is read of one call, in bytes. shownWords is how many lines of a
	// message are returned, of its beginning and as many of its end.
	maxWords, shownWords = 4096, 2
)

// quietCalls are those that a runtime makes within a message, when it looks for the names of
// functions and for source lines.
var quietCalls = map[int64]bool{
	abi.SYS_BRK: true, abi.SYS_MMAP: true, abi.SYS_MUNMAP: true, abi.SYS_MREMAP: true, abi.SYS_MPROTECT: true, abi.SYS_MADVISE: true,
	abi.SYS_OPEN: true, abi.SYS_OPENAT: true, abi.SYS_READ: true, abi.SYS_PREAD64: true, abi.SYS_LSEEK: true, abi.SYS_CLOSE: true,
	abi.SYS_STAT: true, abi.SYS_FSTAT: true, abi.SYS_NEWFSTATAT: true, abi.SYS_STATX: true, abi.SYS_READLINK: true, abi.SYS_GETCWD: true,
}

// LastWords returns what the program wrote last to standard error, in lines, nil when it wrote
// nothing there in its last interval, or replay takes too long. What was written by calls that
// lie near each other is one message; of a long one there are the first lines and the last.
func (e *Ending) LastWords(ctx context.Context) []string {
	images := e.Session.Rec.ImagesOf(e.Final.PID)
	if len(images) == 0 {
		return nil
	}
	infos := images[len(images)-1]
	id := infos[len(infos)-1].ID
	events, err := e.Session.Events(id)
	if err != nil {
		return nil
	}
	first, last := lastMessage(events)
	if first == last {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, overwriteTime)
	defer cancel()
	t, err := replay.NewProcessTimeline(e.Session, e.Final.PID, e.Memory)
	if err != nil {
		return nil
	}
	defer t.Close()
	var text strings.Builder
	_, err = t.EventPositions(ctx, id, first, last, func(ev *checkpoint.Event, m *mem.Space) {
		if isWords(ev) {
			text.Write(written(ev, Memory{Space: m}))
		}
	})
	if err != nil {
		return nil
	}
	return wordLines(text.String())
}

// lastMessage returns the range of the events in which a log's last message was written;
// an empty one when there is none.
func lastMessage(events []checkpoint.Event) (first, last int) {
	gap := 0
	for i := len(events) - 1; i >= 0 && (last == 0 || gap <= wordsGap); i-- {
		e := &events[i]
		isCall := e.Kind == checkpoint.EventEnter || e.Kind == checkpoint.EventExit
		switch {
		case isWords(e):
			if first, gap = i, 0; last == 0 {
				last = i + 1
			}
		case !isCall || !quietCalls[e.NR]:
			gap++
		}
	}
	return first, last
}

// isWords reports whether an event is a call that writes to standard error.
func isWords(e *checkpoint.Event) bool {
	return e.Kind == checkpoint.EventEnter && (e.NR == abi.SYS_WRITE || e.NR == abi.SYS_WRITEV) && int32(e.Args[0]) == stderr
}

// written returns the bytes that a call writes, as far as they are known.
func written(e *checkpoint.Event, m Memory) []byte {
	if e.NR == abi.SYS_WRITE {
		return m.upTo(e.Args[1], e.Args[2])
	}
	var out []byte
	for i := range min(e.Args[2], maxVectors) {
		v := m.upTo(e.Args[1]+i*sizeofIovec, sizeofIovec)
		if len(v) < sizeofIovec {
			break
		}
		out = append(out, m.upTo(binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:]))...)
	}
	return out
}

// sizeofIovec is the size of a struct iovec (man 3 iovec), maxVectors how many are read of a call.
const sizeofIovec, maxVectors = 16, 64

// upTo reads n bytes, maxWords at most, and fewer where memory is not known.
func (m Memory) upTo(addr, n uint64) []byte {
	b := make([]byte, min(n, maxWords))
	return b[:m.ReadMemory(addr, b)]
}

// wordLines returns the lines of a text that are not empty, of many the first and the last.
func wordLines(text string) (lines []string) {
	for l := range strings.SplitSeq(text, "\n") {
		if l = strings.TrimRight(l, " \t\r"); l != "" {
			lines = append(lines, strings.ReplaceAll(l, "\t", "    "))
		}
	}
	if n := len(lines); n > 2*shownWords+1 {
		lines = append(append(lines[:shownWords:shownWords], "..."), lines[n-shownWords:]...)
	}
	return lines
}
