// Floor starts the processes that a command of litterbox consists of, in the same
// order, and does nothing in them: what is left of a command's time above it is
// litterbox's own work.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "serve":
		return serve(args[1])
	case len(args) == 2 && args[0] == "exec":
		return ask(args[1])
	case len(args) == 2 && args[0] == "commit":
		// git starts while the command runs.
		return both(func() error { return ask(args[1]) }, func() error { return git("fast-import", "--quiet") })
	case len(args) == 1 && args[0] == "create":
		return create()
	case len(args) == 2 && args[0] == "chain":
		return chain(args[1])
	}
	return errors.New("usage: floor serve SOCKET|exec SOCKET|commit SOCKET|create|chain N")
}

// serve is a keeper and its guest: true is run for each connection.
func serve(path string) error {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		if err := errors.Join(exec.Command("true").Run(), conn.Close()); err != nil {
			return err
		}
	}
}

// ask is a client: it waits for the end of the command that the server runs.
func ask(path string) error {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	defer conn.Close()
	if n, _ := conn.Read(make([]byte, 1)); n != 0 {
		return errors.New("the server has answered")
	}
	return nil
}

// create makes a sandbox and runs its first command: keeper, stage and guest are
// started one by the other, beside the gits that look at the repository and make the
// branch; then comes the commit.
func create() error {
	looks := func() error {
		for _, args := range [][]string{
			{"rev-parse", "--git-dir", "HEAD^{commit}", "HEAD^{tree}"},
			{"status", "--porcelain", "-z"},
			{"update-ref", "--stdin"},
		} {
			if err := git(args...); err != nil {
				return err
			}
		}
		return nil
	}
	if err := both(looks, func() error { return chain("3") }); err != nil {
		return err
	}
	return git("fast-import", "--quiet")
}

// chain starts a program that starts a program, and so on; the last one runs true.
func chain(left string) error {
	n, err := strconv.Atoi(left)
	if err != nil {
		return err
	}
	if n == 0 {
		return exec.Command("true").Run()
	}
	return exec.Command("/proc/self/exe", "chain", strconv.Itoa(n-1)).Run()
}

func git(args ...string) error { return exec.Command("git", args...).Run() }

func both(one, other func() error) error {
	done := make(chan error, 1)
	go func() { done <- other() }()
	return errors.Join(one(), <-done)
}
