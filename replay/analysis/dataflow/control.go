package dataflow

import "vplay/replay/x86"

// What an instruction does to the flow of control, and what decides where it goes.

// control finds what the instruction does to the flow of control, and what it is decided by.
func (c *compiler) control() {
	k := c.k
	k.Transfer, k.Indirect = c.in.Transfer()
	switch {
	case k.Indirect:
		address := k.Address
		k.Decides, k.Address = Flow{Store: -1}, RegSet{}
		for _, o := range c.in.Operands() {
			if o.Name == "rmv" {
				c.operand(&o, &k.Decides)
			}
		}
		k.Decides.Src.Add(k.Address)
		k.Address = address
	case k.Transfer == x86.Branch && len(k.Flows) > 0:
		k.Decides = k.Flows[0]
	}
}
