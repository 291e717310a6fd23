package abi

// Numbers of the calls on sockets, as the kernel's headers have them, and the sets that print
// them. What these calls write is in sys_net.go.

// Address families: include/linux/socket.h.
const (
	AF_UNSPEC    = 0
	AF_UNIX      = 1
	AF_INET      = 2
	AF_AX25      = 3
	AF_IPX       = 4
	AF_APPLETALK = 5
	AF_INET6     = 10
	AF_NETLINK   = 16
	AF_PACKET    = 17
	AF_ALG       = 38
	AF_NFC       = 39
	AF_VSOCK     = 40
	AF_XDP       = 44
	AF_BLUETOOTH = 31
	AF_CAN       = 29
	AF_TIPC      = 30
)

// Socket types: include/linux/net.h.
const (
	SOCK_STREAM    = 1
	SOCK_DGRAM     = 2
	SOCK_RAW       = 3
	SOCK_RDM       = 4
	SOCK_SEQPACKET = 5
	SOCK_DCCP      = 6
	SOCK_PACKET    = 10
)

// Flags beside a socket type.
const (
	SOCK_NONBLOCK = 0x800
	SOCK_CLOEXEC  = 0x80000
)

// Levels of socket options: include/linux/socket.h.
const (
	SOL_IP      = 0
	SOL_SOCKET  = 1
	SOL_TCP     = 6
	SOL_UDP     = 17
	SOL_IPV6    = 41
	SOL_ICMPV6  = 58
	SOL_SCTP    = 132
	SOL_RAW     = 255
	SOL_PACKET  = 263
	SOL_NETLINK = 270
	SOL_ALG     = 279
	SOL_TLS     = 282
	SOL_XDP     = 283
)

var setAf = enumSet{
	{AF_UNSPEC, "AF_UNSPEC"},
	{AF_UNIX, "AF_UNIX"},
	{AF_INET, "AF_INET"},
	{AF_AX25, "AF_AX25"},
	{AF_IPX, "AF_IPX"},
	{AF_APPLETALK, "AF_APPLETALK"},
	{AF_INET6, "AF_INET6"},
	{AF_NETLINK, "AF_NETLINK"},
	{AF_PACKET, "AF_PACKET"},
	{AF_ALG, "AF_ALG"},
	{AF_NFC, "AF_NFC"},
	{AF_VSOCK, "AF_VSOCK"},
	{AF_XDP, "AF_XDP"},
	{AF_BLUETOOTH, "AF_BLUETOOTH"},
	{AF_CAN, "AF_CAN"},
	{AF_TIPC, "AF_TIPC"},
}

var setSocktypes = enumSet{
	{SOCK_STREAM, "SOCK_STREAM"},
	{SOCK_DGRAM, "SOCK_DGRAM"},
	{SOCK_RAW, "SOCK_RAW"},
	{SOCK_RDM, "SOCK_RDM"},
	{SOCK_SEQPACKET, "SOCK_SEQPACKET"},
	{SOCK_DCCP, "SOCK_DCCP"},
	{SOCK_PACKET, "SOCK_PACKET"},
}

var setSockflags = flagSet{
	{SOCK_NONBLOCK, "SOCK_NONBLOCK"},
	{SOCK_CLOEXEC, "SOCK_CLOEXEC"},
}

// setMsg: Message flags: include/linux/socket.h.
var setMsg = flagSet{
	{0x1, "MSG_OOB"},
	{0x2, "MSG_PEEK"},
	{0x4, "MSG_DONTROUTE"},
	{0x8, "MSG_CTRUNC"},
	{0x10, "MSG_PROXY"},
	{0x20, "MSG_TRUNC"},
	{0x40, "MSG_DONTWAIT"},
	{0x80, "MSG_EOR"},
	{0x100, "MSG_WAITALL"},
	{0x200, "MSG_FIN"},
	{0x400, "MSG_SYN"},
	{0x800, "MSG_CONFIRM"},
	{0x1000, "MSG_RST"},
	{0x2000, "MSG_ERRQUEUE"},
	{0x4000, "MSG_NOSIGNAL"},
	{0x8000, "MSG_MORE"},
	{0x10000, "MSG_WAITFORONE"},
	{0x40000, "MSG_BATCH"},
	{0x4000000, "MSG_ZEROCOPY"},
	{0x20000000, "MSG_FASTOPEN"},
	{0x40000000, "MSG_CMSG_CLOEXEC"},
}

var setSol = enumSet{
	{SOL_IP, "SOL_IP"},
	{SOL_SOCKET, "SOL_SOCKET"},
	{SOL_TCP, "SOL_TCP"},
	{SOL_UDP, "SOL_UDP"},
	{SOL_IPV6, "SOL_IPV6"},
	{SOL_ICMPV6, "SOL_ICMPV6"},
	{SOL_SCTP, "SOL_SCTP"},
	{SOL_RAW, "SOL_RAW"},
	{SOL_PACKET, "SOL_PACKET"},
	{SOL_NETLINK, "SOL_NETLINK"},
	{SOL_ALG, "SOL_ALG"},
	{SOL_TLS, "SOL_TLS"},
	{SOL_XDP, "SOL_XDP"},
}
