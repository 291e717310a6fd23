package gdbstub

import (
	"fmt"
	"strings"

	"vplay/replay/debug/api"
)

// Packets that only lldb sends. It needs the pid and the triple before it
// believes in a stopped process, and the regions before it reads the stack.

// triple is what is debugged, in hex as the protocol wants it.
var triple = hexText("x86_64-unknown-linux-gnu")

// hostInfo answers qHostInfo. Its asker is lldb.
func (s *session) hostInfo(string) reply {
	s.lldb = !s.srv.opt.RR
	return text("triple:" + triple + ";ptrsize:8;endian:little;")
}

// processInfo answers qProcessInfo.
func (s *session) processInfo(string) reply {
	s.lldb = !s.srv.opt.RR
	if !s.live {
		return replyError
	}
	p := s.target.Process()
	return text(fmt.Sprintf("pid:%x;parent-pid:%x;triple:%s;ostype:linux;endian:little;ptrsize:8;", p.PID, max(p.ParentID, 0), triple))
}

// memoryRegion answers qMemoryRegionInfo:ADDR.
func (s *session) memoryRegion(arg string) reply {
	t, ok := s.target.(api.RegionTarget)
	if !ok {
		return reply{}
	}
	addr, ok := parseHex(arg)
	if !ok || !s.live {
		return replyError
	}
	r, err := t.Region(addr)
	if err != nil {
		return s.fail(err.Error())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "start:%x;size:%x;", r.Start, r.Size)
	if r.Mapped {
		b.WriteString("permissions:")
		for _, p := range []struct {
			on bool
			c  byte
		}{{r.Read, 'r'}, {r.Write, 'w'}, {r.Exec, 'x'}} {
			if p.on {
				b.WriteByte(p.c)
			}
		}
		b.WriteByte(';')
		if r.Name != "" {
			b.WriteString("name:" + hexText(clip(r.Name, maxPath)) + ";")
		}
	}
	return text(b.String())
}
