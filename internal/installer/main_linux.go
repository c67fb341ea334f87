package installer

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// records is what package managers write, where they may.
func records(manager string) []string {
	switch manager {
	case "dnf":
		return []string{"/usr/lib/sysimage/rpm", "/var/lib/rpm"}
	case "pacman":
		return []string{"/var/lib/pacman"}
	case "apk":
		return []string{"/lib/apk/db", "/usr/lib/apk/db"}
	}
	return []string{"/var/lib/dpkg"}
}

// canWrite reports whether a package manager can work by itself.
func canWrite(manager string) bool {
	return slices.ContainsFunc(records(manager), func(dir string) bool { return unix.Access(dir, unix.W_OK) == nil })
}

// Main is the program. Where a package manager keeps its records elsewhere, it
// works by itself. It returns its exit code, or becomes the system's own.
func Main(args []string) int {
	manager := managerOf(filepath.Base(args[0]))
	order, ok := ReadFor(manager, args[1:])
	if !ok || manager == "apt" && os.Getenv("APT_CONFIG") != "" || canWrite(manager) {
		return system(args)
	}
	if order.Update {
		fmt.Fprintln(os.Stderr, "litterbox: each install fetches the package lists")
		return 0
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(Dir, Socket), Net: "unix"})
	if err != nil {
		return system(args) // says what it lacks
	}
	defer conn.Close()
	return ask(conn, order.Packages, os.Stdout, os.Stderr)
}

// ask has the keeper at the other end of conn install packages.
func ask(conn wire.Stream, packages []string, stdout, stderr io.Writer) int {
	var command wire.Exec
	for _, name := range packages {
		command.Argv = append(command.Argv, []byte(name))
	}
	exit, err := wire.Run(context.Background(), conn, command, wire.Streams{Stdout: stdout, Stderr: stderr})
	if err != nil {
		fmt.Fprintln(stderr, "litterbox:", err)
		if hint := fault.HintOf(err); hint != "" {
			fmt.Fprintln(stderr, "  try:", hint)
		}
		return Failed
	}
	return exit.Code
}

// system becomes the system's program of the same name.
func system(args []string) int {
	name := filepath.Base(args[0])
	program := "/usr/bin/" + name
	if managerOf(name) == "apk" {
		program = "/sbin/apk"
	}
	err := unix.Exec(program, args, os.Environ())
	fmt.Fprintf(os.Stderr, "litterbox: cannot run %s: %v\n", program, err)
	return 127
}
