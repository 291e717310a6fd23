package corefile

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"vplay/checkpoint"
)

// Compressed core files, as systemd-coredump keeps them (zstd) and people send them (gzip). Segments are read in
// any order, so that such a file is unpacked first, into a file that has no name or loses it at once. Pages of zeros
// become holes there.

// packing is a way to compress files that is known by its first bytes.
type packing struct {
	magic string
	name  string
	open  func(io.Reader) (io.Reader, error) // nil: it cannot be unpacked here
}

var packings = []packing{
	{"\x28\xb5\x2f\xfd", "zstd", func(r io.Reader) (io.Reader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20), zstd.WithDecoderLowmem(true))
	}},
	{"\x1f\x8b", "gzip", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"\x04\x22\x4d\x18", "lz4", nil},
	{"\xfd7zXZ\x00", "xz", nil},
	{"BZh", "bzip2", nil},
}

// ErrPacked is wrapped by the error of Unpack for a compression that it does not know.
var ErrPacked = errors.New("it must be unpacked first")

// packingOf returns how a file is compressed, nil when it is not.
func packingOf(r io.ReaderAt) *packing {
	var b [6]byte
	n, _ := r.ReadAt(b[:], 0)
	for i := range packings {
		if bytes.HasPrefix(b[:n], []byte(packings[i].magic)) {
			return &packings[i]
		}
	}
	return nil
}

// Unpack returns the content of a file that is compressed, in a temporary file, with its size: f itself, with its
// size, when it is not. done removes the temporary file. progress may be nil; it is told how many bytes were
// unpacked. Errors: ErrPacked (wrapped), *FormatError, *checkpoint.LimitError, ctx's, and those of the files.
func Unpack(ctx context.Context, f *os.File, budget *checkpoint.Budget, progress func(n int64)) (r io.ReaderAt, size int64, done func(), err error) {
	p := packingOf(f)
	if p == nil {
		st, err := f.Stat()
		if err != nil {
			return nil, 0, nil, err
		}
		return f, st.Size(), func() {}, nil
	}
	if p.open == nil {
		return nil, 0, nil, fmt.Errorf("corefile: %s is compressed by %s: %w", f.Name(), p.name, ErrPacked)
	}
	if st, err := f.Stat(); err == nil {
		budget.AddFile(st.Size())
	}
	in, err := p.open(io.NewSectionReader(f, 0, 1<<62))
	if err != nil {
		return nil, 0, nil, &FormatError{File: f.Name(), What: err.Error()}
	}
	if c, ok := in.(*zstd.Decoder); ok {
		defer c.Close()
	}
	s, err := NewSpool("", 1<<62)
	if err != nil {
		return nil, 0, nil, err
	}
	err = s.fill(ctx, in, func(n int64) error {
		if progress != nil {
			progress(s.Size())
		}
		return budget.Spend(n, "unpacking")
	})
	if err != nil {
		s.Close()
		var limit *checkpoint.LimitError
		switch {
		case errors.As(err, &limit):
			return nil, 0, nil, &checkpoint.LimitError{File: f.Name(), Part: limit.Part, Work: limit.Work, Limit: limit.Limit}
		case ctx.Err() != nil || s.failed:
			return nil, 0, nil, err
		}
		return nil, 0, nil, &FormatError{File: f.Name(), What: err.Error()}
	}
	return s, s.Size(), s.Close, nil
}
