package gdbstub

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"strings"

	"vplay/replay/debug/api"
)

// vFile gives clients the files of the recorded system: the target's table of
// rebuilt images and synthesised /proc files, never the host's disk. It must be
// there, for without it gdb loads the replaying machine's own libraries.

// Error numbers of the File-I/O protocol (gdb manual, "Errno Values"). All
// numbers in vFile packets are hex.
const (
	fioENOENT = 2
	fioEIO    = 9999 // EUNKNOWN: the protocol has no EIO
	fioEBADF  = 9
	fioEINVAL = 22
	fioEMFILE = 24
	fioEROFS  = 30
)

// Limits on vFile.
const (
	// maxFiles is how many are open at a time. gdb keeps one open for each library of each
	// process: it had no symbols of the fourth python3 when it was 64.
	maxFiles = 4096
	maxPath  = 4096 // bytes of a path
)

// openFile is an open file.
type openFile struct {
	f    api.File
	path string
	next int64 // where the last read ended
	most int   // the bytes that the last read might have been answered with
}

// firstRead is the most that a read is answered with, in bytes, when it does not begin
// where the last one ended. The most doubles with each that does.
//
// gdb asks for 128 KiB whatever it needs, and for a few bytes of a header as well: of
// the 2.5 MB that it read of three files before its first prompt it needed a fifth.
const firstRead = 16 << 10

// readSize returns the bytes that a read of n at off is answered with. Clients ask for
// the rest (gdb manual, "vFile packets": pread may return fewer).
func (f *openFile) readSize(n uint64, off int64) int {
	f.most = min(2*f.most, MaxPacket-32)
	if off != f.next || f.most == 0 {
		f.most = firstRead
	}
	return int(min(n, uint64(f.most)))
}

// files is the descriptor table. Descriptors count from 3 as on a real system.
type files struct {
	open map[int]*openFile
}

// add returns a new descriptor, the lowest free one.
func (t *files) add(f *openFile) (fd int, ok bool) {
	if len(t.open) >= maxFiles {
		return 0, false
	}
	if t.open == nil {
		t.open = map[int]*openFile{}
	}
	for fd = 3; ; fd++ {
		if _, used := t.open[fd]; !used {
			t.open[fd] = f
			return fd, true
		}
	}
}

// close closes one descriptor.
func (t *files) close(fd int) bool {
	f, ok := t.open[fd]
	if !ok {
		return false
	}
	delete(t.open, fd)
	closeFile(f.f)
	return true
}

// closeAll closes what a client left open.
func (t *files) closeAll() {
	for fd := range t.open {
		t.close(fd)
	}
}

func closeFile(f api.File) {
	if c, ok := f.(io.Closer); ok {
		_ = c.Close() // read-only: nothing can be lost
	}
}

// fileError is the reply for a failed operation.
func fileError(errno int) reply { return text("F-1," + hexOf(uint64(errno))) }

// errnoOf translates an error of the target.
func errnoOf(err error) int {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fioENOENT
	case errors.Is(err, os.ErrInvalid):
		return fioEINVAL
	}
	return fioEIO
}

// vFileOps holds the operations by name. What would write is refused as on a
// read-only file system.
var vFileOps = map[string]handler{
	"setfs":    (*session).fileSetFS,
	"open":     (*session).fileOpen,
	"close":    (*session).fileClose,
	"pread":    (*session).fileRead,
	"fstat":    (*session).fileStat,
	"stat":     (*session).pathStat,
	"lstat":    (*session).pathStat,
	"readlink": (*session).fileReadlink,
	"size":     (*session).fileSize,
	"exists":   (*session).fileExists,
	"pwrite":   func(*session, string) reply { return fileError(fioEROFS) },
	"unlink":   func(*session, string) reply { return fileError(fioEROFS) },
}

// vFile answers vFile:OPERATION:ARGUMENTS.
func (s *session) vFile(arg string) reply {
	op, rest, _ := strings.Cut(arg, ":")
	if slices.Contains(s.pids(), s.filesOf) {
		s.use(s.filesOf)
	}
	if h := vFileOps[op]; h != nil {
		return h(s, rest)
	}
	return reply{}
}

// parsePath decodes a path.
func parsePath(arg string) (string, bool) {
	b, err := hex.DecodeString(arg)
	if err != nil || len(b) == 0 || len(b) > maxPath || strings.IndexByte(string(b), 0) >= 0 {
		return "", false
	}
	return string(b), true
}

// fileSetFS selects whose files are meant; 0 is the server's, which has none of its own.
func (s *session) fileSetFS(arg string) reply {
	pid, ok := parseHexInt(arg)
	if !ok {
		return fileError(fioEINVAL)
	}
	s.filesOf = pid
	return text("F0")
}

// fileOpen answers open:PATH,FLAGS,MODE.
func (s *session) fileOpen(arg string) reply {
	f := strings.Split(arg, ",")
	path, ok := parsePath(f[0])
	if !ok || len(f) != 3 {
		return fileError(fioEINVAL)
	}
	if flags, ok := parseHex(f[1]); !ok || flags != 0 {
		return fileError(fioEROFS)
	}
	if len(s.files.open) >= maxFiles {
		return fileError(fioEMFILE)
	}
	file, err := s.target.OpenFile(path)
	if err != nil {
		return fileError(errnoOf(err))
	}
	fd, _ := s.files.add(&openFile{f: file, path: path})
	return text("F" + hexOf(uint64(fd)))
}

// fileClose answers close:FD.
func (s *session) fileClose(arg string) reply {
	if fd, ok := parseHexInt(arg); ok && s.files.close(fd) {
		return text("F0")
	}
	return fileError(fioEBADF)
}

// fileRead answers pread:FD,COUNT,OFFSET with as much as fits.
func (s *session) fileRead(arg string) reply {
	f := strings.Split(arg, ",")
	if len(f) != 3 {
		return fileError(fioEINVAL)
	}
	fd, ok1 := parseHexInt(f[0])
	n, ok2 := parseHex(f[1])
	off, ok3 := parseHex(f[2])
	if !ok1 || !ok2 || !ok3 || off > 1<<62 {
		return fileError(fioEINVAL)
	}
	file, ok := s.files.open[fd]
	if !ok {
		return fileError(fioEBADF)
	}
	b := make([]byte, file.readSize(n, int64(off)))
	got, err := file.f.ReadAt(b, int64(off))
	got = min(max(got, 0), len(b))
	if got == 0 && err != nil && !errors.Is(err, io.EOF) {
		return fileError(errnoOf(err))
	}
	b = b[:fitEscaped(b[:got], MaxPacket-32)]
	file.next = int64(off) + int64(len(b))
	return fileData(b)
}

// fileData is a reply with an attachment: its length before escaping, its bytes.
func fileData(b []byte) reply {
	b = b[:fitEscaped(b, MaxPacket-32)]
	return reply{data: append(fmt.Appendf(nil, "F%x;", len(b)), b...)}
}

// fileStat answers fstat:FD.
func (s *session) fileStat(arg string) reply {
	fd, ok := parseHexInt(arg)
	file, open := s.files.open[fd]
	if !ok || !open {
		return fileError(fioEBADF)
	}
	return fileData(appendStat(nil, file))
}

// pathStat answers stat:PATH (gdb 16).
func (s *session) pathStat(arg string) reply {
	file, errno := s.peek(arg)
	if errno != 0 {
		return fileError(errno)
	}
	defer closeFile(file.f)
	return fileData(appendStat(nil, file))
}

// peek opens the file of a path argument for a moment.
func (s *session) peek(arg string) (*openFile, int) {
	path, ok := parsePath(arg)
	if !ok {
		return nil, fioEINVAL
	}
	f, err := s.target.OpenFile(path)
	if err != nil {
		return nil, errnoOf(err)
	}
	return &openFile{f: f, path: path}, 0
}

// appendStat appends the protocol's struct stat: 64 bytes, big-endian (gdb
// manual, "struct stat"). The inode number is made from the path, because gdb
// tells files apart by it.
func appendStat(dst []byte, f *openFile) []byte {
	h := fnv.New32a()
	_, _ = h.Write([]byte(f.path)) // a hash does not fail
	be := binary.BigEndian
	size := uint64(max(f.f.Size(), 0))
	for _, v := range []uint32{1, h.Sum32() | 1, f.f.Mode(), 1, 0, 0, 0} { // dev ino mode nlink uid gid rdev
		dst = be.AppendUint32(dst, v)
	}
	for _, v := range []uint64{size, 4096, (size + 511) / 512} { // size blksize blocks
		dst = be.AppendUint64(dst, v)
	}
	return append(dst, make([]byte, 12)...) // atime mtime ctime
}

// fileReadlink answers readlink:PATH.
func (s *session) fileReadlink(arg string) reply {
	path, ok := parsePath(arg)
	if !ok {
		return fileError(fioEINVAL)
	}
	to, err := s.target.Readlink(path)
	if err != nil {
		return fileError(errnoOf(err))
	}
	return fileData([]byte(to))
}

// fileSize answers lldb's size:PATH.
func (s *session) fileSize(arg string) reply {
	file, errno := s.peek(arg)
	if errno != 0 {
		return fileError(errno)
	}
	defer closeFile(file.f)
	return text("F" + hexOf(uint64(max(file.f.Size(), 0))))
}

// fileExists answers lldb's exists:PATH.
func (s *session) fileExists(arg string) reply {
	file, errno := s.peek(arg)
	if errno != 0 {
		return text("F,0")
	}
	closeFile(file.f)
	return text("F,1")
}
