// Package seccomp holds the system call policy of a sandbox as data, and
// compiles it to a classic BPF program for the kernel (seccomp(2)).
//
// It is the second wall: namespaces and the absence of capabilities already
// refuse most of what is denied here; the filter keeps kernel code that no
// build or test needs out of reach. It installs nothing by itself: the
// namespace driver's child calls [Install] right before exec, and the guest
// calls [InstallNotify] when it wants to see renames. Path and structure
// arguments cannot be judged by seccomp at all; Landlock and the mounts do that.
//
// Start reading at rules.go, which is the policy; testdata holds its results
// for every call of every architecture.
package seccomp
