// Package cgroup is the part of control groups that a sandbox needs: a group
// per sandbox, in version 1, version 2 or both, with limits, a freezer and
// counters. It makes groups only where this process may (as root, or below a
// tree delegated to it), and it never moves a process that is not the
// sandbox's.
//
// It deliberately knows nothing of devices, cpusets or network classes, and
// keeps no state: a [Group] is data, and everything else comes from the kernel.
// docs/adr/0008-own-control-groups.md says why it is not a library.
//
// Start reading at [Find].
package cgroup
