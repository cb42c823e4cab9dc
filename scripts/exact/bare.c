// The least that a client can do: one thread that reads streams of `exact` with recvmsg and kernel stamps, and throws them away. Its CPU
// time an event is what a real client's is compared with.
//
//     cc -O2 -o bare bare.c && ./bare -p 9700 -c 100 -t 5 -n 100
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }

int main(int argc, char **argv) {
	int port = 9700, conns = 100, tokens = 100;
	double seconds = 5;
	for (int o; (o = getopt(argc, argv, "p:c:t:n:")) > 0;) switch (o) {
		case 'p': port = atoi(optarg); break;
		case 'c': conns = atoi(optarg); break;
		case 't': seconds = atof(optarg); break;
		case 'n': tokens = atoi(optarg); break;
		default: return 2;
	}
	char req[512], body[128];
	int bl = snprintf(body, sizeof body, "{\"max_tokens\":%d,\"stream\":true}", tokens);
	int rl = snprintf(req, sizeof req, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", bl, body);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int ep = epoll_create1(0), one = 1;
	for (int i = 0; i < conns; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (void *)&a, sizeof a)) { perror("connect"); return 1; }
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
		struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.fd = fd};
		epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
		send(fd, req, rl, 0);
	}
	struct rusage from, to;
	getrusage(RUSAGE_SELF, &from);
	double start = now(), end = start + seconds;
	static char buf[65536], control[256];
	static struct epoll_event evs[256];
	long long bytes = 0, reads = 0;
	while (now() < end) {
		int n = epoll_wait(ep, evs, 256, 100);
		for (int i = 0; i < n; i++) {
			struct iovec v = {buf, sizeof buf};
			struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
			ssize_t r = recvmsg(evs[i].data.fd, &m, MSG_DONTWAIT);
			if (r <= 0) continue;
			reads++;
			bytes += r;
			if (r >= 5 && !memcmp(buf + r - 5, "0\r\n\r\n", 5)) send(evs[i].data.fd, req, rl, 0);
		}
	}
	getrusage(RUSAGE_SELF, &to);
	double user = to.ru_utime.tv_sec - from.ru_utime.tv_sec + (to.ru_utime.tv_usec - from.ru_utime.tv_usec) / 1e6;
	double sys = to.ru_stime.tv_sec - from.ru_stime.tv_sec + (to.ru_stime.tv_usec - from.ru_stime.tv_usec) / 1e6;
	printf("{\"reads\":%lld,\"bytes\":%lld,\"seconds\":%.3f,\"user_s\":%.3f,\"sys_s\":%.3f}\n", reads, bytes, now() - start, user, sys);
}
