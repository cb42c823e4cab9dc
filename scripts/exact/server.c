// An exact OpenAI-like server in one thread, for checking clients where a server in Go would be the limit.
//
// Each answer to POST /v1/chat/completions and /v1/completions is a stream of max_tokens chunks: the first -f us after the request
// arrived (by the kernel's receive stamp), then one every -i us, -b of them in one write. Like `prony sim` it keeps the truth (when
// each request arrived and each write was made) and shows it on GET /truth in the same form; DELETE /truth forgets it.
//
//     cc -O2 -o exact server.c && ./exact -p 9700 -f 50000 -i 10000
//
// Linux only. Requests must fit into 64 KiB.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef long long ns;
enum { MAXFD = 70000, MAXREQ = 65536, LATE = 200000 };

typedef struct {
	char id[64];
	ns arrival, wall, end;
	int n, cap, chat;
	ns *due, *wrote, *at; // at: wall clock
	int *tokens;
} record;

typedef struct {
	unsigned gen;
	int active, left, total, used, want_usage;
	ns due;
	char *buf; // the request as far as it has come
	record rec;
} conn;

static conn C[MAXFD];
static int port = 9700, ttft_us = 50000, itl_us = 10000, burst = 1;
static ns started, started_wall;
static record *R;
static size_t nr, capr, seq;
static ns writes, late, late_max, late_sum;

static ns clock_of(int c) { struct timespec t; clock_gettime(c, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static ns mono(void) { return clock_of(CLOCK_MONOTONIC) - started; }

// A heap of what is due.
typedef struct { int fd; unsigned gen; ns due; } item;
static item *Q;
static int qn, qcap;

static void push(int fd, ns due) {
	if (qn == qcap) Q = realloc(Q, (qcap = qcap ? 2 * qcap : 4096) * sizeof *Q);
	int i = qn++;
	for (int p; i > 0 && Q[p = (i - 1) / 2].due > due; i = p) Q[i] = Q[p];
	Q[i] = (item){fd, C[fd].gen, due};
}

static item pop(void) {
	item r = Q[0], x = Q[--qn];
	int i = 0;
	for (;;) {
		int c = 2 * i + 1;
		if (c >= qn) break;
		if (c + 1 < qn && Q[c + 1].due < Q[c].due) c++;
		if (x.due <= Q[c].due) break;
		Q[i] = Q[c];
		i = c;
	}
	Q[i] = x;
	return r;
}

static char chat_event[1024], text_event[1024], chat_block[65536], text_block[65536];
static int chat_len, text_len, chat_block_len, text_block_len;

static int chunk(char *to, const char *json) { return sprintf(to, "%x\r\ndata: %s\n\n\r\n", (unsigned)strlen(json) + 8, json); }

static void build(void) {
	chat_len = chunk(chat_event, "{\"id\":\"chatcmpl-7f3a9c1e5b2d4860\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"exact\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"},\"logprobs\":null,\"finish_reason\":null}]}");
	text_len = chunk(text_event, "{\"id\":\"cmpl-7f3a9c1e5b2d4860\",\"object\":\"text_completion\",\"created\":1700000000,\"model\":\"exact\",\"choices\":[{\"index\":0,\"text\":\" token\",\"logprobs\":null,\"finish_reason\":null}]}");
	for (int i = 0; i < burst; i++) {
		memcpy(chat_block + chat_block_len, chat_event, chat_len);
		chat_block_len += chat_len;
		memcpy(text_block + text_block_len, text_event, text_len);
		text_block_len += text_len;
	}
}

// send_all sends on a non-blocking socket; a full one is waited for, and shows in the truth as a late write.
static int send_all(int fd, const char *b, size_t n) {
	while (n > 0) {
		ssize_t r = send(fd, b, n, MSG_NOSIGNAL);
		if (r < 0 && (errno == EAGAIN || errno == EINTR)) { usleep(20); continue; }
		if (r <= 0) return -1;
		b += r;
		n -= r;
	}
	return 0;
}

static void drop(int fd) {
	conn *c = &C[fd];
	c->gen++;
	c->active = c->used = 0;
	free(c->rec.due);
	free(c->rec.wrote);
	free(c->rec.at);
	free(c->rec.tokens);
	free(c->buf);
	c->buf = NULL;
	memset(&c->rec, 0, sizeof c->rec);
	close(fd);
}

static void note(conn *c, ns due, ns at, int tokens) {
	record *r = &c->rec;
	if (r->n == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 128;
		r->due = realloc(r->due, r->cap * sizeof(ns));
		r->wrote = realloc(r->wrote, r->cap * sizeof(ns));
		r->at = realloc(r->at, r->cap * sizeof(ns));
		r->tokens = realloc(r->tokens, r->cap * sizeof(int));
	}
	r->due[r->n] = due;
	r->wrote[r->n] = at;
	r->at[r->n] = clock_of(CLOCK_REALTIME);
	r->tokens[r->n++] = tokens;
	ns l = at - due;
	writes++;
	late_sum += l > 0 ? l : 0;
	late += l > LATE;
	if (l > late_max) late_max = l;
}

static void finish(int fd) {
	conn *c = &C[fd];
	char json[512], out[2048];
	int n = 0;
	snprintf(json, sizeof json, c->rec.chat ?
		"{\"id\":\"chatcmpl-7f3a9c1e5b2d4860\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"exact\",\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"length\"}]}" :
		"{\"id\":\"cmpl-7f3a9c1e5b2d4860\",\"object\":\"text_completion\",\"created\":1700000000,\"model\":\"exact\",\"choices\":[{\"index\":0,\"text\":\"\",\"logprobs\":null,\"finish_reason\":\"length\"}]}");
	n += chunk(out + n, json);
	if (c->want_usage) {
		snprintf(json, sizeof json, "{\"id\":\"cmpl-7f3a9c1e5b2d4860\",\"object\":\"%s\",\"created\":1700000000,\"model\":\"exact\",\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"total_tokens\":%d,\"completion_tokens\":%d}}",
			c->rec.chat ? "chat.completion.chunk" : "text_completion", c->total + 1, c->total);
		n += chunk(out + n, json);
	}
	n += sprintf(out + n, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
	if (send_all(fd, out, n)) { drop(fd); return; }
	c->active = 0;
	c->rec.end = mono();
	if (nr == capr) R = realloc(R, (capr = capr ? 2 * capr : 1024) * sizeof *R);
	R[nr++] = c->rec;
	seq++;
	memset(&c->rec, 0, sizeof c->rec);
}

static void emit(int fd) {
	conn *c = &C[fd];
	int k = burst < c->left ? burst : c->left, n = (c->rec.chat ? chat_len : text_len) * k;
	note(c, c->due, mono(), k);
	if (send_all(fd, c->rec.chat ? chat_block : text_block, n)) { drop(fd); return; }
	if ((c->left -= k) == 0) { finish(fd); return; }
	push(fd, c->due += itl_us * 1000LL);
}

static void answer(int fd, int status, const char *type, const char *body, size_t n) {
	char head[256];
	int h = snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", status, type, n);
	if (send_all(fd, head, h) == 0) send_all(fd, body, n);
}

static void array(FILE *f, const char *name, ns *v, int n) {
	fprintf(f, ",\"%s\":[", name);
	for (int i = 0; i < n; i++) fprintf(f, i ? ",%lld" : "%lld", v[i]);
	fputc(']', f);
}

static void truth(int fd) {
	char *out;
	size_t n;
	FILE *f = open_memstream(&out, &n);
	fprintf(f, "{\"server\":{\"start_wall_ns\":%lld,\"now_ns\":%lld,\"requests\":%zu,\"dropped\":0,\"pace\":{\"writes\":%lld,\"late_writes\":%lld,\"late_after_ns\":%d,\"max_late_ns\":%lld,\"mean_late_ns\":%lld,\"held_up\":0}}}\n",
		started_wall, mono(), seq, writes, late, LATE, late_max, writes ? late_sum / writes : 0);
	for (size_t i = 0; i < nr; i++) {
		record *r = &R[i];
		int tokens = 0;
		for (int k = 0; k < r->n; k++) tokens += r->tokens[k];
		fprintf(f, "{\"seq\":%zu,\"id\":%zu,\"request_id\":\"%s\",\"path\":\"%s\",\"stream\":true,\"status\":200,\"outcome\":\"complete\",\"arrival_ns\":%lld,\"arrival_wall_ns\":%lld,\"end_ns\":%lld,\"prompt_tokens\":1,\"cached_tokens\":0,\"output_tokens\":%d",
			seq - nr + i + 1, seq - nr + i + 1, r->id, r->chat ? "/v1/chat/completions" : "/v1/completions", r->arrival, r->wall, r->end, tokens);
		array(f, "due_ns", r->due, r->n);
		array(f, "write_ns", r->wrote, r->n);
		array(f, "write_wall_ns", r->at, r->n);
		fprintf(f, ",\"write_tokens\":[");
		for (int k = 0; k < r->n; k++) fprintf(f, k ? ",%d" : "%d", r->tokens[k]);
		fprintf(f, "],\"body_bytes\":0}\n");
	}
	fclose(f);
	answer(fd, 200, "application/jsonl", out, n);
	free(out);
}

static void forget(void) {
	for (size_t i = 0; i < nr; i++) { free(R[i].due); free(R[i].wrote); free(R[i].at); free(R[i].tokens); }
	nr = 0;
	writes = late = late_max = late_sum = 0;
}

// request takes one whole request of size n.
static void request(int fd, char *b, char *body, ns stamp) {
	conn *c = &C[fd];
	int chat = !strncmp(b, "POST /v1/chat/completions", 25);
	if (!chat && strncmp(b, "POST /v1/completions", 20)) {
		static const char models[] = "{\"object\":\"list\",\"data\":[{\"id\":\"exact\",\"object\":\"model\",\"created\":1700000000,\"owned_by\":\"prony\",\"max_model_len\":1000000}]}";
		if (!strncmp(b, "GET /truth", 10)) truth(fd);
		else if (!strncmp(b, "DELETE /truth", 13)) { forget(); answer(fd, 200, "application/json", "{\"cleared\":true}", 16); }
		else if (!strncmp(b, "GET /v1/models", 14)) answer(fd, 200, "application/json", models, sizeof models - 1);
		else if (!strncmp(b, "GET /health", 11)) answer(fd, 200, "application/json", "{}", 2);
		else answer(fd, 404, "application/json", "{\"error\":{\"message\":\"not found\"}}", 33);
		return;
	}
	char *t = strstr(body, "\"max_tokens\":");
	if (!t) t = strstr(body, "\"max_completion_tokens\":");
	c->left = c->total = t ? atoi(strchr(t, ':') + 1) : 16;
	if (c->left < 1) c->left = c->total = 1;
	c->want_usage = strstr(body, "include_usage") != NULL;
	c->rec.chat = chat;
	char *id = strcasestr(b, "\r\nx-request-id: ");
	if (id && id < body) sscanf(id + 16, "%63[^\r\n\"\\]", c->rec.id);
	ns now = clock_of(CLOCK_REALTIME), m = mono();
	c->rec.wall = stamp ? stamp : now;
	c->rec.arrival = m - (now - c->rec.wall);
	c->due = c->rec.arrival + ttft_us * 1000LL;
	c->active = 1;
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";
	if (send_all(fd, head, sizeof head - 1)) { drop(fd); return; }
	push(fd, c->due);
}

// readable reads what has come, with the stamp of its last byte.
static void readable(int fd) {
	conn *c = &C[fd];
	if (!c->buf) c->buf = malloc(MAXREQ + 1);
	char control[128];
	struct iovec v = {c->buf + c->used, MAXREQ - c->used};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	ssize_t n = recvmsg(fd, &m, 0);
	if (n < 0 && errno == EAGAIN) return;
	if (n <= 0) { drop(fd); return; }
	ns stamp = 0;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
		if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_TIMESTAMPNS) {
			struct timespec t;
			memcpy(&t, CMSG_DATA(h), sizeof t);
			stamp = t.tv_sec * 1000000000LL + t.tv_nsec;
		}
	c->used += n;
	c->buf[c->used] = 0;
	char *end = strstr(c->buf, "\r\n\r\n");
	if (!end) return;
	char *length = strcasestr(c->buf, "\r\ncontent-length:");
	int want = length && length < end ? atoi(length + 17) : 0;
	if (end + 4 + want > c->buf + c->used) {
		if (c->used == MAXREQ) drop(fd);
		return;
	}
	c->used = 0;
	if (!c->active) request(fd, c->buf, end + 4, stamp);
}

static void stop(int s) { (void)s; _exit(0); }

int main(int argc, char **argv) {
	for (int o; (o = getopt(argc, argv, "p:f:i:b:")) > 0;) switch (o) {
		case 'p': port = atoi(optarg); break;
		case 'f': ttft_us = atoi(optarg); break;
		case 'i': itl_us = atoi(optarg); break;
		case 'b': burst = atoi(optarg); break;
		default: return 2;
	}
	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	prctl(PR_SET_TIMERSLACK, 1);
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	started = clock_of(CLOCK_MONOTONIC);
	started_wall = clock_of(CLOCK_REALTIME);
	build();
	int ls = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
	setsockopt(ls, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (bind(ls, (void *)&a, sizeof a) || listen(ls, 4096)) { perror("listen"); return 1; }
	int ep = epoll_create1(0);
	struct epoll_event e = {.events = EPOLLIN, .data.fd = ls};
	epoll_ctl(ep, EPOLL_CTL_ADD, ls, &e);
	static struct epoll_event evs[512];
	fprintf(stderr, "exact server on 127.0.0.1:%d\n", port);
	for (;;) {
		ns wait = qn ? Q[0].due - mono() : 1000000000;
		struct timespec to = {0, 0};
		if (wait > 0) to = (struct timespec){wait / 1000000000, wait % 1000000000};
		int n = epoll_pwait2(ep, evs, 512, &to, NULL);
		for (int i = 0; i < n; i++) {
			int fd = evs[i].data.fd;
			if (fd != ls) { readable(fd); continue; }
			for (int f; (f = accept4(ls, 0, 0, SOCK_NONBLOCK)) >= 0;) {
				if (f >= MAXFD) { close(f); continue; }
				setsockopt(f, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
				setsockopt(f, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
				e = (struct epoll_event){.events = EPOLLIN | EPOLLRDHUP, .data.fd = f};
				epoll_ctl(ep, EPOLL_CTL_ADD, f, &e);
			}
		}
		for (int k = 0; qn && k < 256 && Q[0].due <= mono(); k++) {
			item q = pop();
			if (C[q.fd].gen == q.gen && C[q.fd].active) emit(q.fd);
		}
	}
}
