package probe

import (
	"encoding/json"
	"fmt"
	"os"
)

// outcomes holds each attempt's answer: "ok", or the name of an errno.
type outcomes map[string]string

// Main runs the verb that the arguments name and returns the exit code.
func Main(args []string) int {
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: probe VERB ARGUMENTS...")
		return 2
	}
	verbs := map[string]func([]string) (any, error){
		"bare":        bare,        // the rest of the arguments, in namespaces of its own with all capabilities
		"bareshell":   bareShell,   // SCRIPT: a shell in the same
		"calls":       calls,       // system calls that a sandbox denies
		"foreign":     foreign,     // a system call by another entry: int80, x32
		"namespaces":  namespaces,  // processes in new namespaces
		"connect":     connect,     // NETWORK ADDRESS...: connections, pairs
		"addressed":   addressed,   // the same, after listening on each address on lo
		"signals":     signals,     // PID: every signal but KILL and STOP, and those too
		"process":     process,     // PID: trace and read a process
		"descriptors": descriptors, // what is open here
		"hold":        hold,        // FILE...: leases and flags
		"others":      others,      // PID...: limits and scheduling of other processes
		"everybody":   everybody,   // the same, of all of this user
		"self":        self,        // the same, of oneself and a child
		"quota":       quota,       // INSTANCES SIGNALS [FILE]: what the kernel counts by user
		"attributes":  attributes,  // FILE NAME...: set extended attributes
		"types":       types,       // TEXT: into the input of every terminal
		"shared":      shared,      // JSON: what a place without namespaces may not touch
		"setgroup":    setgroup,    // DIRECTORY: the set-group-ID bit for everything in it
		"notify":      notify,      // SEED DURATION DIRECTORY OUTSIDE PID: calls that are put to the guest, from processes that are killed in them
		"notified":    notified,    // SEED DIRECTORY OUTSIDE PID: one of those processes
		"resolve":     resolve,     // NAME...: addresses of names
		"fork":        fork,        // NUMBER: that many processes at once
		"deep":        deep,        // DIRECTORY DEPTH: directories in directories, without permissions
		"delta":       delta,       // DIRECTORY MIB: a pack of a few kilobytes that makes a file of that many MiB
		"tree":        tree,        // MODE NAME OBJECT...: a raw git tree object
	}
	verb, ok := verbs[args[1]]
	if !ok {
		fmt.Fprintf(os.Stderr, "probe: no verb %q\n", args[1])
		return 2
	}
	result, err := verb(args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		return 1
	}
	if result == nil {
		return 0
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		return 1
	}
	return 0
}
