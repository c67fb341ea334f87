//go:build !linux

package main

import "os/exec"

// Elsewhere there are few tests, and none of them makes a sandbox.

func ends(*exec.Cmd) {}

func family(pid int) []int { return []int{pid} }

func memory([]int) int64 { return 0 }

func shares([]int) int64 { return 0 }

func end([]int) {}

func size(string) int64 { return 0 }
