//go:build linux && amd64

package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// How another process asks a recorder for a snapshot: by a socket of the recorder's in a folder that
// only its user may enter. An address without a file (abstract) would be open to everybody in the
// same network namespace. A signal would do as well, but signals to the recorder are the program's
// (relay.go).

// controlRequest and controlAnswer are what goes over the socket, one JSON value each way.
type controlRequest struct {
	Snapshot string `json:"snapshot"` // the file to write, a whole path
}

type controlAnswer struct {
	Error string `json:"error,omitempty"`
}

// controlPatience is how long whoever has connected may take to say what is wanted.
const controlPatience = 10 * time.Second

// controlFolder returns the folder of the sockets of a user's recorders.
func controlFolder(uid int) string {
	run := fmt.Sprintf("/run/user/%d", uid)
	if st, err := os.Stat(run); err == nil && st.IsDir() {
		return filepath.Join(run, "vplay")
	}
	return fmt.Sprintf("/tmp/vplay-%d", uid)
}

// controlPath returns the socket of a recorder.
func controlPath(uid, pid int) string {
	return filepath.Join(controlFolder(uid), strconv.Itoa(pid)+".sock")
}

// checkFolder returns an error for a folder that others than its user may enter or change.
func checkFolder(dir string, uid int) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != uid || st.Mode&0o077 != 0 {
		return fmt.Errorf("%s is not a folder of user %d's own with mode 0700", dir, uid)
	}
	return nil
}

// control answers at the socket of this recorder, until the returned function is called.
func (a *asks) control() (stop func(), err error) {
	uid := os.Geteuid()
	dir := controlFolder(uid)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := checkFolder(dir, uid); err != nil {
		return nil, err
	}
	path := controlPath(uid, os.Getpid())
	_ = os.Remove(path) // of a recorder that was killed and had the same number
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go a.answer(c)
		}
	}()
	return func() { _ = l.Close() }, nil // it removes the file
}

// answer does what one client asks for.
func (a *asks) answer(c net.Conn) {
	defer func() { _ = c.Close() }() // the answer is written, or nobody waits for it
	_ = c.SetReadDeadline(time.Now().Add(controlPatience))
	var r controlRequest
	if json.NewDecoder(c).Decode(&r) != nil || !filepath.IsAbs(r.Snapshot) {
		return
	}
	var answer controlAnswer
	if err := a.snapshot(r.Snapshot); err != nil {
		answer.Error = err.Error()
	}
	_ = json.NewEncoder(c).Encode(answer) // nobody may wait for it
}

// NoRecorderError says that a process is no recorder and that none records it.
type NoRecorderError struct{ PID int }

// Error implements error.
func (e *NoRecorderError) Error() string {
	return fmt.Sprintf("process %d is no recorder, and none records it", e.PID)
}

// Snapshot has the recorder that pid is, or that records process pid, write what it has by now to
// the file at path, and waits until that is done. The program runs on. A *NoRecorderError
// says that there is no such recorder.
func Snapshot(pid int, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	status, err := statusOf(pid)
	if err != nil {
		return &NoRecorderError{pid}
	}
	of := pid
	if tracer := int(status.Number("TracerPid")); tracer != 0 {
		if status, err = statusOf(tracer); err != nil {
			return &NoRecorderError{pid}
		}
		of = int(status.Number("Tgid"))
	}
	ids := strings.Fields(status.Field("Uid")) // real, effective, saved, of the file system
	if len(ids) < 2 {
		return &NoRecorderError{pid}
	}
	uid, err := strconv.Atoi(ids[1])
	if err != nil {
		return &NoRecorderError{pid}
	}
	c, err := net.Dial("unix", controlPath(uid, of))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return &NoRecorderError{pid}
	}
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // the answer is read
	if err := checkFolder(controlFolder(uid), uid); err != nil {
		return err
	}
	if err := json.NewEncoder(c).Encode(controlRequest{path}); err != nil {
		return err
	}
	var answer controlAnswer
	if err := json.NewDecoder(c).Decode(&answer); err != nil {
		return errors.New("the recorder has ended")
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}
