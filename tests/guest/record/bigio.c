// Large reads and writes, vectors, a socket pair with credentials and passed
// descriptors, and short counts at a bad address.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static unsigned long sum(const void *v, size_t n) {
	unsigned long s = 1;
	for (size_t i = 0; i < n; i++) s = s * 31 + ((const unsigned char *)v)[i];
	return s;
}

int main(void) {
	char name[] = "/tmp/vplay-bigXXXXXX";
	int fd = mkstemp(name);
	unlink(name);
	size_t n = 3 << 20;
	unsigned char *b = malloc(n), *c = malloc(n);
	for (size_t i = 0; i < n; i++) b[i] = i * 2654435761u >> 13;
	printf("write %zd\n", write(fd, b, n));
	printf("pread %zd %lx\n", pread(fd, c, n, 5), sum(c, n - 5));
	struct iovec v[4] = {{c, 100000}, {c + 500000, 7}, {0, 0}, {c + 1000000, 1 << 20}};
	lseek(fd, 33, SEEK_SET);
	printf("readv %zd %lx\n", readv(fd, v, 4), sum(c, n));
	printf("preadv %zd %lx\n", preadv(fd, v, 4, n - 200000), sum(c, n));
	// The buffer ends in front of an unmapped page: what fits is read.
	char *m = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(m + 4096, 4096);
	ssize_t r = pread(fd, m + 4000, 1000, 0);
	printf("short %zd %s %lx\n", r, r < 0 ? strerror(errno) : "", sum(m + 4000, 96));
	int p[2], s[2];
	pipe(p);
	r = write(p[1], b, 60000);
	r = read(p[0], m + 4000, 1000);
	printf("pipe %zd %s %lx\n", r, r < 0 ? strerror(errno) : "", sum(m + 4000, 96));
	socketpair(AF_UNIX, SOCK_DGRAM, 0, s);
	int one = 1;
	setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof one);
	char ctl[256];
	for (int i = 0; i < 20; i++) {
		struct iovec o[2] = {{b + i * 100, 1000}, {b + 50000, 300}};
		struct msghdr h = {.msg_iov = o, .msg_iovlen = 2, .msg_control = ctl};
		union { struct cmsghdr c; char room[CMSG_SPACE(sizeof(int))]; } u;
		memset(&u, 0, sizeof u);
		u.c.cmsg_len = CMSG_LEN(sizeof(int)), u.c.cmsg_level = SOL_SOCKET, u.c.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&u.c), &fd, sizeof fd);
		h.msg_control = &u, h.msg_controllen = sizeof u;
		if (sendmsg(s[0], &h, 0) != 1300) return 2;
		struct iovec in[2] = {{c, 700}, {c + 5000, i * 60}};
		struct msghdr g = {.msg_iov = in, .msg_iovlen = 2, .msg_control = ctl, .msg_controllen = sizeof ctl};
		r = recvmsg(s[1], &g, i & 1 ? MSG_TRUNC : 0);
		int types = 0;
		for (struct cmsghdr *k = CMSG_FIRSTHDR(&g); k; k = CMSG_NXTHDR(&g, k)) {
			types = types * 10 + k->cmsg_type;
			if (k->cmsg_type == SCM_RIGHTS) {
				int got;
				memcpy(&got, CMSG_DATA(k), sizeof got);
				close(got);
			}
		}
		printf("recvmsg %zd %d %d %lx\n", r, g.msg_flags, types, sum(c, 6000));
	}
	send(s[0], b, 2000, 0);
	struct sockaddr_storage from;
	socklen_t fl = sizeof from;
	printf("recvfrom %zd %lx\n", recvfrom(s[1], c, 100, 0, (struct sockaddr *)&from, &fl), sum(c, 200));
	struct mmsghdr mm[3];
	struct iovec mv[3] = {{c, 50}, {c + 100, 50}, {c + 200, 50}};
	memset(mm, 0, sizeof mm);
	for (int i = 0; i < 3; i++) mm[i].msg_hdr.msg_iov = &mv[i], mm[i].msg_hdr.msg_iovlen = 1, send(s[0], b + i, 40 + i, 0);
	printf("recvmmsg %d %u %lx\n", recvmmsg(s[1], mm, 3, MSG_DONTWAIT, 0), mm[2].msg_len, sum(c, 300));
	int out = memfd_create("out", 0);
	off_t at = 100;
	printf("sendfile %zd %ld\n", sendfile(out, fd, &at, 100000), (long)at);
	loff_t in = 7;
	printf("splice %d\n", splice(fd, &in, p[1], 0, 1000, 0) > 0);
	printf("copy %zd\n", copy_file_range(fd, 0, out, 0, 0, 0));
	return 0;
}
