package checkpoint

// Page tables: which page has which content, by the hash that names it. The contents are
// written by store.go and read by pages.go.

// PageSize is the unit of memory capture, in bytes.
const PageSize = 4096

// PageKind is the kind of a page record.
type PageKind uint8

// The five kinds of page record, and removal in a delta table.
const (
	PageFull     PageKind = iota // 4096 bytes, in the page store
	PageZero                     // all zero
	PageAbsent                   // known not to be captured
	PagePartial                  // some bytes captured: a mask and the bytes
	PageRedacted                 // removed on purpose
	PageRemoved                  // delta tables only: no longer in the table
)

// PageHash is the content address of a page: SHA-256 cut to 128 bits.
type PageHash [16]byte

// PageRef says where the content of a page is found.
type PageRef struct {
	Kind PageKind
	Hash PageHash // PageFull: of the 4096 bytes; PagePartial: of mask and bytes
}

// PageEntry is one row of an interval's page table.
type PageEntry struct {
	Addr uint64 // page-aligned guest address
	Ref  PageRef
}

// ObjectPage is the content of one page of a mapped file, as the program saw
// it before writing to it.
type ObjectPage struct {
	Object uint32
	Index  uint64 // offset in the object / PageSize
	Ref    PageRef
}
