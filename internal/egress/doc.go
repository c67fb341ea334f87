// Package egress decides what leaves a sandbox and carries it: the policy, the
// resolver that answers allowed names with addresses of its own, and the proxy
// that turns an accepted connection into one to the real host.
//
// The kernel does the rest elsewhere: the process that runs a sandbox hands over
// DNS messages ([Resolver.Answer]), accepted connections ([Proxy.Handle]) and
// datagrams ([Proxy.Datagram]) with the address that they were meant for. This
// package makes no namespaces, opens no listener, and terminates no TLS (package
// intercept does, for the few hosts that need it). It parses by hand, within
// bounds, because it is the one thing that a sandbox can reach, and because its
// process idles for hours beside every sandbox.
//
// Everything foreign is parsed once, decided on as parsed and dialled as
// parsed. Start reading at [ParseRule] and [Policy.Decide], a pure function.
package egress
