package replay

import "sync"

// room is the memory that decoded intervals may take. One of a program that makes hundreds of thousands of calls in its 100 ms takes
// more than half of it: such ones are replayed one after the other. The second would be refused else, and a
// recording that is whole with it.
type room struct {
	limit int64 // bytes; 0: as much as is wanted

	mu     sync.Mutex
	change *sync.Cond // somebody has left
	taken  int64
	inside int
}

func newRoom(limit int64) *room {
	r := &room{limit: limit}
	r.change = sync.NewCond(&r.mu)
	return r
}

// enter waits until n bytes more fit. They always do where nobody is inside: whether they
// fit the budget is found out by reading.
func (r *room) enter(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.inside > 0 && r.limit > 0 && r.taken+n > r.limit {
		r.change.Wait()
	}
	r.taken += n
	r.inside++
}

// leave gives n bytes back.
func (r *room) leave(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken -= n
	r.inside--
	r.change.Broadcast()
}

// isLarge reports whether it matters when the memory of n bytes is given back.
func (r *room) isLarge(n int64) bool { return r.limit > 0 && n > r.limit/16 }
