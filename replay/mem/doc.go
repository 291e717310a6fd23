// Package mem is the guest's address space.
//
// The problem: a replay must be able to keep thousands of snapshots of a guest
// of gigabytes, go back to any of them at once, know which bytes the recording
// really holds, and watch any byte, while ordinary loads and stores cost
// nothing extra.
//
// The idea: guest pages are 4 KiB pages of an off-heap arena ([Pool]), counted
// by reference and recycled. A [Space] finds them through a persistent radix
// table: taking a [Snapshot] keeps the root, O(1); a later store copies the
// page and the path to it. Everything that needs care (copy-on-write, watched
// bytes, pages with decoded code, pages only partly captured, pages not loaded
// yet) is handled when the processor fills its translation cache: such a page
// is simply never handed out for direct access, so the common path pays nothing.
//
// Ranges ([Region]) refer to objects. Pages of a shared object belong to the
// object and may have several addresses; internally each page has a key, which
// is its address for private memory and lies in a window of its own above the
// user half for shared objects. Watchpoints, access sets and code marks belong
// to the key and so reach every address.
//
// Pages are loaded lazily from a [Source], the recording. Each byte of a page
// is known or not: a load of a byte that was not captured is a fault of its
// own kind ([FaultNotCaptured]), never a zero.
//
// Invariants: a table node or page with one reference is reachable from one
// root only and may be changed in place; anything else is immutable. A Space is
// used by one goroutine; Snapshots and the Pool may be shared between
// goroutines. The package imports nothing of vplay; it knows neither files nor
// instructions.
package mem
