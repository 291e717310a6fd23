package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/corefile"
	recorder "vplay/checkpoint/record"
	"vplay/cmd/vplayd/internal/sandbox"
	"vplay/replay/debug/text"
)

// The verb core-handler where programs crash: it takes what /proc has of the program, then the core file, lets the
// program go, and writes the recording in the sandbox. All that goes wrong is a line in the log.

// handleCrash makes a recording of a crash. It returns an error only where its flags are wrong.
func handleCrash(c *cobra.Command, k crash, f handlerFlags) error {
	h := &coreHandler{crash: k, flags: f, store: coreStore{dir: f.dir, keep: f.keep}}
	var err error
	if h.maxCore, err = parseSize(f.maxCore); err == nil {
		h.store.maxUse, err = parseSize(f.maxUse)
	}
	if err != nil {
		return usageError{withHint(err, exitUsage, "--max-core and --max-use take a number of bytes, or of units: 512M, 2G")}
	}
	ctx, cancel := context.WithTimeout(c.Context(), f.time)
	defer cancel()
	if h.log, err = os.OpenFile(f.log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err == nil {
		defer func() { _ = h.log.Close() }() // each line was written at once
	}
	c.SetContext(ctx)
	if err := h.handle(c); err != nil {
		h.say(3, "%s: nothing kept: %v", h, err)
	}
	return nil
}

// coreHandler is the handling of one crash.
type coreHandler struct {
	crash
	flags   handlerFlags
	store   coreStore
	maxCore int64
	log     *os.File // nil when it cannot be written
	comm    string
	files   map[string]*os.File // of the program, by device, inode and path
	live    corefile.Live
	notes   []string // of the recording
}

// String names the program in lines of the log.
func (h *coreHandler) String() string {
	return fmt.Sprintf("%s (process %d, user %d, %v)", text.Printable(h.comm), h.pid, h.uid, abi.Signal(h.signal))
}

// say writes a line to the log. level is the kernel's: 3 is an error, 6 tells only.
func (h *coreHandler) say(level int, format string, args ...any) {
	line := "vplayd core-handler: " + text.Escape(fmt.Sprintf(format, args...)) + "\n"
	if h.log == nil {
		return
	}
	if st, err := h.log.Stat(); err == nil && !st.Mode().IsRegular() {
		const kmsgLine = 900 // /dev/kmsg refuses longer ones (LOG_LINE_MAX)
		line = fmt.Sprintf("<%d>%.*s\n", level, kmsgLine, strings.TrimSuffix(line, "\n"))
	} else {
		line = time.Now().UTC().Format(time.RFC3339) + " " + line
	}
	_, _ = h.log.WriteString(line) // there is nowhere else to say it
}

func (h *coreHandler) handle(c *cobra.Command) error {
	began := time.Now()
	h.look()
	defer h.closeFiles()
	if err := errors.Join(h.store.make(), ownsFolder(h.store.dir)); err != nil {
		return err
	}
	unlock, err := lockFolder(c.Context(), h.store.dir)
	if err != nil {
		return err
	}
	defer unlock()
	spool, err := corefile.NewSpool(h.store.dir, h.maxCore)
	if err != nil {
		return err
	}
	defer spool.Close()
	if err := spool.Fill(c.Context(), os.Stdin); err != nil {
		return fmt.Errorf("reading the core file: %w", err)
	}
	_ = os.Stdin.Close() // the program may go: whoever waits for it need not wait longer
	path := h.store.name(h.comm, h.pid, h.at)
	res, err := h.write(c, spool, path)
	if err != nil {
		return err
	}
	h.giveAway(path)
	bytes := int64(0)
	if st, err := os.Stat(path); err == nil {
		bytes = st.Size()
	}
	h.say(6, "%s: %s: %s, %s of memory in %s, %.1f s", h, path, text.Plural(res.Threads, "thread"), size(res.Memory), size(bytes), time.Since(began).Seconds())
	removed, err := h.store.tidy(path)
	if len(removed) > 0 {
		h.say(6, "removed %s", strings.Join(removed, ", "))
	}
	if err != nil {
		h.say(4, "old recordings stay: %v", err)
	}
	return nil
}

// write imports the core file, with no rights but those in the folder.
func (h *coreHandler) write(c *cobra.Command, spool *corefile.Spool, path string) (*corefile.Result, error) {
	budget, err := budgetOf(c)
	if err != nil {
		return nil, err
	}
	if _, err := sandbox.Enter(sandbox.Access{Write: []string{h.store.dir}}); err != nil {
		return nil, err
	}
	core, err := corefile.Open(spool, spool.Size(), h.comm, budget)
	if err != nil {
		return nil, err
	}
	notes := h.notes
	if spool.IsCut() {
		notes = append(notes, "only the first "+size(h.maxCore)+" of the core file were read (--max-core)")
	}
	return corefile.Import(c.Context(), core, corefile.Options{Path: path, Overwrite: true, KeepEnv: h.flags.env, Start: h.at, Live: &h.live, Notes: notes})
}

// giveAway makes the recording the user's, who may look at the program's memory, too.
func (h *coreHandler) giveAway(path string) {
	const traceable = 1 // SUID_DUMP_USER
	if h.dumpable != traceable || h.uid == 0 {
		return
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err == nil {
		err = f.Chown(h.uid, h.gid)
		_ = f.Close() // it was only read
	}
	if err != nil {
		h.say(4, "%s stays root's: %v", path, err)
	}
}

// ownsFolder returns an error for a folder of another user, who could have files replaced in it.
func ownsFolder(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return err
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d", dir, st.Uid)
	}
	return nil
}

// lockFolder waits until nobody else works in the folder.
func lockFolder(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // which gives the lock back
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close() // nothing was written
			return nil, err
		}
		select {
		case <-ctx.Done():
			_ = f.Close() // nothing was written
			return nil, fmt.Errorf("other crashes take all the time: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// maxProcFile bounds what is read of one file of /proc, in bytes.
const maxProcFile = 64 << 20

// proc reads a file of /proc/PID; nil when there is none.
func (h *coreHandler) proc(name string) []byte {
	f, err := os.Open(fmt.Sprintf("/proc/%d/%s", h.pid, name))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // only read
	var b bytes.Buffer
	_, _ = b.ReadFrom(&limitedReader{f, maxProcFile}) // what there was before an error counts
	return b.Bytes()
}

// limitedReader ends a file early.
type limitedReader struct {
	f    *os.File
	left int
}

// Read implements io.Reader.
func (r *limitedReader) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, errors.New("too long")
	}
	n, err := r.f.Read(b[:min(len(b), r.left)])
	r.left -= n
	return n, err
}

// look takes what /proc has of the program, and opens its files: once the core file is read it may be gone.
func (h *coreHandler) look() {
	link := func(name string) string {
		s, _ := os.Readlink(fmt.Sprintf("/proc/%d/%s", h.pid, name)) // none: it is not known
		return strings.TrimSuffix(s, " (deleted)")
	}
	strs := func(name string) []string {
		s := strings.TrimSuffix(string(h.proc(name)), "\x00")
		if s == "" {
			return nil
		}
		return strings.Split(s, "\x00")
	}
	h.comm = strings.TrimSuffix(string(h.proc("comm")), "\n")
	if h.comm == "" {
		h.comm = "program"
	}
	h.live = corefile.Live{
		Maps: h.proc("maps"), Program: link("exe"), Args: strs("cmdline"), Env: strs("environ"), Cwd: link("cwd"),
		Hostname: h.host, CPU: recorder.CPU(), Names: map[checkpoint.TID]string{}, Open: h.open,
	}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		h.live.Kernel = unix.ByteSliceToString(uts.Release[:])
	}
	h.notes = []string{fmt.Sprintf("user %d, group %d", h.uid, h.gid)}
	if group := h.proc("cgroup"); len(group) > 0 {
		h.notes = append(h.notes, "cgroup "+strings.Join(strings.Fields(string(group)), " "))
	}
	h.nameThreads()
	h.openFiles()
}

// nameThreads takes the names of the threads, by the numbers that the program knows.
func (h *coreHandler) nameThreads() {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", h.pid)) // none: they have no names
	for _, e := range tasks {
		status := abi.ProcStatus(h.proc("task/" + e.Name() + "/status"))
		numbers := strings.Fields(status.Field("NSpid"))
		if len(numbers) == 0 {
			continue
		}
		var tid int32
		if _, err := fmt.Sscan(numbers[len(numbers)-1], &tid); err == nil {
			h.live.Names[checkpoint.TID(tid)] = status.Field("Name")
		}
	}
}

// maxOpenFiles bounds the files of the program that are opened.
const maxOpenFiles = 4096

// openFiles opens each file that the program has mapped: as the kernel has it, so that a file that was deleted or
// replaced is the one that was mapped, or, where that is not allowed, at its path as the program sees it.
func (h *coreHandler) openFiles() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) // fewer files then
	}
	h.files = map[string]*os.File{}
	for line := range bytes.Lines(h.live.Maps) {
		f := strings.SplitN(strings.TrimSuffix(string(line), "\n"), " ", 6)
		if len(f) < 6 || f[4] == "0" || len(h.files) == maxOpenFiles {
			continue
		}
		path := strings.TrimLeft(f[5], " ")
		if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "/dev/") || h.files[path] != nil {
			continue
		}
		for _, name := range []string{"map_files/" + f[0], "root" + path} {
			file, err := os.OpenFile(fmt.Sprintf("/proc/%d/%s", h.pid, name), os.O_RDONLY|unix.O_NONBLOCK, 0)
			if err != nil {
				continue
			}
			if st, err := file.Stat(); err == nil && st.Mode().IsRegular() {
				h.files[path] = file
				break
			}
			_ = file.Close() // it was only read
		}
	}
}

func (h *coreHandler) closeFiles() {
	for _, f := range h.files {
		_ = f.Close() // it was only read
	}
}

// open returns one of the opened files.
func (h *coreHandler) open(path string) (corefile.File, int64, error) {
	f := h.files[path]
	if f == nil {
		return nil, 0, os.ErrNotExist
	}
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	return keptOpen{f}, st.Size(), nil
}

// keptOpen is a file that whoever opened it closes.
type keptOpen struct{ *os.File }

// Close does nothing.
func (keptOpen) Close() error { return nil }
