package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// A recording is a stranger's file, and each of its parts can ask for far more
// memory than it takes in the file: lists of empty elements, tables that compress a
// thousandfold, deltas upon deltas. Bounds of the parts do not bound their sum. So
// all decoders of a recording charge one Budget for what they allocate, before they
// do, and for what they go through. Memory is given back when the collector has
// freed what it was for; work is not.

// Budget bounds what reading one recording may cost. It is safe for concurrent
// use. A nil Budget has no bounds.
type Budget struct {
	ctx    context.Context
	memory int64 // bytes
	work   int64 // bytes gone through by decoders for the first time
	scaled bool  // decoded structures are bounded by the file's size, too
	size   atomic.Int64
	beside atomic.Int64              // size of other files
	reader atomic.Pointer[Recording] // the last opened
	used   atomic.Int64
	turned atomic.Int64 // bytes asked for since the last wait for the collector
	worked atomic.Int64
}

// What structures decoded of a file of n bytes may take, and what decoders may go
// through to make them, in bytes, unless the user says otherwise: the greater of
// the least and of n times the share. Files that the user named beside it, as a core file that
// is imported, have twice the share: they hold little but what is asked for.
const (
	leastDecoded = 384 << 20
	decodedShare = 4
	leastWork    = 3 << 30
	workOfFile   = 64
	besideShare  = 2
)

// workShare is how many bytes decoders may go through for each byte of memory that
// they may hold: with a quarter of a usual machine, some seconds.
const workShare = 4

// NewBudget returns a budget of memory bytes, and of four times as many bytes for
// decoders to go through. When ctx ends, so does what is charged to the budget.
func NewBudget(ctx context.Context, memory int64) *Budget {
	if ctx == nil {
		ctx = context.Background()
	}
	return &Budget{ctx: ctx, memory: memory, work: workShare * memory}
}

// Scaled makes the budget smaller for decoded structures, as fits the size of the
// file that is read, and returns it. Memory stays what it is.
func (b *Budget) Scaled() *Budget {
	b.scaled = true
	return b
}

// IsScaled reports whether structures and work are bounded by the size of the file, too.
func (b *Budget) IsScaled() bool { return b != nil && b.scaled }

// leave says that r is not read any more.
func (b *Budget) leave(r *Recording) {
	if b != nil {
		b.reader.CompareAndSwap(r, nil)
	}
}

// fit says that r, a file of size bytes, is read.
func (b *Budget) fit(r *Recording, size int64) {
	if b != nil && r != nil {
		b.reader.Store(r)
	}
	for b != nil {
		was := b.size.Load()
		if size <= was || b.size.CompareAndSwap(was, size) {
			return
		}
	}
}

// AddFile says that a file of size bytes that the user named is read beside the
// recording: it counts as a part of it.
func (b *Budget) AddFile(size int64) {
	if b != nil {
		b.beside.Add(size)
	}
}

// Renew lets as much work be done again: somebody waits for an answer, and may ask
// for the next one.
func (b *Budget) Renew() {
	if b != nil {
		b.worked.Store(0)
	}
}

// decoded is the bound of decoded structures, in bytes.
func (b *Budget) decoded() int64 {
	if !b.scaled {
		return b.memory
	}
	return min(b.memory, max(leastDecoded, decodedShare*(b.size.Load()+besideShare*b.beside.Load())))
}

// Earn lets n bytes more be gone through, of those that have been: something that takes as long, and
// that a file may ask for without a bound, has been done, and was right.
func (b *Budget) Earn(n int64) {
	for b != nil {
		was := b.worked.Load()
		if b.worked.CompareAndSwap(was, max(was-max(n, 0), 0)) {
			return
		}
	}
}

// Decoded returns the bound of decoded structures, in bytes; 0 when there is none.
func (b *Budget) Decoded() int64 {
	if b == nil {
		return 0
	}
	return b.decoded()
}

// workLimit is the bound of what decoders may go through, in bytes.
func (b *Budget) workLimit() int64 {
	if !b.scaled {
		return b.work
	}
	return min(b.work, max(leastWork, workOfFile*(b.size.Load()+besideShare*b.beside.Load())))
}

// Context returns what ends the reading, and the replay, of the recording.
func (b *Budget) Context() context.Context {
	if b == nil {
		return context.Background()
	}
	return b.ctx
}

// Memory returns the bound of memory, in bytes; 0 when there is none.
func (b *Budget) Memory() int64 {
	if b == nil {
		return 0
	}
	return b.memory
}

// LimitError says that a recording asks for more than its budget has.
type LimitError struct {
	File  string
	Part  string // the member or the table that asked
	Work  bool   // the limit is of work, not of memory
	Limit int64  // bytes
}

// Error names the limit and the part.
func (e *LimitError) Error() string {
	what := "memory"
	if e.Work {
		what = "decoding"
	}
	s := "checkpoint: "
	if e.File != "" {
		s += e.File + ": "
	}
	return s + fmt.Sprintf("%s: asks for more than the limit of %d MiB of %s", e.Part, e.Limit>>20, what)
}

const (
	// collections is how often a budget that is used up waits for the collector.
	collections = 3
	// collectionShare is how much faster the collector goes through memory than decoders.
	collectionShare = 4
	// turnover is the part of the limit that is taken between two such waits where they
	// are worth while: else the room is so little that they are all that goes on.
	turnover = 16
)

// Take charges n bytes of memory for a part, a member or a table that the error
// names. Errors: *LimitError, and those of the context.
func (b *Budget) Take(n int64, part string) error {
	if b == nil || n == 0 {
		return nil
	}
	if err := b.ctx.Err(); err != nil {
		return err
	}
	limit := b.decoded()
	b.turned.Add(n)
	for try := 0; ; try++ {
		if n <= limit && b.used.Add(n) <= limit {
			return nil
		}
		if n > limit || try == collections {
			break
		}
		used := b.used.Add(-n)
		if r := b.reader.Load(); r != nil {
			r.tables.drop() // they are there to be quick only
		}
		if try == 0 && b.turned.Swap(0) < limit/turnover {
			if err := b.Spend(used/collectionShare, part); err != nil {
				return err
			}
		}
		runtime.GC() // what is dropped may not have been given back yet
		time.Sleep(time.Millisecond)
	}
	if n <= limit {
		b.used.Add(-n)
	}
	return &LimitError{Part: part, Limit: limit}
}

// Give gives n bytes of memory back.
func (b *Budget) Give(n int64) {
	if b != nil {
		b.used.Add(-n)
	}
}

// Spend charges the way through n bytes, or what takes as long. Errors are those of
// Take.
func (b *Budget) Spend(n int64, part string) error {
	if b == nil {
		return nil
	}
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if limit := b.workLimit(); b.worked.Add(n) > limit {
		return &LimitError{Part: part, Work: true, Limit: limit}
	}
	return nil
}

// charge is what one decoded structure has taken of a budget. The zero charge is
// of none.
type charge struct {
	b    *Budget
	part string
	n    int64
}

// add takes n bytes more.
func (c *charge) add(n int64) error {
	if c == nil || c.b == nil {
		return nil
	}
	if err := c.b.Take(n, c.part); err != nil {
		return err
	}
	c.n += n
	return nil
}

// drop gives all back.
func (c *charge) drop() {
	if c != nil {
		c.b.Give(c.n)
		c.n = 0
	}
}

// keep gives all back when nothing refers to what p points to.
func keep[T any](c *charge, p *T) {
	if c.b == nil || c.n == 0 {
		return
	}
	b := c.b
	runtime.AddCleanup(p, b.Give, c.n)
	c.n = 0
}

// limited adds the file's name to a LimitError; ok says that err is one, or that
// the budget's context has ended.
func (r *Recording) limited(err error) (out error, ok bool) {
	var limit *LimitError
	if errors.As(err, &limit) {
		return &LimitError{File: r.file, Part: limit.Part, Work: limit.Work, Limit: limit.Limit}, true
	}
	return err, errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
