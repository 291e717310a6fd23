//go:build linux && amd64

package record

import (
	"debug/elf"
	"encoding/hex"
	"io"
)

// How the GNU build-id of a mapped ELF file is found. It is a note in a PT_NOTE segment
// (man 5 elf); debuggers find symbol files by it.

// noteGNUBuildID is NT_GNU_BUILD_ID of elf.h.
const noteGNUBuildID = 3

// buildID returns the GNU build-id of an ELF file in lower-case hex, or "".
func buildID(r io.ReaderAt) string {
	var magic [4]byte
	if _, err := r.ReadAt(magic[:], 0); err != nil || string(magic[:]) != elf.ELFMAG {
		return ""
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return ""
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE || p.Filesz > 1<<16 {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			continue
		}
		if id := buildIDNote(b, int(max(p.Align, 4))); id != "" {
			return id
		}
	}
	return ""
}

// buildIDNote finds the build-id among the notes of one segment.
func buildIDNote(b []byte, align int) string {
	for len(b) >= 12 {
		nameLen, descLen, kind := int(le32(b)), int(le32(b[4:])), le32(b[8:])
		desc := (12 + nameLen + align - 1) &^ (align - 1)
		end := desc + descLen
		if nameLen > len(b) || descLen > len(b) || end > len(b) {
			return ""
		}
		if kind == noteGNUBuildID && nameLen == 4 && string(b[12:15]) == "GNU" {
			return hex.EncodeToString(b[desc:end])
		}
		next := (end + align - 1) &^ (align - 1)
		if next >= len(b) {
			return ""
		}
		b = b[next:]
	}
	return ""
}
