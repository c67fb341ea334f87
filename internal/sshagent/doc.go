// Package sshagent stands between programs of a sandbox and the human's own
// ssh-agent: it shows chosen keys, asks about every signature and says its
// purpose, and passes nothing else on. Keys cannot be added, removed or locked.
//
// The purpose of a signature is read from the data itself, never believed: a login
// names its session, and OpenSSH (8.9 and later) tells an agent which host key
// signed that session (session-bind@openssh.com, PROTOCOL.agent in its source).
// Both are verified, so that a question names the host of the login. Data that is
// neither a login nor a signature of ssh-keygen (PROTOCOL.sshsig) is not signed.
//
// The package makes no decision, asks no human and opens no socket. Start
// reading at [Proxy].
package sshagent
