package x86

// MappedBus is a Bus whose pages are parts of a file of memory, so that an engine can map them where its code finds them
// by the guest's address: then the host's own translation does what a translation cache does.
type MappedBus interface {
	Bus
	// Mapping does what Translate does for an access of kind k to the page at page-aligned address a, and returns where the page is
	// in the file, with others around it. With ok, loads of those may go there directly until FlushTLB or FlushTLBPage.
	Mapping(a uint64, k Access) (m Mapping, ok bool)
	// MappedFile returns the file's descriptor, which stays the Bus's own. ok is false while no page may be mapped: there is no such
	// file, it does not pay, or somebody wants to see which pages are accessed.
	MappedFile() (fd int, ok bool)
}

// Mapping is a range of pages that lie one behind the other in the file, as they do in memory.
type Mapping struct {
	Addr   uint64 // page-aligned
	Offset int64  // of the first page in the file
	Pages  int
	Stores bool // stores may go there, too
}

// MappedBus returns the processor's Bus if it is one and pages may be mapped now, and its file's descriptor; else nil.
func (c *CPU) MappedBus() (MappedBus, int) {
	if c.mappedBus == nil || c.log != nil {
		return nil, 0
	}
	fd, ok := c.mappedBus.MappedFile()
	if !ok {
		return nil, 0
	}
	return c.mappedBus, fd
}
