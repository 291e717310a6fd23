package checkpoint

import (
	"encoding/binary"
	"fmt"
)

// What a file that does not open is: not a recording, or one that was cut.

// diagnose turns the error of the zip reader into one that says what a file
// without a readable directory is: not a recording, or one that was cut. The
// recorder itself never leaves a cut file under its final name; a copy may be
// cut.
func (r *Recording) diagnose(zipErr error) error {
	const (
		localHeader = 30      // bytes, PKWARE APPNOTE 4.3.7
		most        = 1 << 20 // members, so that a hostile file takes no long time
	)
	buf := make([]byte, localHeader)
	whole, at := 0, int64(0)
	last := ""
	for whole < most {
		if n, _ := r.src.ReadAt(buf, at); n < localHeader {
			break
		}
		if binary.LittleEndian.Uint32(buf) != 0x04034b50 {
			break
		}
		size := int64(binary.LittleEndian.Uint32(buf[18:]))
		nameLen, extra := int64(binary.LittleEndian.Uint16(buf[26:])), int64(binary.LittleEndian.Uint16(buf[28:]))
		name := make([]byte, nameLen)
		if n, _ := r.src.ReadAt(name, at+localHeader); int64(n) < nameLen {
			break
		}
		if whole == 0 && string(name) != nameMagic {
			return fmt.Errorf("checkpoint: %s: %w", r.file, ErrNotRecording)
		}
		end := at + localHeader + nameLen + extra + size
		if end > r.size {
			last = string(name)
			break
		}
		whole, at = whole+1, end
	}
	if whole == 0 && last == "" {
		return fmt.Errorf("checkpoint: %s: %w", r.file, ErrNotRecording)
	}
	what := fmt.Sprintf("the file was cut or its directory is damaged (%v); %d whole parts are before the damage", zipErr, whole)
	if last != "" {
		what += ", it is in " + last
	}
	return &FormatError{File: r.file, Offset: at, What: what}
}
