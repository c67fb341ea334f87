// Package branch is the commit path: it reads a sandbox's changes, puts them
// onto the sandbox's branch, after the commits that the agent made itself, and
// squashes a branch at a milestone.
//
// It never runs git in or against anything that a sandbox can write. A
// sandbox's files are read as data through descriptors that follow no links
// ([Import]); the agent's own commits come as a pack into a private quarantine
// ([Receive]). Package layer makes workspaces; package git runs git. Package
// branch knows nothing of drivers or records.
//
// Start reading at [Import].
package branch
