package checkpoint

import "testing"

// TestBlockCache: blocks are kept up to the room there is, the most recently used ones, and room follows the memory
// that reading may take.
func TestBlockCache(t *testing.T) {
	for _, c := range []struct{ memory, room int64 }{
		{0, minBlockRoom}, {1 << 20, minBlockRoom}, {1 << 30, 64 << 20}, {1 << 40, maxBlockRoom},
	} {
		if got := blockRoom(c.memory); got != c.room {
			t.Errorf("room for %d bytes is %d, want %d", c.memory, got, c.room)
		}
	}
	var c blockCache
	c.init(10)
	keys := make([]storedBlock, 5)
	for i := range keys {
		c.put(&loadedBlock{key: &keys[i], raw: make([]byte, 3)})
		c.get(&keys[0])
		c.put(&loadedBlock{key: &keys[0], raw: make([]byte, 3)}) // is there already
	}
	for i, kept := range []bool{true, false, false, true, true} {
		if got := c.get(&keys[i]) != nil; got != kept {
			t.Errorf("block %d is kept: %t, want %t", i, got, kept)
		}
	}
	if c.held != 9 || c.recent.Len() != 3 {
		t.Errorf("%d bytes in %d blocks", c.held, c.recent.Len())
	}
}
