package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
)

// note is an ELF note (elf(5), "Notes").
func note(name string, kind uint32, desc []byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(len(name)))
	b = le.AppendUint32(b, uint32(len(desc)))
	b = le.AppendUint32(b, kind)
	b = append(b, name...)
	b = append(b, make([]byte, -len(b)&3)...)
	b = append(b, desc...)
	return append(b, make([]byte, -len(b)&3)...)
}

// notesMemory is memory from address 0 on.
type notesMemory []byte

func (m notesMemory) ReadMemory(addr uint64, b []byte) int {
	if addr >= uint64(len(m)) {
		return 0
	}
	return copy(b, m[addr:])
}

// TestNotesOfGo: Go's linker leaves the note of the build-id out of the segment of notes,
// right behind it.
func TestNotesOfGo(t *testing.T) {
	id := bytes.Repeat([]byte{0xab, 1}, 10)
	own := note("Go\x00\x00", 4, bytes.Repeat([]byte{'x'}, 83))
	for name, c := range map[string]struct {
		after []byte
		want  string
	}{
		"behind it":     {note("GNU\x00", 3, id), "ab01ab01ab01ab01ab01ab01ab01ab01ab01ab01"},
		"nothing there": {nil, ""},
		"code there":    {bytes.Repeat([]byte{0xcc}, 64), ""},
		"another note":  {note("GNU\x00", 1, id), ""},
		"cut":           {note("GNU\x00", 3, id)[:20], ""},
	} {
		mod := &Module{Segments: []elf.ProgHeader{{Type: elf.PT_NOTE, Vaddr: 0, Filesz: uint64(len(own)), Memsz: uint64(len(own))}}}
		mod.readNotes(notesMemory(append(bytes.Clone(own), c.after...)))
		if mod.BuildID != c.want {
			t.Errorf("%s: the build-id is %q, want %q", name, mod.BuildID, c.want)
		}
	}
}
