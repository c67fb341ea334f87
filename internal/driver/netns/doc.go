// Package netns sets up the network namespace of a sandbox: every address is
// local, and the sandbox's own packet filter leads connections, queries and
// datagrams to the guest. It runs in a driver's child, before rights are given up.
package netns
