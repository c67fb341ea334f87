// Package branch is the commit path: it reads what a sandbox changed and puts
// it onto the sandbox's branch, after the commits that the agent made itself,
// and squashes a branch at a milestone.
//
// It never runs git in or against anything that a sandbox can write. A
// sandbox's files are read as data through descriptors that follow no links
// ([Import]); the agent's own commits come as a pack into a private quarantine
// ([Receive]). What a workspace is made of is package layer; how git is run is
// package git. It knows nothing of drivers or records.
//
// Start reading at [Import].
package branch
