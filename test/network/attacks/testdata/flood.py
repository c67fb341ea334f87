# Floods the way out, holds on to what it got, and lets go when /tmp/done is
# there. Each argument is KIND,HOST,PORT,COUNT; every kind is a process.
import os, resource, socket, sys, time

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connect(host, port):
    s = socket.socket()
    s.settimeout(20)
    try:
        s.connect((host, port))
        return s
    except OSError:
        s.close()


# Requests that are never complete.
def half(host, port, count):
    held = []
    for _ in range(count):
        if s := connect(host, port):
            try:
                s.sendall(b"GET / HT")
            except OSError:
                pass  # refused: too many
            held.append(s)
    return held


# Answers that are never read.
def hold(host, port, count):
    return [s for _ in range(count) if (s := connect(host, port))]


# Attempts, one after the other.
def again(host, port, count):
    for _ in range(count):
        if s := connect(host, port):
            s.close()


# Questions, as fast as they leave.
def ask(domain, port, count):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for i in range(count):
        labels = [b"%x" % (i * 2654435761 % 2**32)] + domain.encode().split(b".")
        name = b"".join(bytes([len(l)]) + l for l in labels) + b"\0"
        try:
            s.sendto(b"\0\7\1\0\0\1\0\0\0\0\0\0" + name + b"\0\1\0\1", ("192.0.2.1", port))
        except OSError:
            pass  # the buffer is full
    return [s]


children = []
for argument in sys.argv[1:]:
    kind, host, port, count = argument.split(",")
    pid = os.fork()
    if pid == 0:
        held = globals()[kind](host, int(port), int(count))
        open("/tmp/ready-%d" % os.getpid(), "w").close()
        while not os.path.exists("/tmp/done"):
            time.sleep(0.05)
        os._exit(0)
    children.append(pid)
while not all(os.path.exists("/tmp/ready-%d" % pid) for pid in children):
    time.sleep(0.05)
open("/tmp/ready", "w").close()
for pid in children:
    os.waitpid(pid, 0)
