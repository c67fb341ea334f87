// Package engine starts Docker and Podman for tests: daemons of the test's own,
// whose data, sockets and mounts are below a directory of the test, and which touch
// no network of the machine. All of it ends with the test, even with a killed one.
//
// It deliberately pulls no image: what containers need is imported. Start reading
// at [Docker] and [Podman].
package engine
