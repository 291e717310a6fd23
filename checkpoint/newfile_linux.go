package checkpoint

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Files without a name, as Linux has them. Elsewhere newfile.go writes beside and renames.

// systemFiles are O_TMPFILE's (man 2 open; Linux 3.11, ext4, xfs, btrfs, tmpfs,
// overlayfs and others; not NFS). /proc is how an unprivileged process links one.
var systemFiles = unnamedFiles{
	open: func(dir string) (*os.File, error) {
		return os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600)
	},
	link: func(f *os.File, path string) error {
		from := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
		if err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW); err != nil {
			return &os.LinkError{Op: "linkat", Old: from, New: path, Err: err}
		}
		return nil
	},
	owner: func(f *os.File, like os.FileInfo) {
		if st, ok := like.Sys().(*syscall.Stat_t); ok {
			_ = f.Chown(int(st.Uid), int(st.Gid)) // root alone may give a file away
		}
	},
}
