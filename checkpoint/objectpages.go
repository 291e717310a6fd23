package checkpoint

import "slices"

// The pages of objects that a Writer has been given, until it writes them. Most come in
// order, a copy's all of them. How they are coded is in codec.go.

// objectKey names a page of an object.
type objectKey struct {
	object uint32
	index  uint64
}

// objectPages is a set of pages of objects; its zero value is empty.
type objectPages struct {
	inOrder []ObjectPage          // each behind the one before
	others  map[objectKey]PageRef // newer than those
}

// add adds a page, in the place of one that was added before.
func (o *objectPages) add(p ObjectPage) {
	if n := len(o.inOrder); n == 0 || compareObjectPages(o.inOrder[n-1], p) < 0 {
		o.inOrder = append(o.inOrder, p)
		return
	}
	if o.others == nil {
		o.others = make(map[objectKey]PageRef)
	}
	o.others[objectKey{p.Object, p.Index}] = p.Ref
}

// sorted returns the pages by object and index, and keeps them so.
func (o *objectPages) sorted() []ObjectPage {
	n := len(o.inOrder)
	for k, ref := range o.others {
		p := ObjectPage{k.object, k.index, ref}
		if i, ok := slices.BinarySearchFunc(o.inOrder[:n], p, compareObjectPages); ok {
			o.inOrder[i] = p
		} else {
			o.inOrder = append(o.inOrder, p)
		}
	}
	if o.others != nil {
		slices.SortFunc(o.inOrder, compareObjectPages)
		o.others = nil
	}
	return o.inOrder
}
