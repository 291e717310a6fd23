package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"vplay/checkpoint"
	"vplay/replay"
)

// openRecording opens the recording named by the arguments; without a name,
// the newest in the current folder.
func openRecording(args []string) (*checkpoint.Recording, string, error) {
	path, err := recordingPath(args)
	if err != nil {
		return nil, "", err
	}
	rec, err := checkpoint.Open(path)
	switch {
	case err == nil:
		return rec, path, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, path, withHint(err, exitFailed, "ls *.vplay shows the recordings in this folder")
	case errors.Is(err, checkpoint.ErrNotRecording):
		return nil, path, withHint(err, exitDamaged, "recordings are made by: vplayd record -- PROGRAM")
	}
	var v *checkpoint.VersionError
	if errors.As(err, &v) {
		return nil, path, withHint(err, exitDamaged, "it was made by a newer vplayd: use that one, or a newer one still")
	}
	var damage *checkpoint.FormatError
	if errors.As(err, &damage) {
		return nil, path, withHint(err, exitDamaged, "copy it again from where it was recorded")
	}
	return nil, path, withHint(err, exitFailed, "is it a file that you may read?")
}

// openSession opens the recording named by the arguments for replay; done closes it.
func openSession(args []string) (s *replay.Session, path string, done func(), err error) {
	rec, path, err := openRecording(args)
	if err != nil {
		return nil, path, nil, err
	}
	if s, err = replay.NewSession(rec); err != nil {
		rec.Close()
		return nil, path, nil, err
	}
	return s, path, func() {
		s.Close()
		rec.Close()
	}, nil
}

func recordingPath(args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	found, err := filepath.Glob("*.vplay")
	if err != nil || len(found) == 0 {
		return "", usageError{withHint(errors.New("no recording named, and none in this folder"), exitUsage,
			"name one, or make one: vplayd record -- PROGRAM")}
	}
	age := func(p string) int64 {
		st, err := os.Stat(p)
		if err != nil {
			return 0
		}
		return st.ModTime().UnixNano()
	}
	sort.Slice(found, func(i, j int) bool { return age(found[i]) > age(found[j]) })
	return found[0], nil
}
