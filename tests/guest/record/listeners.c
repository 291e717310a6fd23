// Seccomp filters with a listener: another thread, then another process, answers calls. The process writes
// results into the caller's memory and gives it a descriptor.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

// listen has calls of two numbers answered, and returns the descriptor for that.
static int listenTo(unsigned a, unsigned b) {
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, a, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, b, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {5, f};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &p);
}

static int fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;

static void *supervise(void *arg) {
	pthread_mutex_lock(&lock);
	while (fd < 0) pthread_cond_wait(&ready, &lock);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 3; i++) {
		struct seccomp_notif n = {0};
		struct seccomp_notif_resp r = {0};
		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n)) return perror("receive"), NULL;
		r.id = n.id, r.val = 100 + i;
		if (i == 2) r.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE, r.val = 0;
		printf("call %d\n", n.data.nr);
		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &r)) perror("send");
	}
	return NULL;
}

static int byThread(void) {
	pthread_t t;
	pthread_create(&t, 0, supervise, 0);
	int l = listenTo(SYS_mkdir, SYS_mkdir);
	if (l < 0) return puts("no listener here"), _exit(0), 0;
	pthread_mutex_lock(&lock);
	fd = l;
	pthread_cond_signal(&ready);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 3; i++) {
		long r = syscall(SYS_mkdir, "/nonexistent/x", 0700);
		printf("mkdir %ld %d\n", r, r < 0 ? errno : 0);
	}
	pthread_join(t, 0);
	return 0;
}

// pass sends a descriptor where give is not negative, else it receives one.
static int pass(int sock, int give) {
	char byte = 'x', control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec io = {&byte, 1};
	struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	if (give < 0) {
		recvmsg(sock, &m, 0);
		memcpy(&give, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof give);
		return give;
	}
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof give);
	memcpy(CMSG_DATA(h), &give, sizeof give);
	sendmsg(sock, &m, 0);
	return give;
}

static int supervised(int sock) {
	pass(sock, listenTo(SYS_getcwd, SYS_creat));
	for (int i = 0; i < 30; i++) {
		char buf[100] = "nothing", got[20] = "";
		long r = syscall(SYS_getcwd, buf, sizeof buf);
		if (i % 10 == 0) printf("getcwd %ld %s\n", r, buf), fflush(stdout);
		if (i == 7) {
			int f = syscall(SYS_creat, "/nonexistent", 0600), n = pread(f, got, 10, 0);
			printf("creat %d: %d %s\n", f > 2, n, got), fflush(stdout);
		}
	}
	return 7;
}

static void byProcess(void) {
	int sock[2], status;
	socketpair(AF_UNIX, SOCK_STREAM, 0, sock);
	pid_t p = fork();
	if (p == 0) _exit(supervised(sock[1]));
	int l = pass(sock[0], -1);
	for (int i = 0; i < 31; i++) {
		struct seccomp_notif n = {0};
		struct seccomp_notif_resp r = {0};
		if (ioctl(l, SECCOMP_IOCTL_NOTIF_RECV, &n)) break;
		r.id = n.id;
		if (n.data.nr == SYS_getcwd) {
			char s[30];
			r.val = sprintf(s, "/made/up/%d", i) + 1;
			struct iovec from = {s, r.val}, to = {(void *)n.data.args[0], r.val};
			if (process_vm_writev(n.pid, &from, 1, &to, 1, 0) != r.val) perror("process_vm_writev");
		} else {
			int f = memfd_create("x", 0);
			write(f, "content", 7);
			struct seccomp_notif_addfd a = {.id = n.id, .srcfd = f, .flags = SECCOMP_ADDFD_FLAG_SEND};
			if (ioctl(l, SECCOMP_IOCTL_NOTIF_ADDFD, &a) < 0) perror("add a descriptor");
			continue;
		}
		if (ioctl(l, SECCOMP_IOCTL_NOTIF_SEND, &r)) perror("send");
	}
	waitpid(p, &status, 0);
	printf("status %d\n", WEXITSTATUS(status));
}

int main(void) {
	setvbuf(stdout, 0, _IOLBF, 0);
	byProcess();
	fflush(stdout);
	return byThread();
}
