package x86

// testBus is a flat map of pages for tests.
type testBus struct {
	pages  map[uint64]*testPage
	codeID uint64
	asked  int // CodeID was called
	onRead func(a uint64, n int)
	// onWrite is called for every store that comes through Write.
	onWrite func(a uint64, n int)
}

type testPage struct {
	b       [pageSize]byte
	r, w, x bool
	slow    bool
	code    uint64 // identity while marked as code
}

func newTestBus() *testBus { return &testBus{pages: map[uint64]*testPage{}} }

// add maps n bytes at a with protection prot ("rwx").
func (t *testBus) add(a uint64, n int, prot string) {
	for p := a &^ (pageSize - 1); p < a+uint64(n); p += pageSize {
		pg := t.pages[p]
		if pg == nil {
			pg = &testPage{}
			t.pages[p] = pg
		}
		pg.r, pg.w, pg.x = false, false, false
		for _, k := range prot {
			switch k {
			case 'r':
				pg.r = true
			case 'w':
				pg.w = true
			case 'x':
				pg.x = true
			}
		}
	}
}

// put writes b at a whatever the protection.
func (t *testBus) put(a uint64, b []byte) {
	for i, v := range b {
		p := a + uint64(i)
		pg := t.pages[p&^(pageSize-1)]
		pg.b[p&(pageSize-1)] = v
		pg.code = 0
	}
}

func (p *testPage) allows(k Access) bool {
	switch k {
	case Load:
		return p.r
	case Store:
		return p.w
	case Exec:
		return p.x
	}
	return false
}

func (t *testBus) Translate(a uint64, k Access) (*[pageSize]byte, bool) {
	p := t.pages[a]
	if p == nil || !p.allows(k) {
		return nil, false
	}
	return &p.b, !p.slow && (k != Store || p.code == 0)
}

func (t *testBus) Probe(a uint64, n int, k Access) Fault {
	first, last := a&^(pageSize-1), (a+uint64(n)-1)&^(pageSize-1)
	for p := first; p != last+pageSize; p += pageSize {
		at := p
		if p == first {
			at = a
		}
		switch pg := t.pages[p]; {
		case pg == nil:
			return Fault{Kind: FaultNotMapped, Access: k, Addr: at}
		case !pg.allows(k):
			return Fault{Kind: FaultProtection, Access: k, Addr: at}
		}
	}
	return Fault{}
}

func (t *testBus) Read(a uint64, b []byte) Fault {
	if f := t.Probe(a, len(b), Load); f.Kind != FaultNone {
		return f
	}
	for i := range b {
		p := a + uint64(i)
		b[i] = t.pages[p&^(pageSize-1)].b[p&(pageSize-1)]
	}
	if t.onRead != nil {
		t.onRead(a, len(b))
	}
	return Fault{}
}

func (t *testBus) Write(a uint64, b []byte) Fault {
	if f := t.Probe(a, len(b), Store); f.Kind != FaultNone {
		return f
	}
	t.put(a, b)
	if t.onWrite != nil {
		t.onWrite(a, len(b))
	}
	return Fault{}
}

func (t *testBus) Fetch(a uint64, b []byte) (int, Fault) {
	for i := range b {
		p := a + uint64(i)
		if f := t.Probe(p, 1, Exec); f.Kind != FaultNone {
			return i, f
		}
		b[i] = t.pages[p&^(pageSize-1)].b[p&(pageSize-1)]
	}
	return len(b), Fault{}
}

func (t *testBus) CodeID(a uint64) uint64 {
	t.asked++
	p := t.pages[a]
	if p == nil || !p.x {
		return 0
	}
	if p.code == 0 {
		t.codeID++
		p.code = t.codeID
	}
	return p.code
}
