package debug

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"

	"vplay/checkpoint"
	"vplay/loader/image"
	"vplay/replay/debug/api"
	"vplay/replay/debug/text"
)

// Where a movement comes to the boundary of an image, it goes on to the neighbour if the
// debugger can be told that the program is another now, and ends there if not.

// program is the program at the present position.
func (g *Cursor) program() program { return g.session.programOf(g.image) }

// isLastImage reports whether the present position is behind the last execve.
func (g *Cursor) isLastImage() bool { return g.image == g.session.last() }

// imageOf returns the image that has an interval, the present one where none has.
func (g *Cursor) imageOf(id uint32) int {
	if n, ok := g.session.imageOf(id); ok {
		return n
	}
	return g.image
}

// enter makes image n the present one, with the cursor at its beginning or its end.
func (g *Cursor) enter(ctx context.Context, n int, atEnd bool) error {
	t, err := g.session.enter(n)
	if err != nil {
		return err
	}
	cur, err := t.NewCursor()
	if err == nil && atEnd {
		_, err = cur.ToEnd(ctx)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if cur != nil {
			cur.Close()
		}
		g.session.leave(n)
		return err
	}
	g.cur.Close()
	g.session.leave(g.image)
	g.t, g.cur, g.image, g.known, g.functions = t, cur, n, nil, nil
	clear(g.files.images)
	g.identify()
	return nil
}

// identify finds out which program the present image is, from its memory.
func (g *Cursor) identify() {
	if g.program().path != "" {
		return
	}
	p := program{path: "unknown program"}
	maps, mem := g.maps(), Memory{g.mem()}
	for _, mod := range image.Modules(maps, mem) {
		isMain := mod.Type == elf.ET_EXEC
		for i := range mod.Segments {
			isMain = isMain || mod.Segments[i].Type == elf.PT_INTERP
		}
		if !isMain {
			continue
		}
		p = program{mod.Path, []string{mod.Path}, findAuxv(maps, mem, mod.Bias+phdrAddress(mod))}
		break
	}
	g.session.identified(g.image, p)
}

// phdrAddress is the file virtual address of a module's program headers.
func phdrAddress(mod *image.Module) uint64 {
	for i := range mod.Segments {
		if s := &mod.Segments[i]; s.Type == elf.PT_LOAD && mod.Phoff >= s.Off && mod.Phoff-s.Off < s.Filesz {
			return s.Vaddr + mod.Phoff - s.Off
		}
	}
	return mod.Phoff
}

// maxAuxvSearch bounds how much of a stack is looked through, in bytes.
const maxAuxvSearch = 4 << 20

// findAuxv finds the auxiliary vector on the stack: the kernel put it above the
// environment, with the address of the program headers in it. Nil when there is none.
func findAuxv(maps []checkpoint.Mapping, m Memory, phdr uint64) []byte {
	le := binary.LittleEndian
	for i := range maps {
		if maps[i].Name != "[stack]" {
			continue
		}
		from := max(maps[i].Start, maps[i].End-min(maps[i].End, maxAuxvSearch))
		b := make([]byte, maps[i].End-from)
		for at := 0; at < len(b); at += checkpoint.PageSize { // pages that were not captured stay zero
			m.ReadMemory(from+uint64(at), b[at:min(at+checkpoint.PageSize, len(b))])
		}
		for at := 0; at+16 <= len(b); at += 8 {
			if le.Uint64(b[at:]) != atPhdr || le.Uint64(b[at+8:]) != phdr {
				continue
			}
			first, end := at, at
			for first >= 16 && le.Uint64(b[first-16:]) > 0 && le.Uint64(b[first-16:]) < maxAuxvTag {
				first -= 16
			}
			for end+16 <= len(b) && le.Uint64(b[end:]) != 0 {
				end += 16
			}
			return append(b[first:end:end], make([]byte, 16)...)
		}
	}
	return nil
}

// crossImage goes on over the boundary of an image at which a movement has come to an
// edge. ok is false when there is no image behind it, or the debugger cannot be told.
func (g *Cursor) crossImage(ctx context.Context, r *api.Resume) (stop api.Stop, ok bool, err error) {
	to, atEnd := g.image+1, false
	if r.Dir == api.Backward {
		to, atEnd = g.image-1, true
	}
	if !r.ExecEvents || to < 0 || to > g.session.last() {
		return stop, false, nil
	}
	from := g.program().path
	if err := g.enter(ctx, to, atEnd); err != nil {
		return stop, false, err
	}
	g.reported = nowhere
	stop = g.execStop()
	if atEnd {
		stop.Note = fmt.Sprintf("vplay: back before the execve of %s\n", text.Printable(from))
	}
	g.stop = api.Stop{Kind: api.StopStep, TID: g.tid()}
	return stop, true, nil
}

// execStop tells the debugger that the program is the present image's.
func (g *Cursor) execStop() api.Stop {
	return api.Stop{Kind: api.StopExec, TID: g.tid(), Program: g.program().path}
}
