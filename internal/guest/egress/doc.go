// Package egress is the inside end of the sandbox's only way out: it takes
// connections, queries and datagrams from the sandbox's own packet filter, learns
// their destination and their process, and passes them to the keeper. It decides
// nothing.
package egress
