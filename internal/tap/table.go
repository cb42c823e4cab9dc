package tap

// Conn is one connection: two flows that belong together.
type Conn struct {
	Key Key
	Gen uint64 // numbers the connections of a table from 1; a later one on the same key has a higher number
	In  Flow   // what the remote end sent
	Out Flow   // what the local end sent

	opened   int64
	prev     *Conn // the one before on this key
	over     bool  // a later one has begun
	asked    bool
	old, new *Conn // neighbours among those not asked for
}

// Opened is the stamp of the packet that began the connection: its SYN, or the answer to it if the SYN was lost by the capture.
func (c *Conn) Opened() int64 { return c.opened }

func (c *Conn) flow(out bool) *Flow {
	if out {
		return &c.Out
	}
	return &c.In
}

// defaultConns is how many connections a table holds: 10,000 open ones, what is left of closed ones, and other programs'. An idle
// one takes 0.7 KiB.
const defaultConns = 1 << 15

// Table finds the connection of each packet. It knows those whose SYN it has seen, so a capture begins before they are opened. It
// holds a bounded number of connections: when it is full, the oldest one that nobody has asked for makes room; when all have been
// asked for, a new one is not followed.
type Table struct {
	max   int
	conns map[Key]*Conn // the newest of each key
	n     int           // of all
	gen   uint64
	lost  uint32 // losses of the capture
	stats TableStats

	oldest, youngest *Conn // those not asked for
}

// TableStats count what a table did not follow.
type TableStats struct {
	Strays  int64 // packets of connections whose beginning was not seen, or that were forgotten
	Evicted int64 // connections forgotten to make room
	Refused int64 // connections not followed because the table was full
	Losses  int64 // places in the sequence of packets at which the capture may have lost some
}

// NewTable returns a table of at most so many connections; 0 stands for 32,768.
func NewTable(conns int) *Table {
	if conns <= 0 {
		conns = defaultConns
	}
	return &Table{max: conns, conns: map[Key]*Conn{}}
}

// Stats returns the counts.
func (t *Table) Stats() TableStats {
	s := t.stats
	s.Losses = int64(t.lost)
	return s
}

// Len is the number of connections held.
func (t *Table) Len() int { return t.n }

// Add takes the next packet.
func (t *Table) Add(p *Packet) {
	if p.Lost {
		t.lost++
		return
	}
	c, seq := t.conns[p.Key], p.Seq
	if p.Flags&SYN != 0 {
		if p.Flags&RST != 0 {
			return // no such thing
		}
		c = t.syn(c, p)
		seq++ // a SYN takes one number; data may follow in the same packet
	}
	if c == nil || c.over {
		t.stats.Strays++
		return
	}
	f := c.flow(p.Out)
	if !f.begun {
		t.stats.Strays++
		return
	}
	if p.Flags&RST != 0 {
		f.reset(p.At)
		return
	}
	if p.Flags&(ACK|SYN) == ACK {
		c.flow(!p.Out).window(p.Window != 0)
	}
	if p.Len > 0 {
		f.add(seq, p.Len, p.At)
	}
	if p.Flags&FIN != 0 {
		f.finish(seq+uint32(p.Len), p.At)
	}
}

// syn returns the connection that a SYN belongs to: c, the newest of its key, or a new one.
func (t *Table) syn(c *Conn, p *Packet) *Conn {
	if c != nil {
		f, peer := c.flow(p.Out), c.flow(!p.Out)
		switch {
		case f.begun && f.isn == p.Seq+1:
			return c // sent again
		case !f.begun && p.Flags&ACK != 0 && peer.begun && peer.answers(p.Ack):
			t.begin(c, p)
			return c
		}
		c.over = true
	}
	n := t.open(p)
	if n == nil {
		return nil
	}
	t.begin(n, p)
	return n
}

// answers tells whether an acknowledgement in a SYN is for this flow's SYN and nothing that it has not sent.
func (f *Flow) answers(ack uint32) bool {
	off := f.offset(ack)
	return off >= 0 && off <= f.high
}

func (t *Table) begin(c *Conn, p *Packet) {
	limit := maxMarksUnasked
	if c.asked {
		limit = maxMarks
	}
	c.flow(p.Out).begin(p.Seq+1, p.At, &t.lost, limit)
}

// open makes a connection, and room for it.
func (t *Table) open(p *Packet) *Conn {
	if t.n >= t.max {
		if t.oldest == nil {
			t.stats.Refused++
			return nil
		}
		t.stats.Evicted++
		t.Forget(t.oldest)
	}
	t.gen++
	c := &Conn{Key: p.Key, Gen: t.gen, opened: p.At, prev: t.conns[p.Key]}
	t.conns[p.Key] = c
	t.n++
	if c.old = t.youngest; c.old != nil {
		c.old.new = c
	} else {
		t.oldest = c
	}
	t.youngest = c
	return c
}

// Get returns the newest connection on a key, nil if there is none (yet). From then on it is held until it is forgotten. Ask as
// soon as the connection is open: until then a table keeps 1,024 marks a direction.
func (t *Table) Get(key Key) *Conn { return t.ask(t.conns[key]) }

// Find returns the newest connection on a key that began at a stamp from one up to another, nil if there is none (yet); else it
// is as Get. The times around connect(2) tell a connection from an earlier or later one on the same ports.
func (t *Table) Find(key Key, from, to int64) *Conn {
	c := t.conns[key]
	for c != nil && (c.opened < from || c.opened > to) {
		c = c.prev
	}
	return t.ask(c)
}

func (t *Table) ask(c *Conn) *Conn {
	if c != nil && !c.asked {
		c.asked = true
		t.unlink(c)
		c.In.limit, c.Out.limit = maxMarks, maxMarks
	}
	return c
}

// unlink takes a connection out of those not asked for.
func (t *Table) unlink(c *Conn) {
	if c.old != nil {
		c.old.new = c.new
	} else {
		t.oldest = c.new
	}
	if c.new != nil {
		c.new.old = c.old
	} else {
		t.youngest = c.old
	}
	c.old, c.new = nil, nil
}

// Forget drops a connection. What it knew stays readable by those who hold it, but nothing is added any more. Forgetting twice,
// or nil, does nothing.
func (t *Table) Forget(c *Conn) {
	if c == nil {
		return
	}
	newest := t.conns[c.Key]
	switch {
	case newest == nil:
		return
	case newest == c && c.prev == nil:
		delete(t.conns, c.Key)
	case newest == c:
		t.conns[c.Key] = c.prev
	default:
		for newest.prev != c {
			if newest = newest.prev; newest == nil {
				return
			}
		}
		newest.prev = c.prev
	}
	if !c.asked {
		t.unlink(c)
	}
	c.prev, c.over = nil, true
	t.n--
}
