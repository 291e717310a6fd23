//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Rules for Landlock: which rights over files each version of it knows, and which of
// them an Access leaves (linux/landlock.h, Documentation/userspace-api/landlock.rst).
// The system calls are in calls_unsafe_linux.go, and their order in sandbox_linux.go.

// errCgo is why Landlock is not used in a program with cgo.
var errCgo = errors.New("not in a build with cgo, which has threads that Go does not know")

// The rights over files of a Landlock version (linux/landlock.h). All of them are taken
// away; a rule gives some back.
var fileRights = [...]uint64{
	1: 1<<13 - 1, // Linux 5.13: EXECUTE to MAKE_SYM
	2: 1<<14 - 1, // 5.19: REFER
	3: 1<<15 - 1, // 6.2: TRUNCATE
	4: 1<<15 - 1, // 6.7: no more over files, but TCP
	5: 1<<16 - 1, // 6.10: IOCTL_DEV
}

const (
	readRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR

	writeRights = readRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE

	// ofFiles are the rights that the rule of a file, not a folder, may give.
	ofFiles = unix.LANDLOCK_ACCESS_FS_READ_FILE
)

// rule gives rights over a path and all below it.
type rule struct {
	path   string
	rights uint64
}

// handled returns the rights over files that a version knows.
func handled(version int) uint64 { return fileRights[min(version, len(fileRights)-1)] }

// rules returns what stays allowed, in the words of a Landlock version.
func rules(a Access, version int) (out []rule) {
	for _, l := range []struct {
		paths  []string
		rights uint64
	}{
		{a.Read, readRights}, {a.Write, writeRights}, {a.Remove, unix.LANDLOCK_ACCESS_FS_REMOVE_FILE},
	} {
		for _, p := range l.paths {
			out = append(out, rule{p, l.rights & handled(version)})
		}
	}
	return out
}

// newRuleset makes a ruleset that allows nothing of what a version can refuse.
func newRuleset(version int) (fd int, err error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled(version)}
	if version >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return createRuleset(&attr)
}

// addRule adds a rule to a ruleset. A path that is not there needs none.
func addRule(set int, r rule) error {
	fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES), errors.Is(err, unix.ELOOP):
		return nil // the verb will say so when it needs it
	case err != nil:
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		r.rights &= ofFiles
	}
	if r.rights == 0 {
		return nil // the kernel refuses an empty rule
	}
	return addPath(set, &unix.LandlockPathBeneathAttr{Allowed_access: r.rights, Parent_fd: int32(fd)})
}

// missing turns the error of a probe into why there is no such thing here.
func missing(name string, err error) error {
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
		return fmt.Errorf("this kernel has no %s", name)
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%s is switched off at boot (lsm=)", name)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s is refused here, as in some containers", name)
	}
	return fmt.Errorf("%s: %w", name, err)
}
