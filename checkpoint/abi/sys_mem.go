package abi

// What calls about memory write to memory: the rows of the table that need a function. What
// they do to the map is package record's business.

var memRows = rowFuncs{
	SYS_MINCORE:           (*outputs).mincore,
	SYS_GET_MEMPOLICY:     (*outputs).getMempolicy,
	SYS_PROCESS_VM_READV:  func(o *outputs) { o.iovec(o.args[1], o.args[2]) },
	SYS_PROCESS_VM_WRITEV: (*outputs).denied,
	SYS_BPF:               (*outputs).denied,
}

// mincore writes one byte per page of the range.
func (o *outputs) mincore() {
	n := o.args[1]
	o.arg(2, n/PageSize+(n%PageSize+PageSize-1)/PageSize)
}

// getMempolicy: the node mask has maxnode-1 bits in whole words
// (mm/mempolicy.c, copy_nodes_to_user); longer than a page is refused.
func (o *outputs) getMempolicy() {
	o.arg(0, 4)
	if bits := o.args[2]; bits > 1 {
		o.arg(1, min((bits-1+63)/64*8, PageSize))
	}
}

// denied is for calls whose effects cannot be listed unless the kernel has
// refused them outright.
func (o *outputs) denied() {
	o.opaque = o.errno != EPERM && o.errno != ESRCH && o.errno != EACCES
}
