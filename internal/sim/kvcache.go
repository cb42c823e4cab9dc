package sim

// kvCache is the memory for keys and values: blocks of tokens, shared between sequences that begin alike. A block whose last user
// has gone keeps its content until it is needed, least recently used first, as in vLLM's block pool.
type kvCache struct {
	blocks []kvBlock
	byHash map[uint64]int32 // content of a full block -> the block that holds it
	// The free blocks as a list: first to be used again at the head. Index len(blocks) is both ends.
	free int
}

type kvBlock struct {
	hash       uint64 // of its tokens and all before them; valid when known
	known      bool   // it can be found by its hash
	users      int32
	prev, next int32 // in the free list, while users is 0
}

func newKVCache(n int) *kvCache {
	c := &kvCache{blocks: make([]kvBlock, n+1), byHash: map[uint64]int32{}}
	end := int32(n)
	c.blocks[end] = kvBlock{prev: end, next: end}
	for i := range end {
		c.pushBack(i)
	}
	return c
}

func (c *kvCache) end() int32 { return int32(len(c.blocks) - 1) }

// size returns the number of blocks.
func (c *kvCache) size() int { return len(c.blocks) - 1 }

func (c *kvCache) insert(id, before int32) {
	b := &c.blocks[id]
	b.next, b.prev = before, c.blocks[before].prev
	c.blocks[b.prev].next = id
	c.blocks[before].prev = id
	c.free++
}

func (c *kvCache) pushBack(id int32)  { c.insert(id, c.end()) }
func (c *kvCache) pushFront(id int32) { c.insert(id, c.blocks[c.end()].next) }

func (c *kvCache) unlink(id int32) {
	b := &c.blocks[id]
	c.blocks[b.prev].next = b.next
	c.blocks[b.next].prev = b.prev
	c.free--
}

// take gives out a free block; its old content is forgotten. The caller has made sure that there is one.
func (c *kvCache) take() int32 {
	id := c.blocks[c.end()].next
	if id == c.end() {
		panic("sim: KV blocks over-committed")
	}
	c.unlink(id)
	b := &c.blocks[id]
	if b.known {
		delete(c.byHash, b.hash)
		b.known = false
	}
	b.users = 1
	return id
}

// find returns the block that holds a content.
func (c *kvCache) find(hash uint64) (int32, bool) {
	id, ok := c.byHash[hash]
	return id, ok
}

// share adds a user to a block that was found.
func (c *kvCache) share(id int32) {
	if c.blocks[id].users == 0 {
		c.unlink(id)
	}
	c.blocks[id].users++
}

// learn makes a full block findable. When its content is held by another block already, that one stays the one to be found.
func (c *kvCache) learn(id int32, hash uint64) {
	if _, ok := c.byHash[hash]; ok || c.blocks[id].known {
		return
	}
	c.byHash[hash] = id
	c.blocks[id].hash, c.blocks[id].known = hash, true
}

// release gives up a sequence's use of its blocks. Later blocks are used again before earlier ones, which more others can share,
// and blocks without a findable content before all.
func (c *kvCache) release(ids []int32) {
	for i := len(ids) - 1; i >= 0; i-- {
		b := &c.blocks[ids[i]]
		if b.users--; b.users > 0 {
			continue
		}
		if b.users < 0 {
			panic("sim: KV block released twice")
		}
		if b.known {
			c.pushBack(ids[i])
		} else {
			c.pushFront(ids[i])
		}
	}
}
