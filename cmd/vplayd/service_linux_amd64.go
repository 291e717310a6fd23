package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
)

// What --service changes: where recordings go, and what is said where standard error leads to the
// journal. Signals, exit status and environment are the same as without it.

// prepareService completes the flags for a service, and returns the keeper of its recordings.
func prepareService(program string, f *recordFlags, slimGiven bool) (*keeper, error) {
	dir, err := serviceFolder(f.out)
	if err != nil {
		return nil, err
	}
	keep, err := newKeeper(program, dir, f)
	if err != nil {
		return nil, err
	}
	if err := keep.store.make(); err != nil {
		return nil, withHint(fmt.Errorf("folder of the recordings: %w", err), exitRecorder, "StateDirectory=NAME in the unit makes one that fits")
	}
	f.out = keep.path(os.Getpid())
	if !slimGiven {
		f.slim = slimNever
	}
	if leadsToJournal() {
		stderr = journal{}
	}
	return keep, nil
}

// leadsToJournal reports whether standard error is what $JOURNAL_STREAM names (systemd.exec(5)).
func leadsToJournal() bool {
	var st unix.Stat_t
	return unix.Fstat(int(os.Stderr.Fd()), &st) == nil && os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// journal is standard error as the journal reads it: each line begins with its level (sd-daemon(3)).
type journal struct{}

// Levels of syslog(3).
const (
	journalErr     = 3
	journalWarning = 4
	journalInfo    = 6
	journalDebug   = 7
)

// Write implements io.Writer. p is whole lines.
func (journal) Write(p []byte) (int, error) {
	level := journalInfo
	if bytes.HasPrefix(p, []byte("vplayd: error:")) {
		level = journalErr
	}
	return len(p), writeJournal(level, string(p))
}

// log is where the log goes.
func (journal) log() io.Writer { return journalLog{} }

// journalLock keeps lines whole.
var journalLock sync.Mutex

func writeJournal(level int, s string) error {
	journalLock.Lock()
	defer journalLock.Unlock()
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		if _, err := fmt.Fprintf(lines{}, "<%d>%s\n", level, line); err != nil {
			return err
		}
	}
	return nil
}

// journalLog writes the log there: what the journal knows itself, time and level, is left out of the lines.
type journalLog struct{}

// Write implements io.Writer; zerolog calls WriteLevel.
func (journalLog) Write(p []byte) (int, error) { return journal{}.Write(p) }

// journalLevels are the levels of the log.
var journalLevels = map[zerolog.Level]int{zerolog.TraceLevel: journalDebug, zerolog.DebugLevel: journalDebug, zerolog.InfoLevel: journalInfo, zerolog.WarnLevel: journalWarning}

// WriteLevel implements zerolog.LevelWriter.
func (journalLog) WriteLevel(l zerolog.Level, p []byte) (int, error) {
	level, ok := journalLevels[l]
	if !ok {
		level = journalErr
	}
	var line bytes.Buffer
	c := zerolog.ConsoleWriter{Out: &line, NoColor: true, PartsExclude: []string{zerolog.TimestampFieldName, zerolog.LevelFieldName}}
	if _, err := c.Write(p); err != nil {
		return 0, err
	}
	return len(p), writeJournal(level, line.String())
}
