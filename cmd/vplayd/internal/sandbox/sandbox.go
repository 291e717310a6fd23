// Package sandbox takes from this process what reading a recording does not need.
//
// A recording comes from anybody. Its parts are decoded, its code is executed by an
// emulator, and its debug information is interpreted, all of it in Go with bounds
// checked. Should one of them be made to do what it must not, the process can still
// do little: Enter gives up the rest for good, on all threads.
//
// Two mechanisms of Linux do it, each of them without any privilege:
//
//   - Landlock (Linux 5.13; Documentation/userspace-api/landlock.rst) names the files
//     and folders that may be opened, as Access has them, and nothing else. Files that
//     are open stay open. No TCP port is bound or connected to (Linux 6.7), and no
//     process outside is sent a signal (Linux 6.12).
//   - seccomp (Documentation/userspace-api/seccomp_filter.rst) leaves the system calls
//     of filter_linux.go and answers all others with EPERM: no other program is
//     started or traced, no socket is made, no memory becomes executable. Without
//     Access.Write no file is opened for writing, either.
//
// Where the kernel has one of the two, that one is used. On other systems, and on
// processors other than x86-64 and arm64, there is neither.
//
// Landlock is put on each thread by the Go runtime, which knows all of them only in a
// program without cgo. With cgo there is seccomp alone.
//
// What it does not do: it hides no file's existence and size (stat is free), it
// leaves the descriptors that are open, and it does not bound CPU time or memory.
package sandbox

import "time"

// Access is what stays allowed. Paths are those of files or folders with all below
// them. A path that is not there is left out.
type Access struct {
	Read   []string // files are read, folders are listed
	Write  []string // folders: files in them are read, made, replaced and removed
	Remove []string // folders: files in them are removed
}

// State says which mechanism works here: nil, or why it does not.
type State struct {
	Landlock, Seccomp error
}

// Enter takes everything else from all threads of this process, for good. The state
// says what is in force: the kernel may lack one of the mechanisms, or both. The error
// says that one is there and failed.
func Enter(a Access) (State, error) {
	time.Now().Zone() // loads the time zone, which is a file
	return enter(a)
}

// Check says what Enter would use. It changes nothing.
func Check() State { return check() }
