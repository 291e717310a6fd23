package debug

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/debug/api"
	"vplay/replay/debug/text"
)

// A process that calls execve becomes another program, with memory of its own: an
// image. The recording of a whole run has the intervals of all of them. Each image has
// a timeline; the debugger is on that of one of them, at first the last. Where a
// movement comes to the border of an image, it goes on to the neighbour if the
// debugger can be told that the program is another now, and ends there if not.

// image is one program that the process was.
type image struct {
	infos   []checkpoint.IntervalInfo
	program string // path
	args    []string
	auxv    []byte
}

// newImages lists the images of the recorded process, in order. Of the last one the
// manifest tells what it is; the others are asked when they are entered.
func newImages(rec *checkpoint.Recording) []image {
	all := rec.Images()
	out := make([]image, len(all))
	for i := range all {
		out[i].infos = all[i]
	}
	if n := len(out); n > 0 {
		m := rec.Manifest()
		out[n-1].program, out[n-1].args, out[n-1].auxv = m.Program, m.Args, m.Auxv
	}
	return out
}

// Close releases the timelines.
func (g *Cursor) Close() {
	g.cur.Close()
	if g.t != g.last {
		g.t.Close()
	}
	g.last.Close()
}

// program is the program at the present position.
func (g *Cursor) program() *image { return &g.images[g.image] }

// isLastImage reports whether the present position is behind the last execve.
func (g *Cursor) isLastImage() bool { return g.image == len(g.images)-1 }

// imageOf returns the image that has an interval, the present one where none has.
func (g *Cursor) imageOf(id uint32) int {
	for i := range g.images {
		for j := range g.images[i].infos {
			if g.images[i].infos[j].ID == id {
				return i
			}
		}
	}
	return g.image
}

// enter makes image n the present one, with the cursor at its beginning or its end.
// The timeline of the last image is kept, with what it has learnt; the others' are
// made anew.
func (g *Cursor) enter(ctx context.Context, n int, atEnd bool) error {
	t := g.last
	if n != len(g.images)-1 {
		var err error
		if t, err = replay.NewImageTimeline(g.s, g.images[n].infos, g.memory); err != nil {
			return err
		}
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
		if t != g.last {
			t.Close()
		}
		return err
	}
	g.cur.Close()
	if g.t != g.last {
		g.t.Close()
	}
	g.t, g.cur, g.image, g.known, g.functions = t, cur, n, nil, nil
	clear(g.files.images)
	g.identify()
	return nil
}

// identify finds out which program the present image is, from its memory.
func (g *Cursor) identify() {
	p := g.program()
	if p.program != "" {
		return
	}
	maps, mem := g.maps(), Memory{g.mem()}
	for _, mod := range loader.Modules(maps, mem) {
		isMain := mod.Type == elf.ET_EXEC
		for i := range mod.Segments {
			isMain = isMain || mod.Segments[i].Type == elf.PT_INTERP
		}
		if !isMain {
			continue
		}
		p.program, p.args = mod.Path, []string{mod.Path}
		p.auxv = findAuxv(maps, mem, mod.Bias+phdrAddress(mod))
		return
	}
	p.program = "unknown program"
}

// phdrAddress is the file virtual address of a module's program headers.
func phdrAddress(mod *loader.Module) uint64 {
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

// crossImage goes on over the border of an image at which a movement has come to an
// edge. ok is false when there is no image behind it, or the debugger cannot be told.
func (g *Cursor) crossImage(ctx context.Context, r *api.Resume) (stop api.Stop, ok bool, err error) {
	to, atEnd := g.image+1, false
	if r.Dir == api.Backward {
		to, atEnd = g.image-1, true
	}
	if !r.ExecEvents || to < 0 || to >= len(g.images) {
		return stop, false, nil
	}
	from := g.program().program
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
	return api.Stop{Kind: api.StopExec, TID: g.tid(), Program: g.program().program}
}
