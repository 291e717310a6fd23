package checkpoint

import (
	"errors"
	"fmt"
)

// The errors of the package that callers tell apart. What each member's damage means for the rest is
// in FORMAT.md, section 9.

// The conditions a caller may want to tell apart with errors.Is.
var (
	// ErrNotRecording says that a file is not a recording at all.
	ErrNotRecording = errors.New("not a vplay recording")
	// ErrAbsent says that a page was known and not captured.
	ErrAbsent = errors.New("checkpoint: page was not captured")
	// ErrRedacted says that a page was removed on purpose.
	ErrRedacted = errors.New("checkpoint: page was redacted")
	// ErrNoInterval says that a recording has no interval of that ID.
	ErrNoInterval = errors.New("checkpoint: no such interval")
	// ErrNoProcess says that no interval of a recording is of the process.
	ErrNoProcess = errors.New("checkpoint: no such process")
	// ErrNoFinal says that a recording has no final image.
	ErrNoFinal = errors.New("checkpoint: the recording has no final image")
	// ErrFinished says that a Writer was used after Finish or Abort.
	ErrFinished = errors.New("checkpoint: writer is finished")
)

// FormatError says which part of a recording is damaged. Member is "" when
// the file as a whole is; Offset is in bytes from the member's start (or the
// file's), or -1 when unknown.
type FormatError struct {
	File   string
	Member string
	Offset int64
	What   string
}

// Error names the file, the member, the place and the damage.
func (e *FormatError) Error() string {
	s := "checkpoint: "
	if e.File != "" {
		s += e.File + ": "
	}
	if e.Member != "" {
		s += e.Member + ": "
	}
	if e.Offset >= 0 {
		s += fmt.Sprintf("at offset %#x: ", e.Offset)
	}
	return s + e.What
}

// VersionError says that a recording needs a newer reader: its format version
// is Have, or it has a part of the kind Part that this reader does not know
// and may not skip.
type VersionError struct {
	File       string
	Have, Want int
	Part       string
}

// Error says what is needed.
func (e *VersionError) Error() string {
	if e.Part != "" {
		return fmt.Sprintf("checkpoint: %s: has a part of kind %q that this vplay does not know: a newer vplay is needed", e.File, e.Part)
	}
	return fmt.Sprintf("checkpoint: %s: format version %d, this vplay reads versions up to %d: a newer vplay is needed", e.File, e.Have, e.Want)
}
