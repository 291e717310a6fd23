package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The folder in which core-handler, services and triggers keep recordings: their names, and which of them go.

// coreStore is such a folder.
type coreStore struct {
	dir    string
	keep   int   // recordings
	maxUse int64 // bytes
}

// coreTime and fineTime are how the time stands in a name. What has the one is read as the other.
const (
	coreTime = "20060102T150405Z"
	fineTime = "20060102T150405.000Z"
)

// name returns the path for the recording of a crash. comm is what the program calls itself, which may
// be anything.
func (s *coreStore) name(comm string, pid int, at time.Time) string {
	return s.nameOf(comm, pid, at, coreTime)
}

// nameOf is name with a form of the time.
func (s *coreStore) nameOf(comm string, pid int, at time.Time, form string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '+':
			return r
		}
		return '_'
	}, comm)
	safe = strings.TrimLeft(safe, ".")
	if safe == "" {
		safe = "program"
	}
	return filepath.Join(s.dir, fmt.Sprintf("%.32s-%d-%s.vplay", safe, pid, at.UTC().Format(form)))
}

// coreFile is a recording in the folder.
type coreFile struct {
	path    string
	program string
	size    int64
	at      time.Time
}

// files lists the recordings that have names as name makes them; the user's own files stay.
func (s *coreStore) files() ([]coreFile, error) {
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var out []coreFile
	for _, e := range list {
		base, isRecording := strings.CutSuffix(e.Name(), ".vplay")
		parts := strings.Split(base, "-")
		if !isRecording || len(parts) != 3 || !e.Type().IsRegular() {
			continue
		}
		at, err := time.Parse(coreTime, parts[2])
		if err != nil {
			continue
		}
		st, err := e.Info()
		if err != nil {
			continue // it was removed meanwhile
		}
		out = append(out, coreFile{filepath.Join(s.dir, e.Name()), parts[0], st.Size(), at})
	}
	slices.SortFunc(out, func(a, b coreFile) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.path, b.path)) })
	return out, nil
}

// tidy removes recordings until those that are left are within the limits. The one at path, which is new, stays. It
// returns what was removed.
func (s *coreStore) tidy(path string) (removed []string, err error) {
	list, err := s.files()
	if err != nil {
		return nil, err
	}
	for {
		var total int64
		of := map[string]int{}
		for _, f := range list {
			total += f.size
			of[f.program]++
		}
		if len(list) <= max(s.keep, 1) && total <= s.maxUse {
			return removed, nil
		}
		victim := -1
		for i, f := range list {
			if f.path != path && (victim < 0 || of[f.program] > of[list[victim].program]) {
				victim = i
			}
		}
		if victim < 0 {
			return removed, nil // only the new one is left
		}
		if err := os.Remove(list[victim].path); err != nil && !os.IsNotExist(err) {
			return removed, err
		}
		removed = append(removed, filepath.Base(list[victim].path))
		list = slices.Delete(list, victim, victim+1)
	}
}

// make makes the folder. One that others may write to, or that is a link, is none: they could have
// files removed or replaced there.
func (s *coreStore) make() error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	st, err := os.Lstat(s.dir)
	switch {
	case err != nil:
		return err
	case !st.IsDir():
		return &fs.PathError{Op: "use", Path: s.dir, Err: fs.ErrInvalid}
	case st.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s may be written by others than its owner (mode %#o)", s.dir, st.Mode().Perm())
	}
	return nil
}
