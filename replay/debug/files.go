package debug

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"vplay/checkpoint"
	"vplay/loader/image"
	"vplay/replay/debug/api"
)

// files is the file system that debuggers see: ELF images rebuilt from the
// recording, and what /proc says of the process. Of the machine that replays
// there are only files with the build-id that was recorded, or with none and the content.
type files struct {
	g      *Cursor
	images map[string][]byte // by path
}

func newFiles(g *Cursor) *files { return &files{g: g, images: map[string][]byte{}} }

// local names the files of this machine that are used.
func (f *files) local() string {
	return LocalFiles(f.g.Modules(), Memory{f.g.mem()}, f.g.session.symbols)
}

// file is content in memory.
type file struct {
	*bytes.Reader
	mode uint32
}

func (f file) Mode() uint32 { return f.mode }
func (f file) Size() int64  { return f.Reader.Size() }

const regular = 0o100000

var _ io.ReaderAt = file{}

func (f *files) open(name string) (api.File, error) {
	if b, ok := f.proc(name); ok {
		return file{bytes.NewReader(b), regular | 0o444}, nil
	}
	if name == PythonPath {
		return file{bytes.NewReader([]byte(GDBPython)), regular | 0o444}, nil
	}
	b, err := f.image(name)
	if err != nil {
		return nil, err
	}
	return file{bytes.NewReader(b), regular | 0o755}, nil
}

// image returns the rebuilt ELF file of the module that was loaded from name,
// which may be any of the names it goes by.
func (f *files) image(name string) ([]byte, error) {
	if b, ok := f.images[name]; ok {
		return b, nil
	}
	mod := f.module(name)
	if mod == nil {
		return nil, os.ErrNotExist
	}
	b, err := f.g.moduleFiles().Image(mod, Memory{f.g.mem()})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", os.ErrNotExist, err)
	}
	f.images[name] = b
	return b, nil
}

// module finds a module by its path in the memory map, or by its name in the
// dynamic linker's list, which may go through symbolic links.
func (f *files) module(name string) *image.Module {
	mods := f.g.Modules()
	for _, mod := range mods {
		if mod.Path == name {
			return mod
		}
	}
	for _, l := range f.g.LinkMap() {
		if l.Name != name {
			continue
		}
		for _, mod := range mods {
			if mod.Bias == l.Base && (path.Base(mod.Path) == path.Base(name) || l.Dynamic >= mod.Base && l.Dynamic < mod.End) {
				return mod
			}
		}
	}
	// Before the loader has made its list, its own name, as the program has it,
	// is known by where the kernel put it. gdb needs it to follow the list.
	base, ok := auxvValue(f.g.program().auxv, atBase)
	for _, mod := range mods {
		if ok && mod.Base == base && path.Base(mod.Path) == path.Base(name) {
			return mod
		}
	}
	return nil
}

// proc returns the files of /proc/PID that debuggers read.
func (f *files) proc(name string) ([]byte, bool) {
	pid := f.g.pid()
	rest, ok := strings.CutPrefix(name, fmt.Sprintf("/proc/%d/", pid))
	if !ok {
		return nil, false
	}
	for _, t := range f.g.threads() {
		if task, found := strings.CutPrefix(rest, fmt.Sprintf("task/%d/", t.TID)); found {
			rest = task
			break
		}
	}
	switch rest {
	case "maps":
		return f.maps(false), true
	case "smaps":
		return f.maps(true), true
	case "cmdline":
		return []byte(strings.Join(f.g.program().args, "\x00") + "\x00"), true
	case "auxv":
		return f.g.program().auxv, true
	case "comm":
		return []byte(path.Base(f.g.program().path) + "\n"), true
	case "stat": // the fields that are not known are 0 (man 5 proc)
		return fmt.Appendf(nil, "%d (%s) t%s\n", pid, path.Base(f.g.program().path), strings.Repeat(" 0", 49)), true
	case "coredump_filter":
		return []byte("00000033\n"), true
	case "status":
		return fmt.Appendf(nil, "Name:\t%s\nState:\tt (tracing stop)\nTgid:\t%d\nPid:\t%d\nThreads:\t%d\n", path.Base(f.g.program().path), pid, pid, len(f.g.threads())), true
	}
	return nil, false
}

// maps writes the memory map as /proc/PID/maps does.
func (f *files) maps(smaps bool) []byte {
	var b bytes.Buffer
	for _, m := range f.g.maps() {
		o, _ := f.g.s.Rec.Object(m.Object)
		fmt.Fprintf(&b, "%08x-%08x %s %08x %02x:%02x %d", m.Start, m.End, perms(m), m.Offset, o.Dev>>8&0xff, o.Dev&0xff, inode(&o))
		if m.Name != "" {
			fmt.Fprintf(&b, " %s", m.Name)
		}
		b.WriteByte('\n')
		if smaps {
			fmt.Fprintf(&b, "Size: %d kB\nVmFlags:%s\n", (m.End-m.Start)/1024, vmFlags(m))
		}
	}
	return b.Bytes()
}

// inode returns the number of an object's inode. Where it is not known, as core files do not tell it, it is
// the object's own: gdb takes 0 for no file, and leaves the file out of core files that it writes.
func inode(o *checkpoint.Object) uint64 {
	if o.Inode == 0 && o.Kind == checkpoint.ObjectFile {
		return uint64(o.ID)
	}
	return o.Inode
}

// vmFlags are the flags of a mapping in /proc/PID/smaps (man 5 proc).
func vmFlags(m checkpoint.Mapping) string {
	var s strings.Builder
	for _, f := range []struct {
		on   bool
		flag string
	}{
		{m.Prot&checkpoint.ProtRead != 0, " rd"},
		{m.Prot&checkpoint.ProtWrite != 0, " wr"},
		{m.Prot&checkpoint.ProtExec != 0, " ex"},
		{m.Flags&checkpoint.MapShared != 0, " sh"},
		{true, " mr mw me"},
		{m.Flags&checkpoint.MapGrowsDown != 0, " gd"},
	} {
		if f.on {
			s.WriteString(f.flag)
		}
	}
	return s.String()
}

func perms(m checkpoint.Mapping) string {
	p := []byte("---p")
	for i, bit := range []uint8{checkpoint.ProtRead, checkpoint.ProtWrite, checkpoint.ProtExec} {
		if m.Prot&bit != 0 {
			p[i] = "rwx"[i]
		}
	}
	if m.Flags&checkpoint.MapShared != 0 {
		p[3] = 's'
	}
	return string(p)
}

func (f *files) readlink(name string) (string, error) {
	switch name {
	case fmt.Sprintf("/proc/%d/exe", f.g.pid()):
		return f.g.program().path, nil
	case fmt.Sprintf("/proc/%d/cwd", f.g.pid()):
		return f.g.session.process.Cwd, nil
	}
	return "", os.ErrNotExist
}

// shownFiles is how many files localFiles names.
const shownFiles = 3

// LocalFiles names the files of this machine that are used, the first of them: the
// modules' own, then their debug files; "" when there are none.
func LocalFiles(mods []*image.Module, m image.Memory, s *image.Symbols) string {
	var names []string
	local := func(mod *image.Module) (string, bool) { return s.Local(mod, m) }
	for _, find := range []func(*image.Module) (string, bool){local, s.SystemFile} {
		for _, mod := range mods {
			if name, ok := find(mod); ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names[:min(len(names), shownFiles)], ", ")
	if n := len(names) - shownFiles; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
