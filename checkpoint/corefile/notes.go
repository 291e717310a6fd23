package corefile

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// The notes of a core file (Linux, uapi/linux/elf.h, elfcore.h and fs/binfmt_elf.c): threads, the
// signal, what the kernel told the program at its start, and which files are mapped where.

// notes is what the notes say.
type notes struct {
	threads []thread // the one that the signal was for, or that was looked at, first
	pid     int32    // 0 when it is not known
	comm    string   // of the process's first thread
	command string   // the start of the command line
	siginfo []byte
	auxv    []byte
	aux     map[uint64]uint64 // the same by type, the first of each
	files   []area            // what is mapped from files, as the file lists it
	layout  []checkpoint.XSAVEComponent
}

// area is what is known of a range of the memory map besides its content.
type area struct {
	start, end uint64
	offset     uint64 // in the file, bytes
	path       string // as /proc/PID/maps has it
	dev, inode uint64 // 0 when they are not known
	shared     bool   // MAP_SHARED, where that is known
}

// noteKind is how a note is read.
type noteKind struct {
	name     string
	min, max uint32 // of its content, in bytes
	read     func(c *Core, b []byte) error
}

// noteKinds are the notes that are read; the others are skipped.
var noteKinds = map[uint32]noteKind{
	abi.NT_PRSTATUS:         {"NT_PRSTATUS", abi.SizeofPrstatus, abi.SizeofPrstatus, (*Core).noteStatus},
	abi.NT_PRFPREG:          {"NT_FPREGSET", legacySize, legacySize, (*Core).noteFloats},
	abi.NT_PRPSINFO:         {"NT_PRPSINFO", abi.SizeofPrpsinfo, abi.SizeofPrpsinfo, (*Core).notePsinfo},
	abi.NT_AUXV:             {"NT_AUXV", 0, 64 << 10, (*Core).noteAuxv},
	abi.NT_X86_XSTATE:       {"NT_X86_XSTATE", xsaveMin, 64 << 10, (*Core).noteXState},
	abi.NT_X86_XSAVE_LAYOUT: {"NT_X86_XSAVE_LAYOUT", 0, 4 << 10, (*Core).noteLayout},
	abi.NT_FILE:             {"NT_FILE", 16, 64 << 20, (*Core).noteFiles},
	abi.NT_SIGINFO:          {"NT_SIGINFO", abi.SizeofSiginfo, abi.SizeofSiginfo, (*Core).noteSiginfo},
}

// readNotes reads a segment of notes.
func (c *Core) readNotes(s segment) error {
	const align = 4
	for at := uint64(0); s.stored-at >= 12; {
		var h [12]byte
		if n, err := c.r.ReadAt(h[:], s.off+int64(at)); n < len(h) {
			return err
		}
		le := binary.LittleEndian
		name, size, kind := uint64(le.Uint32(h[:])), le.Uint32(h[4:]), le.Uint32(h[8:])
		desc := at + 12 + (name+align-1)&^(align-1)
		if desc > s.stored || uint64(size) > s.stored-desc {
			return nil // cut off: what came before is there
		}
		if err := c.limited(c.budget.Spend(int64(12+name), "notes")); err != nil {
			return err
		}
		if k, ok := noteKinds[kind]; ok && (name == 5 || name == 6) { // CORE and LINUX
			if err := c.readNote(k, s.off+int64(desc), size); err != nil {
				return err
			}
		}
		if at = desc + (uint64(size)+align-1)&^(align-1); at > s.stored {
			return nil
		}
	}
	return nil
}

// readNote reads the content of one note.
func (c *Core) readNote(k noteKind, off int64, size uint32) error {
	if size < k.min || size > k.max {
		return c.damaged("its note %s has %d bytes", k.name, size)
	}
	if err := c.take(int64(size), k.name); err != nil {
		return err
	}
	b := make([]byte, size)
	if n, err := c.r.ReadAt(b, off); n < len(b) {
		return err
	}
	return k.read(c, b)
}

func (c *Core) notePsinfo(b []byte) error {
	le := binary.LittleEndian
	c.pid = int32(le.Uint32(b[24:]))
	c.comm, c.command = cstring(b[40:56]), cstring(b[56:])
	return nil
}

func (c *Core) noteAuxv(b []byte) error {
	if c.auxv != nil {
		return nil
	}
	c.auxv, c.aux = b, map[uint64]uint64{}
	for _, v := range abi.ParseAuxv(b) {
		if _, ok := c.aux[v.Type]; !ok {
			c.aux[v.Type] = v.Value
		}
	}
	return nil
}

// noteSiginfo keeps the first: gdb writes one for each thread, the first for the one that was current.
func (c *Core) noteSiginfo(b []byte) error {
	if c.siginfo == nil {
		c.siginfo = b
	}
	return nil
}

// noteFiles reads NT_FILE: the number of rows, the unit of offsets, the rows (start, end, offset), and
// a name for each, which ends with a NUL.
func (c *Core) noteFiles(b []byte) error {
	le := binary.LittleEndian
	count, unit := le.Uint64(b), le.Uint64(b[8:])
	b = b[16:]
	if count > uint64(len(b))/25 || unit == 0 || unit > 1<<20 { // a row and its name
		return c.damaged("its note NT_FILE lists %d files in %d bytes", count, len(b))
	}
	if err := c.take(int64(count)*int64(unsafe.Sizeof(area{})), "NT_FILE"); err != nil {
		return err
	}
	names := b[count*24:]
	c.files = make([]area, 0, count)
	for ; count > 0; count-- {
		end := bytes.IndexByte(names, 0)
		if end < 0 {
			return c.damaged("its note NT_FILE lacks names")
		}
		a := area{start: le.Uint64(b), end: le.Uint64(b[8:]), path: string(names[:end])}
		pages := le.Uint64(b[16:])
		b, names = b[24:], names[end+1:]
		if a.start >= a.end || (a.start|a.end)%pageSize != 0 || a.end > userEnd || pages > userEnd/unit {
			return c.damaged("its note NT_FILE maps %q at %#x to %#x, page %d", a.path, a.start, a.end, pages)
		}
		a.offset = pages * unit
		c.files = append(c.files, a)
	}
	return nil
}

// cstring returns the bytes before the first NUL.
func cstring(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
