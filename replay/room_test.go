package replay

import (
	"sync"
	"testing"
	"testing/synctest"
)

// TestRoom: no more is inside than fits, but for one that is too large for itself, and nobody waits for ever.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(100)
		var mu sync.Mutex
		var now, most, inside int64
		hold := make(chan struct{})
		for _, n := range []int64{60, 40, 60, 300, 10, 50} {
			go func() {
				r.enter(n)
				mu.Lock()
				now += n
				inside++
				if inside > 1 {
					most = max(most, now)
				}
				mu.Unlock()
				<-hold
				mu.Lock()
				now -= n
				inside--
				mu.Unlock()
				r.leave(n)
			}()
		}
		for range 6 {
			synctest.Wait()
			if inside == 0 {
				t.Fatal("all wait, and nobody is inside")
			}
			hold <- struct{}{}
		}
		synctest.Wait()
		if most > 100 || inside != 0 || r.taken != 0 {
			t.Errorf("%d bytes inside at once, %d and %d bytes there at the end", most, inside, r.taken)
		}
	})
	// Without a limit, all at once.
	r := newRoom(0)
	r.enter(1 << 40)
	r.enter(1 << 40)
}
