// Package sshagent stands between programs of a sandbox and the human's own
// ssh-agent: it shows chosen keys, asks about every signature and says what it
// is for, and passes nothing else on. Keys cannot be added, removed or locked.
//
// What a signature is for is read from the data itself, never believed: a login
// names its session, and OpenSSH (8.9 and later) tells an agent which host key
// signed that session (session-bind@openssh.com, PROTOCOL.agent in its source).
// Both are verified, so that a question names the host that the login goes to.
// Data that is neither a login nor a signature of ssh-keygen (PROTOCOL.sshsig)
// is not signed.
//
// The package decides nothing, asks nobody and opens no socket. Start reading
// at [Proxy].
package sshagent
