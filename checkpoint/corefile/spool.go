package corefile

import (
	"context"
	"errors"
	"io"
	"os"
)

// Spool is a temporary file that a stream is put into to be read in any order. It is gone when it is
// closed, and on Unix with the process, however that ends. Pages of zeros take no room in it.
type Spool struct {
	f      *os.File
	size   int64
	limit  int64
	cut    bool
	failed bool // to write
}

// NewSpool makes a spool of at most limit bytes in a folder, or where temporary files are when dir is empty.
func NewSpool(dir string, limit int64) (*Spool, error) {
	f, err := os.CreateTemp(dir, ".vplay-core-*.tmp")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // Windows does it when it is closed
	return &Spool{f: f, limit: limit}, nil
}

// Close removes the file.
func (s *Spool) Close() {
	_ = s.f.Close() // it goes
	_ = os.Remove(s.f.Name())
}

// Size returns how many bytes it has.
func (s *Spool) Size() int64 { return s.size }

// IsCut reports whether there was more than the limit.
func (s *Spool) IsCut() bool { return s.cut }

// ReadAt implements io.ReaderAt.
func (s *Spool) ReadAt(b []byte, off int64) (int, error) {
	if off >= s.size {
		return 0, io.EOF
	}
	short := int64(len(b)) > s.size-off
	if short {
		b = b[:s.size-off]
	}
	n, err := s.f.ReadAt(b, off)
	if errors.Is(err, io.EOF) { // behind the last byte that is not zero
		clear(b[n:])
		n, err = len(b), nil
	}
	if short && err == nil {
		err = io.EOF
	}
	return n, err
}

// Fill puts a stream in, up to its end, the limit, or that of ctx.
func (s *Spool) Fill(ctx context.Context, r io.Reader) error {
	return s.fill(ctx, r, func(int64) error { return nil })
}

var zeros [pageSize]byte

// fill is Fill; charge is asked before bytes are taken.
func (s *Spool) fill(ctx context.Context, r io.Reader, charge func(n int64) error) error {
	buf := make([]byte, 64*pageSize)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(r, buf)
		over := int64(n) > s.limit-s.size
		if over {
			n, s.cut = int(s.limit-s.size), true
		}
		if cerr := charge(int64(n)); cerr != nil {
			return cerr
		}
		if werr := s.add(buf[:n]); werr != nil {
			s.failed = true
			return werr
		}
		switch {
		case over, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && n < len(buf) && isEnd(r):
			return nil
		case err != nil:
			return err
		}
	}
}

// isEnd reports whether a stream is over; a decoder that found its input cut off says so again.
func isEnd(r io.Reader) bool {
	var b [1]byte
	n, err := r.Read(b[:])
	return n == 0 && errors.Is(err, io.EOF)
}

// add writes bytes, but for pages of zeros.
func (s *Spool) add(b []byte) error {
	for len(b) > 0 {
		page := b[:min(len(b), pageSize)]
		if string(page) != string(zeros[:len(page)]) {
			if _, err := s.f.WriteAt(page, s.size); err != nil {
				return err
			}
		}
		s.size += int64(len(page))
		b = b[len(page):]
	}
	return nil
}
