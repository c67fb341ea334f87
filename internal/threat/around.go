package threat

// Rows about the network, other users and sandboxes, exhaustion, and what
// comes from strangers.

func networkRows() []Attack {
	const policy, netns, proxy, near = "internal/egress/policy.go", "internal/driver/netns/network_linux.go", "internal/egress/proxy.go", "internal/egress/surroundings.go"
	const resolver, hidden, datagrams = "internal/egress/resolver.go", "internal/egress/hidden.go", "internal/driver/netns/datagrams_linux.go"
	return rows(Networks,
		Attack{Name: "reach services of the host", Escape: "databases, agents and debuggers trust every local process; abstract sockets have no file to hide", Defence: list(netns), Tried: list(Redteam, Attacks), Places: everywhere},
		Attack{Name: "reach the world", Escape: "the metadata service hands out credentials; a DNS query carries data out; QUIC, DoT, private ranges", Defence: list(policy, netns), Tried: list(Redteam, Attacks), Places: []Place{Copy, Image, Machine}},
		Attack{Name: "carry data out in DNS names", Escape: "each name that is asked for tells its name server a piece of a secret", Defence: list(resolver), Tried: list(Redteam)},
		Attack{Name: "find another interface", Escape: "a packet that leaves without being judged", Defence: list(netns), Tried: list(Posture), Looks: list("Interfaces")},
		Attack{Name: "the machine and its network", Escape: "databases without a password, the metadata service with the machine's credentials; where everything is allowed by default as well", Defence: list(policy, near), Tried: list(Network)},
		Attack{Name: "neighbours with public addresses", Escape: "routers and servers beside the machine trust their network; all of them at once by a broadcast", Defence: list(near), Tried: list(Network, "test/network/attacks: TestNetworkThatIsJoined")},
		Attack{Name: "neighbours under the default deny", Escape: "an allowed name whose owner lets it lead to the machine's router", Defence: list(near), Tried: list(Network)},
		Attack{Name: "translated addresses", Escape: "a NAT64 gateway leads to private networks, to the metadata service and to what is denied by its IPv4 address", Defence: list("internal/egress/embedded.go"), Tried: list(Network)},
		Attack{Name: "denied hosts by their addresses", Escape: "a list of denied names that holds only for programs which look them up", Defence: list(hidden), Tried: list(Network)},
		Attack{Name: "rebinding", Escape: "an allowed name that leads to the machine a moment after it was judged", Defence: list(policy), Tried: list("test/network/attacks: TestRebinding")},
		Attack{Name: "addresses in other spellings", Escape: "CVE-2021-28918 and its kin: what decides reads 0306 as text, what dials as octal", Defence: list(policy), Tried: list(Network)},
		Attack{Name: "names in other spellings", Escape: "a denied name that is compared before it is normalised", Defence: list(policy), Tried: list(Network)},
		Attack{Name: "names with bytes that end a string", Escape: "evil\\0.google.com passed a SOCKS5 allow-list for a hundred versions of one tool", Defence: list(policy), Tried: list(Network)},
		Attack{Name: "host", Escape: "domain fronting in the clear: the connection names one tenant, the request another", Defence: list(proxy), Tried: list(Network)},
		Attack{Name: "later request", Escape: "the first request of a connection is judged and the next is not; or two readers disagree on where it begins", Defence: list(proxy, "internal/egress/intercept/exchange.go"), Tried: list(Network)},
		Attack{Name: "server name", Escape: "a TLS handshake for another tenant on an allowed connection", Defence: list(proxy), Tried: list(Network)},
		Attack{Name: "authority of HTTP 2", Escape: "a proxy that reads HTTP/1 and passes on what it cannot read", Defence: list(proxy), Tried: list(Network)},
		Attack{Name: "other ways to open a connection", Escape: "a filter that knows connect(2) and TCP alone", Defence: list(netns), Tried: list(Network)},
		Attack{Name: "datagrams", Escape: "QUIC and WebRTC pass a proxy that knows TCP alone", Defence: list(datagrams), Tried: list(Network)},
		Attack{Name: "datagrams in pieces", Escape: "the first fragment of a datagram is judged, or redirected, and the rest is not", Defence: list(datagrams), Tried: list(Network)},
		Attack{Name: "an encrypted name, and early data", Escape: "a ClientHello whose encrypted name (ECH) or whose first request (0-RTT) goes past what was judged", Defence: list("internal/egress/hello.go", "internal/egress/intercept/intercept.go"), Tried: list("internal/egress: TestServerNameBesideAnEncryptedOne", "internal/egress: TestEarlyDataIsNotServed")},
		Attack{Name: "a certificate of the client's", Escape: "a host that knows its caller by a certificate takes the keeper for the human", Defence: list("internal/egress/intercept/intercept.go"), Tried: list("internal/egress: TestNoClientCertificateIsLent")},
		Attack{Name: "the authority of a copy", Escape: "a fork, a snapshot or a golden carries the key that signs for every host, or trusts what another sandbox's keeper signs", Defence: list("internal/egress/intercept/authority.go"), Tried: list("test/network: TestAuthorityKeyStaysOutside", "test/network: TestAuthorityIsNotCopied")},
		Attack{Name: "names behind an upstream proxy", Escape: "a proxy outside resolves a name that was judged here to another address", Defence: list("internal/egress/upstream.go"), Tried: list("internal/egress: TestThroughHTTPProxy", "internal/egress: TestThroughSOCKS")},
		Attack{Name: "paths that two readers read differently", Escape: "an escape that is not UTF-8 is one path for the rule and another for the server", Defence: list("internal/egress/path.go"), Tried: list("internal/egress: TestDecide")},
		Attack{Name: "use what a narrower policy has closed", Escape: "a lease on a file that is written first delays the deny", Defence: list("internal/keeper/network.go"), Tried: list("internal/keeper: TestPolicyIsInForceBeforeTheRootsAreWritten")},
		Attack{Name: "raw packets", Escape: "ICMP carries data (ptunnel, icmpsh); raw sockets make any packet", Defence: list(filter), Tried: list(Network)},
		Attack{Name: "encrypted resolvers", Escape: "DNS over TLS and over HTTPS to resolvers that everybody knows", Defence: list(policy), Tried: list(Network)},
		Attack{Name: "local sockets", Escape: "agents and debuggers that trust every local process; an abstract socket has no file to hide", Defence: list(netns), Tried: list(Network)},
		Attack{Name: "questions", Escape: "a DNS query carries data out, whichever server is asked, and also below an allowed wildcard", Defence: list(resolver), Tried: list(Network)},
		Attack{Name: "iodine", Escape: "IP over DNS, as in Debian", Defence: list(resolver), Tried: list(Network)},
		Attack{Name: "iodine below an allowed name", Escape: "all that it asks for is allowed", Defence: list(resolver), Tried: list(Network)},
		Attack{Name: "dns2tcp", Escape: "TCP over DNS, as in Debian", Defence: list(resolver), Tried: list(Network)},
		Attack{Name: "floods and resets of a forwarded port", Escape: "any local program ends the sandbox's other connections, or takes the keeper's descriptors", Defence: list("internal/forward/serve.go"), Tried: list("test/service: TestPortsUnderFloods")},
		Attack{Name: "connections that are open during a pause", Escape: "memory grows while nothing reads, or bytes are lost", Defence: list("internal/keeper/pause.go", "internal/forward/serve.go"), Tried: list("test/service: TestPausedConnectionsGoOn")},
		Attack{Name: "floods and half-open connections", Escape: "the keeper's memory and descriptors are gone, and another sandbox's keeper suffers", Defence: list("internal/keeper/connections.go", "internal/egress/intake.go"), Tried: list("test/network/attacks: TestFloodsAreBounded", "test/network/attacks: TestFewDescriptors")},
	)
}

func userRows() []Attack {
	const owner = "internal/ownership/ownership.go"
	return rows(Users,
		Attack{Name: "read another sandbox", Escape: "one agent's work and secrets in another's hands", Defence: list(assemble), Tried: list(Attacks), Places: everywhere},
		Attack{Name: "read the state directory", Escape: "the keys of every wire, and every sandbox's files", Defence: list(assemble), Tried: list(Attacks), Places: everywhere},
		Attack{Name: "see the host's processes", Escape: "arguments hold secrets, and what is seen can be signalled", Defence: list(assemble), Tried: list(Attacks, Posture), Places: []Place{Copy, Image, Machine}, Looks: list("Processes")},
		Attack{Name: "have another user's state directory used", Escape: "programs, sockets and trust that another user planted count for anyone who runs litterbox there (sudo -E)", Defence: list(owner), Tried: list(Attacks)},
		Attack{Name: "use a keeper's link to a machine", Escape: "another user, or a stranger at the socket, asks about or changes sandboxes on a host of the human's", Defence: list("internal/driver/remote/relay.go", "internal/process/peer_linux.go"), Tried: list("internal/process: TestSameUser", "internal/driver/remote: TestABorrowerOnlyAsks")},
		Attack{Name: "lend objects that change", Escape: "a store that a repository borrows from (objects/info/alternates) shows one content to the merge's judge and another to the merge, or a pipe at which git waits for ever", Defence: list("internal/git/borrowed.go"), Tried: list(Attacks)},
		Attack{Name: "put a pipe into a store that is trusted", Escape: "git opens it as an object and waits for ever, and so does every command that commits, stops or deletes", Defence: list("internal/git/patience.go"), Tried: list("internal/git: TestGitThatWaitsForAFile")},
		Attack{Name: "have another user's configuration count", Escape: "a configuration that counts as the human's mounts what it likes", Defence: list(owner), Tried: list(Attacks)},
		Attack{Name: "have a repository's settings weaken the human's", Escape: "a cloned .litterbox.toml shortens how long lost work is kept", Defence: list("internal/config/retention.go"), Tried: list("internal/config: TestUntrustedRepositoryKeepsRetention")},
		Attack{Name: "have root write into another user's repository", Escape: "files that their owner cannot change, where that owner decides what a path means", Defence: list("internal/engine/agents.go"), Tried: list(Attacks)},
		Attack{Name: "have a live sandbox's pin cleared away", Escape: "doctor --fix with another state directory lets git collect the base of a sandbox that is alive", Defence: list("internal/engine/leftovers.go"), Tried: list(Attacks)},
	)
}

func resourceRows() []Attack {
	const supervise, room = "internal/keeper/supervise.go", "internal/keeper/disk.go"
	bomb := list(supervise)
	return rows(Resources,
		Attack{Name: "take all memory", Escape: "a host that swaps and kills its own programs", Defence: bomb, Tried: list(Redteam, Attacks)},
		Attack{Name: "take all memory with many processes", Escape: "a limit for each process that a thousand small ones pass together", Defence: bomb, Tried: list(Attacks)},
		Attack{Name: "fill memory with files", Escape: "memory that belongs to no process, in /dev/shm", Defence: bomb, Tried: list(Attacks)},
		Attack{Name: "fill memory with files that have no name", Escape: "memory that belongs to no process, behind a descriptor", Defence: bomb, Tried: list(Attacks)},
		Attack{Name: "fill memory with what sockets hold", Escape: "memory of the kernel that belongs to no process", Defence: bomb, Tried: list(Attacks)},
		Attack{Name: "fill memory with page tables", Escape: "the same, by reading a little of very much", Defence: bomb, Tried: list(Attacks)},
		Attack{Name: "fork without end", Escape: "a process table that is full, and no way to log in", Defence: bomb, Tried: list(Redteam, Attacks)},
		Attack{Name: "fill the disk", Escape: "a disk without room for the host's own programs", Defence: list(room), Tried: list(Redteam, Attacks)},
		Attack{Name: "fill the disk with a sparse giant's data in the home", Escape: "the same beside the workspace", Defence: list(room), Tried: list(Attacks)},
		Attack{Name: "use up the inodes", Escape: "a disk on which no file can be made, with room left", Defence: list(room), Tried: list(Attacks)},
		Attack{Name: "hide files in a directory without permissions", Escape: "a count that looks away", Defence: list(room), Tried: list(Attacks)},
		Attack{Name: "flood the log of what was left running", Escape: "a log that fills the disk or memory", Defence: list("internal/guest/output_linux.go"), Tried: list(Attacks)},
		Attack{Name: "flood the log of the background", Escape: "what a command leaves running prints for ever, into memory that nothing counts", Defence: list("internal/guest/output_linux.go"), Tried: list(Attacks), Places: []Place{Copy}},
		Attack{Name: "flood the output", Escape: "gigabytes that a command prints pile up in the processes between it and a client that does not read", Defence: list("internal/guest/output_linux.go"), Tried: list(Attacks), Places: []Place{Copy}},
		Attack{Name: "run for ever", Escape: "a command that no client waits for", Defence: list("internal/guest/end_linux.go"), Tried: list(Attacks)},
		Attack{Name: "outlive a timeout by forking", Escape: "forgotten processes use the host's time", Defence: list("internal/guest/end_linux.go"), Tried: list(Redteam, Attacks), Places: everywhere},
		Attack{Name: "outlive the sandbox", Escape: "processes of sessions of their own that go on after stop, on the host's time", Defence: list("internal/guest/end_linux.go"), Tried: list(Attacks, "test/attack: TestDegradedTierWorks"), Places: []Place{Copy, Image, Machine}},
		Attack{Name: "use up the user's quotas", Escape: "no inotify and no signal for the human's editor, nor for another sandbox", Defence: list("internal/driver/namespace/stage/quotas_linux.go"), Tried: list(Attacks, Posture), Places: []Place{Copy}, Looks: list("Limits", "UserLimits")},
		Attack{Name: "make giants of holes", Escape: "a file of a terabyte costs a sandbox nothing, and the host hours and its disk to commit", Defence: list("internal/branch/holes.go"), Tried: list(Attacks), Places: []Place{Copy}},
		Attack{Name: "copy a bomb to the host", Escape: "what is a hole inside, or ten thousand names, fills the host's disk", Defence: list("internal/engine/files.go"), Tried: list(Attacks), Places: []Place{Copy}},
		Attack{Name: "hold the sandbox by a control group of its own", Escape: "with security.nested an inner group keeps the host from stopping and deleting the sandbox", Defence: list("internal/driver/namespace/cgroup/below_linux.go"), Tried: list("internal/driver/namespace/cgroup: TestGroupsBelowAreRemoved")},
		Attack{Name: "stack layers without end", Escape: "more layers than the kernel mounts make a sandbox that cannot be started", Defence: list("internal/frozen/box.go"), Tried: list("internal/frozen: TestStackIsBounded")},
		Attack{Name: "make a log that the host reads for ever", Escape: "a log of a terabyte of nothing takes the time and memory of the host's own command", Defence: list("internal/service/journal/read.go"), Tried: list("internal/service/journal: TestHostileDirectory")},
		Attack{Name: "storm the inodes", Escape: "every file of a sandbox becomes a loose object of the host's repository, and git slows down with the square of them", Defence: list("internal/branch/bulk.go"), Tried: list(Attacks), Places: []Place{Copy}},
	)
}

func imageRows() []Attack {
	const extract, manifest = "internal/image/extract_linux.go", "internal/image/manifest.go"
	return rows(Images,
		Attack{Name: "layers that leave their directory", Escape: "names, links and devices of a layer write files of the host", Defence: list(extract), Tried: list("internal/image: TestExtractRefuses")},
		Attack{Name: "a layer that unpacks without end", Escape: "a few kilobytes fill the disk", Defence: list(extract), Tried: list("internal/image: TestDecompressionBomb")},
		Attack{Name: "content that is not what its digest says", Escape: "an attacker between registry and reader chooses the programs", Defence: list(manifest), Tried: list("internal/image: TestChangedContentIsRefused")},
		Attack{Name: "a registry that lies, sends elsewhere or never ends", Escape: "credentials go to another host, or a pull takes all memory", Defence: list("internal/image/registry.go"), Tried: list("internal/image: TestHostileRegistry")},
		Attack{Name: "a document that is an image and an index at once", Escape: "what was looked at elsewhere is not what runs (CVE-2021-41190); or indexes lead on for ever", Defence: list(manifest, "internal/image/image.go"), Tried: list("internal/image: TestHostileRegistry")},
	)
}

func toolRows() []Attack {
	const visible = "internal/guest/visible_linux.go"
	return rows(Tools,
		Attack{Name: "paths that leave the project", Escape: "a tool reads or writes a file that the sandbox's rules keep from it", Defence: list(visible), Tried: list("test/mcp: TestHostilePaths", "test/mcp: TestHostileNames")},
		Attack{Name: "two servers on one repository", Escape: "two agents write in one sandbox, or one reads and lands what is the other's", Defence: list("internal/engine/agent.go"), Tried: list("test/mcp: TestOneAgentEach", "test/mcp: TestEightAgents")},
		Attack{Name: "search without end", Escape: "a pattern or a line of gigabytes passes the bound of time and outlives the client", Defence: list("internal/guest/search_linux.go"), Tried: list("internal/guest: TestSearchEndsInsideALine", "test/mcp: TestSearchIsWhole")},
		Attack{Name: "messages that are none", Escape: "a session ends, or memory is filled", Defence: list("internal/frontend/mcp/stdio.go"), Tried: list("test/mcp: TestMalformedMessages", "test/mcp: TestFlood", "test/mcp: TestTenMegabytes")},
		Attack{Name: "callers without the token", Escape: "a page in a browser or another user works in a sandbox, or holds every connection", Defence: list("internal/frontend/mcp/http.go", "internal/frontend/mcp/door.go"), Tried: list("test/mcp: TestHTTPIsGuarded", "test/mcp: TestStrangersHoldTheDoor")},
	)
}
