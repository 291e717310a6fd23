package debug

import (
	"encoding/binary"
	"slices"

	"vplay/checkpoint"
)

// The auxiliary vector as debuggers are shown it (getauxval(3); linux,
// include/uapi/linux/auxvec.h). The file that debuggers read it from is in files.go.

// Entries of the auxiliary vector (linux, include/uapi/linux/auxvec.h).
const (
	atIgnore      = 1
	atPhdr        = 3
	atBase        = 7
	atSysinfoEhdr = 33
)

// maxAuxvTag is above all tags that Linux has.
const maxAuxvTag = 64

// debuggerAuxv is the auxiliary vector as debuggers see it: the recorder hides
// the vDSO from the program, and this shows it again, so that its symbols are
// known.
func debuggerAuxv(auxv []byte, maps []checkpoint.Mapping) []byte {
	for i := range maps {
		if maps[i].Name != "[vdso]" {
			continue
		}
		le := binary.LittleEndian
		for at := 0; at+16 <= len(auxv); at += 16 {
			if le.Uint64(auxv[at:]) == atIgnore && le.Uint64(auxv[at+8:]) == maps[i].Start {
				auxv = slices.Clone(auxv)
				le.PutUint64(auxv[at:], atSysinfoEhdr)
				return auxv
			}
		}
	}
	return auxv
}

// auxvValue returns the value of the entry with the given tag.
func auxvValue(auxv []byte, tag uint64) (uint64, bool) {
	le := binary.LittleEndian
	for at := 0; at+16 <= len(auxv); at += 16 {
		if le.Uint64(auxv[at:]) == tag {
			return le.Uint64(auxv[at+8:]), true
		}
	}
	return 0, false
}
