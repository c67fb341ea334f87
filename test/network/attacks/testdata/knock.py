# Knocks at doors in ways that ordinary clients are too polite for. Whoever is
# reached counts; what is printed is for the reader of a failure.
import socket, ssl, struct, sys

LIMIT = 10  # seconds; a refusal is at once


def stream(host, port, family=0, protocol=0):
    last = None
    for family, kind, _, _, address in socket.getaddrinfo(host, int(port), family, socket.SOCK_STREAM):
        try:
            s = socket.socket(family, kind, protocol)
            s.settimeout(LIMIT)
            s.connect(address)
            return s
        except OSError as e:
            last = e
    raise last


def read(s):
    data = b""
    while len(data) < 4096:
        got = s.recv(4096)
        if not got:
            break
        data += got
    return data


def unescape(text):
    return text.encode().decode("unicode_escape").encode("latin-1")


# tcp HOST PORT BYTES...: each on its own, waiting for an answer to each.
def tcp(host, port, *texts, protocol=0):
    s = stream(host, port, protocol=protocol)
    for text in texts:
        s.sendall(unescape(text))
        print(s.recv(4096))


def mptcp(host, port, *texts):
    tcp(host, port, *texts, protocol=262)


# The data is in the first packet.
def fastopen(host, port, text):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.sendto(unescape(text), socket.MSG_FASTOPEN, (host, int(port)))
    s.settimeout(LIMIT)
    print(read(s))


# tls HOST PORT SERVERNAME BYTES: a server name of one's own choice; - is none.
def tls(host, port, name, text):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    s = context.wrap_socket(stream(host, port), server_hostname=None if name == "-" else name)
    s.sendall(unescape(text))
    print(s.recv(4096))


def udp(host, port, text="knock"):
    family, kind, _, _, address = socket.getaddrinfo(host, int(port), 0, socket.SOCK_DGRAM)[0]
    s = socket.socket(family, kind)
    s.settimeout(2)
    s.connect(address)
    s.send(unescape(text))
    print(s.recv(4096))


# pieces HOST PORT HOW: a datagram that is more than one packet, or that the kernel
# puts together: several writes, segments, or more than fits.
def pieces(host, port, how):
    family, kind, _, _, address = socket.getaddrinfo(host, int(port), 0, socket.SOCK_DGRAM)[0]
    s = socket.socket(family, kind)
    s.settimeout(2)
    if how == "corked":
        for _ in range(3):
            s.sendto(b"x" * 900, socket.MSG_MORE, address)
        s.sendto(b"x", address)
    elif how == "large":
        s.sendto(b"x" * 60000, address)
    elif how == "segments":
        s.setsockopt(socket.SOL_UDP, 103, 1000)  # UDP_SEGMENT
        s.sendto(b"x" * 5000, address)
    elif how == "many":
        for length in range(0, 60000, 3000):
            s.sendto(b"x" * length, address)
    print(s.recv(65536))


# broadcast ADDRESS PORT: to all who listen.
def broadcast(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.sendto(b"knock", (address, int(port)))


# dns SERVER NAME: a question whose labels may hold any byte.
def dns(server, name):
    question = b"".join(bytes([len(l)]) + l for l in unescape(name).split(b".")) + b"\0"
    packet = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + question + struct.pack(">2H", 1, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(2)
    s.sendto(packet, (server, 53))
    answer = s.recv(4096)
    assert answer[3] & 15 == 0 and answer[6:8] != b"\0\0", "no such name"
    s = stream(socket.inet_ntoa(answer[-4:]), 80)
    s.sendall(b"GET / HTTP/1.0\r\nHost: any\r\n\r\n")
    print(read(s))


# icmp HOST KIND: an echo over a raw socket or a ping socket.
def icmp(host, kind):
    s = socket.socket(socket.AF_INET, getattr(socket, kind), socket.IPPROTO_ICMP)
    s.settimeout(2)
    packet = struct.pack(">2B3H", 8, 0, 0, 1, 1) + b"knock"
    total = sum(struct.unpack(">7H", packet + b"\0"))
    total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    s.sendto(packet[:2] + struct.pack(">H", total) + packet[4:], (host, 0))
    print(s.recv(4096))


# A UDP packet made by hand.
def raw(host, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    s.sendto(struct.pack(">4H", 4242, int(port), 13, 0) + b"knock", (host, 0))


def unix(name):
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0" + name[1:] if name[0] == "@" else name)
    print(s.recv(100))


globals()[sys.argv[1]](*sys.argv[2:])
